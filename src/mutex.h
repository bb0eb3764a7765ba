// Mutex, MutexLock and CondVar: std ones that clang's -Wthread-safety understands (libstdc++'s are
// not annotated). State a mutex protects is marked GUARDED_BY(mutex_).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define CONDUCTOR_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define CONDUCTOR_THREAD_ANNOTATION(x)
#endif
#define CAPABILITY(x) CONDUCTOR_THREAD_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY CONDUCTOR_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) CONDUCTOR_THREAD_ANNOTATION(guarded_by(x))
#define REQUIRES(...) CONDUCTOR_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) CONDUCTOR_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) CONDUCTOR_THREAD_ANNOTATION(release_capability(__VA_ARGS__))

namespace conductor {

class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // Waits until notified, spuriously woken, or `timeout` has passed. Check the condition in a loop.
  void WaitFor(Mutex& mutex, std::chrono::milliseconds timeout) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, timeout);
    lock.release();
  }
  // The same without a timeout.
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace conductor
