// The transport: a few threads over one poller serve any number of connections. A thread is bound
// to a connection only while it has something to do, so slow or idle clients cost a descriptor and
// their bytes, never a thread.
//
// A connection is in the poller (armed for one event), in the gate's queue, or with one thread;
// a few mutexes order the hand-over. Everything has a deadline, looked at by a
// sweep every kSweepIntervalMs: an expired socket is shut down, which the poller reports.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "http/admission_gate.h"
#include "http/connection.h"
#include "http/http_limits.h"
#include "http/http_metrics.h"
#include "http/library_exchange.h"
#include "http/listen_socket.h"
#include "src/mutex.h"
#include "src/result.h"

namespace conductor::http {

struct LoopOptions {
  FramingLimits framing;
  std::size_t threads = 0;             // that run requests which may wait
  std::int64_t request_ms_max = 0;     // to send one request, and to take its answer
  std::size_t buffered_bytes_max = 0;  // over all connections
};

class ConnectionLoop {
 public:
  // `exchange` and `metrics` must outlive the loop.
  static Result<std::unique_ptr<ConnectionLoop>> Start(ListenSocket socket, LoopOptions options,
                                                       const LibraryExchange& exchange,
                                                       HttpMetrics& metrics);
  ~ConnectionLoop() { Stop(); }

  // Ends every connection. Waits only for requests that are being executed.
  void Stop();

 private:
  // What a step of a connection leads to.
  enum class Next { kAgain, kNotOurs, kClose };

  ConnectionLoop(LoopOptions options, const LibraryExchange& exchange, HttpMetrics& metrics);

  Status Open(ListenSocket socket);
  void RunThread();
  void Accept();
  void Admit(FileDescriptor fd);
  void Sweep();

  void Serve(Connection* connection);
  Next Step(Connection& connection);
  Next StepReading(Connection& connection);
  Next StepReady(Connection& connection);
  Next StepExecuting(Connection& connection);
  Next StepWriting(Connection& connection);
  Next StepLingering(Connection& connection);
  Next Refuse(Connection& connection, const Error& error, int status);
  Next Arm(Connection& connection, std::uint32_t events);
  void Close(Connection* connection);
  // Makes room by ending the connection that is nearest to its deadline. False: none has one.
  bool EvictLocked() REQUIRES(table_mutex_);
  void CountBytes(Connection& connection);
  void SetDeadline(Connection& connection, std::int64_t in_ms);
  std::int64_t NowMs() const;

  const LoopOptions options_;
  const LibraryExchange& exchange_;
  HttpMetrics& metrics_;
  AdmissionGate gate_;
  std::size_t connections_max_ = 0;

  FileDescriptor poller_, listener_, timer_, wake_up_;
  // Given to accept when descriptors have run out, so that a client is turned away and not left.
  // Locked before table_mutex_.
  Mutex spare_mutex_;
  FileDescriptor spare_ GUARDED_BY(spare_mutex_);
  std::vector<std::thread> threads_;
  // Release by Stop, acquire by the threads: nothing is published with it.
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> buffered_bytes_{0};

  // Held while a connection is armed, and taken once by the thread the poller gives it to: that
  // thread then sees all that was written before and cannot close the descriptor under the call.
  Mutex& HandOverMutex(const Connection* connection);
  std::array<Mutex, kHandOverMutexes> hand_over_mutexes_;

  Mutex table_mutex_;
  // Invariant: every open connection is in here, so that its descriptor is not another's yet.
  std::unordered_map<Connection*, std::unique_ptr<Connection>> table_ GUARDED_BY(table_mutex_);
};

}  // namespace conductor::http
