#include "src/service/apply_queue.h"

namespace conductor {

bool ApplyQueue::Offer(StreamId stream, std::vector<Fact>& facts, std::size_t bytes) {
  MutexLock lock(mutex_);
  // An empty queue takes anything, so that one huge frame cannot wait for ever.
  const bool full = !frames_.empty() && (frames_.size() >= limits_.queue_frames_max ||
                                         bytes_ + bytes > limits_.queue_bytes_max);
  if (stopping_ || full) return false;
  frames_.push_back({stream, std::move(facts), bytes});
  bytes_ += bytes;
  changed_.NotifyAll();
  return true;
}

bool ApplyQueue::Push(Command&& command) {
  MutexLock lock(mutex_);
  if (stopping_ || commands_.size() >= limits_.queue_commands_max) return false;
  commands_.push_back(std::move(command));
  changed_.NotifyAll();
  return true;
}

ApplyQueue::Work ApplyQueue::Take(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (frames_.empty() && commands_.empty() && !stopping_ && !woken_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    changed_.WaitFor(mutex_, left);
  }
  woken_ = false;
  Work work;
  work.stopping = stopping_;
  // Commands first: what a stream had offered before its unregistration is discarded anyway.
  work.commands.assign(std::make_move_iterator(commands_.begin()),
                       std::make_move_iterator(commands_.end()));
  commands_.clear();
  std::size_t bytes = 0;
  while (!frames_.empty() && work.frames.size() < limits_.group_frames_max &&
         (work.frames.empty() || bytes + frames_.front().bytes <= limits_.group_bytes_max)) {
    bytes += frames_.front().bytes;
    work.frames.push_back(std::move(frames_.front()));
    frames_.pop_front();
  }
  bytes_ -= bytes;
  return work;
}

std::vector<Command> ApplyQueue::TakeCommands() {
  MutexLock lock(mutex_);
  std::vector<Command> commands(std::make_move_iterator(commands_.begin()),
                                std::make_move_iterator(commands_.end()));
  commands_.clear();
  return commands;
}

void ApplyQueue::DiscardFrames() {
  MutexLock lock(mutex_);
  frames_.clear();
  bytes_ = 0;
}

bool ApplyQueue::WaitForCommands(std::chrono::steady_clock::time_point until) {
  MutexLock lock(mutex_);
  while (!stopping_ && commands_.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    changed_.WaitFor(mutex_, left);
  }
  return !commands_.empty();
}

void ApplyQueue::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

void ApplyQueue::Stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  changed_.NotifyAll();
}

bool ApplyQueue::stopping() const {
  MutexLock lock(mutex_);
  return stopping_;
}

std::size_t ApplyQueue::frames() const {
  MutexLock lock(mutex_);
  return frames_.size();
}

std::size_t ApplyQueue::bytes() const {
  MutexLock lock(mutex_);
  return bytes_;
}

std::size_t ApplyQueue::commands() const {
  MutexLock lock(mutex_);
  return commands_.size();
}

}  // namespace conductor
