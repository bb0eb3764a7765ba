#include "replay/io_thread.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/queries_first.h"

namespace conductor {
namespace {

constexpr std::size_t kThreadNameMax = 15;  // Linux

tl::unexpected<Error> SystemError(std::string_view what) {
  return MakeError(ErrorCode::kResourceExhausted, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<IoThread>> IoThread::Start(const Clock& clock, std::string name) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return SystemError("I/O thread: epoll");
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    const auto error = SystemError("I/O thread: eventfd");
    close(epoll);
    return error;
  }
  std::unique_ptr<IoThread> io(new IoThread(clock, epoll, wake));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, wake, &event) != 0) return SystemError("I/O thread: epoll");
  MutexLock lock(io->join_mutex_);
  const QueriesFirst of_this;
  io->thread_ = std::thread([thread = io.get()] { thread->Run(); });
  pthread_setname_np(io->thread_.native_handle(), name.substr(0, kThreadNameMax).c_str());
  return io;
}

IoThread::IoThread(const Clock& clock, int epoll, int wake)
    : clock_(clock), epoll_(epoll), wake_(wake) {}

IoThread::~IoThread() {
  Stop();
  close(wake_);
  close(epoll_);
}

void IoThread::Add(std::unique_ptr<StreamReader> stream) {
  Command command;
  command.add = std::move(stream);
  Post(std::move(command));
}

void IoThread::Remove(StreamId stream) {
  Command command;
  command.remove = stream;
  auto done = command.done.get_future();
  if (!Post(std::move(command))) return Stop();  // It is ending: wait for that.
  done.wait();
}

void IoThread::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  MutexLock lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

bool IoThread::Post(Command command) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    commands_.push_back(std::move(command));
  }
  Wake();
  return true;
}

void IoThread::Wake() {
  // Release: pairs with the acquire in RunTurns, which only decides to look under the mutex.
  posted_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // Full means it is readable already.
  static_cast<void>(write(wake_, &one, sizeof(one)) == 0);
}

Status IoThread::Watch(int descriptor, StreamReader& reader) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = &reader;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  return SystemError("stream " + std::to_string(reader.stream()) + ": epoll");
}

void IoThread::Forget(int descriptor) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void IoThread::Run() {
  while (RunCommands()) {
    RunTurns();
    const std::int64_t now_ms = clock_.MonotonicMs();
    if (now_ms >= next_tick_ms_) {
      next_tick_ms_ = now_ms + kTickMs;
      Tick();
    }
    Wait(line_.empty() ? kTickMs : 0);
  }
  line_.clear();
  readers_.clear();  // Closes every socket, on the thread that used them.
}

// False: stop.
bool IoThread::RunCommands() {
  std::vector<Command> commands;
  bool stopping = false;
  {
    MutexLock lock(mutex_);
    commands.swap(commands_);
    stopping = stopping_;
    posted_.store(false, std::memory_order_relaxed);
  }
  for (Command& command : commands) {
    if (command.add) {
      StreamReader& reader = *command.add;
      // The last line of defence: Subscriptions has counted the descriptors before.
      if (const Status attached = reader.Attach(*this, cache_); !attached) {
        StreamReport::Facts facts;
        facts.last_error = attached.error().message;
        reader.report()->Set(std::move(facts));
        continue;
      }
      Enqueue(reader);
      readers_[reader.stream()] = std::move(command.add);
    } else {
      Close(command.remove);
    }
    command.done.set_value();
  }
  return !stopping;
}

void IoThread::Close(StreamId stream) {
  const auto found = readers_.find(stream);
  if (found == readers_.end()) return;
  std::erase(line_, found->second.get());
  readers_.erase(found);
}

// One turn for each stream that is in line now.
void IoThread::RunTurns() {
  for (std::size_t left = line_.size(); left > 0; --left) {
    StreamReader* reader = line_.front();
    line_.pop_front();
    reader->queued = false;
    if (reader->Turn(clock_.MonotonicMs())) Enqueue(*reader);
    // Acquire: pairs with Wake.
    if (posted_.load(std::memory_order_acquire)) return;
  }
}

void IoThread::Tick() {
  const std::int64_t now_ms = clock_.MonotonicMs();
  for (auto& [stream, reader] : readers_) {
    if (reader->Tick(now_ms)) Enqueue(*reader);
  }
}

void IoThread::Wait(int timeout_ms) {
  std::array<epoll_event, kEpollEventsMax> events;
  const int count = epoll_wait(epoll_, events.data(), kEpollEventsMax, timeout_ms);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      std::uint64_t ignored = 0;
      static_cast<void>(read(wake_, &ignored, sizeof(ignored)) == 0);
      continue;
    }
    Enqueue(*static_cast<StreamReader*>(events[i].data.ptr));
  }
}

void IoThread::Enqueue(StreamReader& reader) {
  if (std::exchange(reader.queued, true)) return;
  line_.push_back(&reader);
}

}  // namespace conductor
