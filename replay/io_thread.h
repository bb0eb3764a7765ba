// One I/O thread: it drives many streams, each in short turns, and waits in epoll for their
// sockets.
//
// Streams are handed over and taken back through a mutex; between the two they belong to the
// thread. libzmq's descriptors are edge-triggered: a stream that is signalled stays in line until
// it has read everything that is there.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "replay/digest_cache.h"
#include "replay/stream_reader.h"
#include "src/mutex.h"
#include "src/ports.h"

namespace conductor {

// How often timeouts, waiting replays and refused offers are looked at.
inline constexpr int kTickMs = 20;
// Descriptors reported by one wait.
inline constexpr int kEpollEventsMax = 256;

class IoThread : private StreamReader::Watcher {
 public:
  static Result<std::unique_ptr<IoThread>> Start(const Clock& clock, std::string name);
  // Stops, if Stop was not called.
  ~IoThread() override;

  // Takes the stream; it is read from then on.
  void Add(std::unique_ptr<StreamReader> stream);
  // When it returns the thread has let go of the stream and closed it. Waits for at most the turns
  // that are under way.
  void Remove(StreamId stream);
  // Closes all streams and ends the thread. The other calls do nothing afterwards.
  void Stop();

 private:
  struct Command {
    std::unique_ptr<StreamReader> add;
    StreamId remove = 0;
    std::promise<void> done;
  };

  IoThread(const Clock& clock, int epoll, int wake);
  Status Watch(int descriptor, StreamReader& reader) override;
  void Forget(int descriptor) override;

  bool Post(Command command);
  void Wake();
  void Run();
  bool RunCommands();
  void RunTurns();
  void Tick();
  void Wait(int timeout_ms);
  void Enqueue(StreamReader& reader);
  void Close(StreamId stream);

  const Clock& clock_;
  const int epoll_;
  const int wake_;

  Mutex mutex_;
  std::vector<Command> commands_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  // Set after a command is posted, cleared before they are taken: lets a turn end early.
  std::atomic<bool> posted_{false};

  // The thread's own.
  DigestCache cache_;
  std::unordered_map<StreamId, std::unique_ptr<StreamReader>> readers_;
  std::deque<StreamReader*> line_;
  std::int64_t next_tick_ms_ = 0;

  Mutex join_mutex_;  // Stop may be called by several threads; all return when it has ended.
  std::thread thread_ GUARDED_BY(join_mutex_);
};

}  // namespace conductor
