// ApplyQueue: what waits for the apply thread. Bounded in frames, bytes and commands; when it is
// full, Offer and Push say so and take nothing. Any thread adds; the apply thread takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <variant>
#include <vector>

#include "src/fact.h"
#include "src/limits.h"
#include "src/mutex.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor {

struct RegisterCommand {
  Registration registration;
  std::promise<Result<RegisterOutcome>> done;
};
struct UnregisterCommand {
  ServiceKey key;
  std::promise<Result<std::string>> done;
};
using Command = std::variant<RegisterCommand, UnregisterCommand>;

class ApplyQueue {
 public:
  struct FrameItem {
    StreamId stream = 0;
    std::vector<Fact> facts;
    std::size_t bytes = 0;
  };
  // What the apply thread got: commands, or else frames (bounded by the group limits).
  struct Work {
    std::vector<Command> commands;
    std::vector<FrameItem> frames;
    bool stopping = false;
    bool Empty() const { return commands.empty() && frames.empty(); }
  };

  explicit ApplyQueue(const Limits& limits) : limits_(limits) {}

  bool Offer(StreamId stream, std::vector<Fact>& facts, std::size_t bytes);
  bool Push(Command&& command);
  // Waits for work, a wake-up or the timeout.
  Work Take(std::chrono::milliseconds timeout);
  std::vector<Command> TakeCommands();
  void DiscardFrames();
  // Waits for commands. False: there are none and it is `until`, or the service stops.
  bool WaitForCommands(std::chrono::steady_clock::time_point until);
  void Wake();
  // From here on Take returns at once and nothing more is accepted.
  void Stop();
  bool stopping() const;
  std::size_t frames() const;
  std::size_t bytes() const;
  std::size_t commands() const;

 private:
  const Limits limits_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<FrameItem> frames_ GUARDED_BY(mutex_);
  std::deque<Command> commands_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool woken_ GUARDED_BY(mutex_) = false;
};

}  // namespace conductor
