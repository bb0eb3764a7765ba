// A TCP server that does exactly what a test says, for peers that no honest gRPC server imitates:
// silent ones, ones that close, ones that answer with another protocol.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace conductor::rpc {

class RawServer {
 public:
  // Runs `serve` for each accepted connection, one after the other, on a thread of its own. The
  // descriptor is closed when it returns. Without `serve` nothing is ever accepted: the kernel
  // completes the handshake and nobody answers.
  explicit RawServer(std::function<void(int fd)> serve = nullptr);
  ~RawServer();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int accepted() const { return accepted_; }

 private:
  int listen_fd_;
  int port_ = 0;
  std::atomic<int> accepted_{0};  // written by the thread, read by the test: no data hangs on it
  std::thread thread_;
};

// Reads until the peer closes or resets.
void ReadToEnd(int fd);
void WriteAll(int fd, const std::string& bytes);

}  // namespace conductor::rpc
