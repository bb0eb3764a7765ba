// Unary methods of a synchronous gRPC server whose request and answer live in one arena: parsing,
// filling and freeing them is a few bumps of a pointer, however many strings and map entries there
// are. The generated service allows that only for callback methods; those run on two threads here,
// which a registration that waits for the disk must not hold.
//
// Arenas are kept from call to call, each with the block that a prompt of usual length fits in;
// what a longer one needed beyond it is given back when its call ends. Thread-safe.
#pragma once

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/method_handler.h>

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace conductor::rpc {

// 16,000 tokens, and the answer of some hundred instances.
inline constexpr std::size_t kArenaBlockBytes = 128u << 10;
// One for each thread that may run a call; a call beyond that makes its own.
inline constexpr std::size_t kIdleArenasMax = 64;

class CallArena {
 public:
  CallArena() : block_(new char[kArenaBlockBytes]), arena_(block_.get(), kArenaBlockBytes) {}

  template <typename Message>
  Message* Make() {
    return google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }
  void Reset() { arena_.Reset(); }
  std::size_t AllocatedBytes() const { return arena_.SpaceAllocated(); }

 private:
  const std::unique_ptr<char[]> block_;
  google::protobuf::Arena arena_;
};

class ArenaPool {
 public:
  std::unique_ptr<CallArena> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto arena = std::move(idle_.back());
        idle_.pop_back();
        return arena;
      }
    }
    return std::make_unique<CallArena>();
  }
  void Give(std::unique_ptr<CallArena> arena) {
    arena->Reset();
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kIdleArenasMax) idle_.push_back(std::move(arena));
  }
  std::size_t Idle() const {
    const std::lock_guard lock(mutex_);
    return idle_.size();
  }

 private:
  mutable std::mutex mutex_;  // gRPC's headers and src/mutex.h define the same macros
  std::vector<std::unique_ptr<CallArena>> idle_;  // guarded by mutex_
};

// `Response` is a message, or grpc::ByteBuffer for a handler that writes the answer's bytes itself.
template <typename Handlers, typename Request, typename Response>
class ArenaMethod final : public grpc::internal::MethodHandler {
 public:
  using Function = grpc::Status (Handlers::*)(grpc::ServerContext*, const Request*, Response*);

  // `handlers` and `pool` must outlive the server.
  ArenaMethod(Function function, Handlers* handlers, ArenaPool* pool)
      : function_(function), handlers_(handlers), pool_(pool) {}

  // gRPC calls this and then, with what it returned, RunHandler; both on the call's thread. Null
  // when the bytes are no message: `status` then says so.
  void* Deserialize(grpc_call*, grpc_byte_buffer* bytes, grpc::Status* status, void**) override {
    auto call = std::make_unique<Call>(pool_->Take());
    google::protobuf::MessageLite* const request = call->request;
    if (grpc::internal::UnaryDeserializeHelper(bytes, status, request) != nullptr) {
      return call.release();
    }
    pool_->Give(std::move(call->arena));
    return nullptr;
  }

  void RunHandler(const HandlerParameter& parameter) override {
    const std::unique_ptr<Call> call(static_cast<Call*>(parameter.request));
    grpc::Status status = parameter.status;
    auto* const context = static_cast<grpc::ServerContext*>(parameter.server_context);
    if constexpr (std::is_same_v<Response, grpc::ByteBuffer>) {
      grpc::ByteBuffer response;
      if (status.ok()) status = Run(context, call->request, &response);
      grpc::internal::UnaryRunHandlerHelper(parameter, &response, status);
    } else {
      const google::protobuf::MessageLite* response = nullptr;
      if (status.ok()) {
        auto* filled = call->arena->template Make<Response>();
        response = filled;
        status = Run(context, call->request, filled);
      }
      grpc::internal::UnaryRunHandlerHelper(parameter, response, status);
    }
    if (call != nullptr) pool_->Give(std::move(call->arena));
  }

 private:
  // What a handler throws (out of memory, say) is this call's loss alone.
  grpc::Status Run(grpc::ServerContext* context, const Request* request, Response* response) {
    try {
      return (handlers_->*function_)(context, request, response);
    } catch (...) {
      return grpc::Status(grpc::StatusCode::UNKNOWN, "unexpected error in a handler");
    }
  }

  struct Call {
    explicit Call(std::unique_ptr<CallArena> taken)
        : arena(std::move(taken)), request(arena->template Make<Request>()) {}
    std::unique_ptr<CallArena> arena;
    Request* request;
  };

  const Function function_;
  Handlers* const handlers_;
  ArenaPool* const pool_;
};

}  // namespace conductor::rpc
