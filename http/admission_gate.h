// How many requests that may wait (for the log, for a lock, for a long computation) run at once.
// The rest queue in order of arrival without holding a thread, so that probes are always served.
// Thread-safe. Borrows connections; whoever gets one from Leave serves it.
#pragma once

#include <cstddef>
#include <deque>

#include "http/connection.h"
#include "src/mutex.h"

namespace conductor::http {

class AdmissionGate {
 public:
  explicit AdmissionGate(std::size_t slots) : slots_(slots) {}

  // True: a slot is the connection's. False: it waits, and is no longer the caller's to touch.
  bool TryEnter(Connection* connection) {
    const MutexLock lock(mutex_);
    if (running_ < slots_) {
      ++running_;
      return true;
    }
    waiting_.push_back(connection);
    return false;
  }

  // Gives a slot back, or on: the connection that has it now, or null.
  Connection* Leave() {
    const MutexLock lock(mutex_);
    if (waiting_.empty()) {
      --running_;
      return nullptr;
    }
    Connection* next = waiting_.front();
    waiting_.pop_front();
    return next;
  }

 private:
  const std::size_t slots_;
  Mutex mutex_;
  std::size_t running_ GUARDED_BY(mutex_) = 0;
  std::deque<Connection*> waiting_ GUARDED_BY(mutex_);
};

}  // namespace conductor::http
