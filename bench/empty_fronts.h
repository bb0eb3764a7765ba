// Front ends that do nothing: what a library's server costs before a handler does anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/result.h"

namespace conductor::bench {

// cpp-httplib with a handler that reads the body and answers nothing.
class EmptyHttpServer {
 public:
  static Result<std::unique_ptr<EmptyHttpServer>> Start();
  ~EmptyHttpServer();
  std::uint16_t port() const;

 private:
  struct Parts;
  explicit EmptyHttpServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// grpc++ with a Conductor.Query that answers an empty message; threads as RpcServer has them.
class EmptyRpcServer {
 public:
  static Result<std::unique_ptr<EmptyRpcServer>> Start();
  ~EmptyRpcServer();
  std::string address() const;

 private:
  struct Parts;
  explicit EmptyRpcServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace conductor::bench
