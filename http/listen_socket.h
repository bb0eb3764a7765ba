// The listening TCP socket, opened so that a second daemon on the same port fails: SO_REUSEADDR
// (a restart need not wait for old connections), never SO_REUSEPORT.
#pragma once

#include <cstdint>
#include <string>

#include "src/result.h"

namespace conductor::http {

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool IsOpen() const { return fd_ >= 0; }
  void Close();
  int Release();

 private:
  int fd_ = -1;
};

struct ListenSocket {
  FileDescriptor fd;
  std::uint16_t port = 0;
};

// `address`: a name or address, IPv6 with or without brackets. `port` 0: any free one. The error
// names the address, the port and the system's reason.
Result<ListenSocket> OpenListenSocket(const std::string& address, int port);

}  // namespace conductor::http
