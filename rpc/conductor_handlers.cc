#include "rpc/conductor_handlers.h"

#include <grpc/slice.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "rpc/answer_wire.h"
#include "rpc/convert.h"
#include "rpc/error_detail.h"
#include "rpc/trailers.h"

namespace conductor::rpc {

namespace {

// Prompts of a batch between two looks at whether its caller is still there.
constexpr int kQueriesPerLookAtCaller = 64;

grpc::ByteBuffer BytesOf(const QueryAnswer& answer, bool detail) {
  grpc_slice bytes = grpc_empty_slice();
  const auto allocate = [&bytes](std::size_t size) {
    bytes = grpc_slice_malloc(size);
    return reinterpret_cast<char*>(GRPC_SLICE_START_PTR(bytes));
  };
  if (detail || !WritePlainAnswer(answer, allocate)) {
    v1::QueryResponse message;
    FillQueryResponse(answer, detail, &message);
    const std::size_t size = message.ByteSizeLong();
    message.SerializeToArray(allocate(size), static_cast<int>(size));
  }
  const grpc::Slice slice(bytes, grpc::Slice::STEAL_REF);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

bool IsExpired(const grpc::ServerContext& context) {
  return context.IsCancelled() || IsLate(context);
}

bool IsLate(const grpc::ServerContext& context) {
  return context.deadline() <= std::chrono::system_clock::now();
}

grpc::Status ExpiredStatus() {
  return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "the deadline passed before the call");
}

template <typename Request, typename Response>
void ConductorHandlers::Add(const char* method,
                            grpc::Status (ConductorHandlers::*function)(grpc::ServerContext*,
                                                                        const Request*,
                                                                        Response*)) {
  using Handler = ArenaMethod<ConductorHandlers, Request, Response>;
  AddMethod(new grpc::internal::RpcServiceMethod(  // the base class owns it
      method, grpc::internal::RpcMethod::NORMAL_RPC, new Handler(function, this, &arenas_)));
}

ConductorHandlers::ConductorHandlers(conductor::Service& service) : service_(service) {
  Add("/conductor.v1.Conductor/Query", &ConductorHandlers::Query);
  Add("/conductor.v1.Conductor/QueryByHash", &ConductorHandlers::QueryByHash);
  Add("/conductor.v1.Conductor/QueryBatch", &ConductorHandlers::QueryBatch);
  Add("/conductor.v1.Conductor/Register", &ConductorHandlers::Register);
  Add("/conductor.v1.Conductor/Unregister", &ConductorHandlers::Unregister);
  Add("/conductor.v1.Conductor/ListServices", &ConductorHandlers::ListServices);
  Add("/conductor.v1.Conductor/GetGlobalView", &ConductorHandlers::GetGlobalView);
}

grpc::Status ConductorHandlers::Query(grpc::ServerContext* context, const v1::QueryRequest* request,
                                      grpc::ByteBuffer* response) {
  if (IsLate(*context)) return ExpiredStatus();
  const auto query = ToPromptQuery(*request, service_.limits());
  if (!query) return FailCall(query.error(), context);
  const auto answer = service_.Query(*query);
  if (!answer) return FailCall(answer.error(), context);
  *response = BytesOf(*answer, query->options.detail);
  AddTrustTrailers(answer->log_seq, answer->degraded, context);
  return grpc::Status::OK;
}

grpc::Status ConductorHandlers::QueryByHash(grpc::ServerContext* context,
                                            const v1::QueryByHashRequest* request,
                                            grpc::ByteBuffer* response) {
  if (IsLate(*context)) return ExpiredStatus();
  const auto query = ToHashQuery(*request, service_.limits());
  if (!query) return FailCall(query.error(), context);
  const auto answer = service_.QueryByHash(*query);
  if (!answer) return FailCall(answer.error(), context);
  *response = BytesOf(*answer, query->options.detail);
  AddTrustTrailers(answer->log_seq, answer->degraded, context);
  return grpc::Status::OK;
}

grpc::Status ConductorHandlers::QueryBatch(grpc::ServerContext* context,
                                           const v1::QueryBatchRequest* request,
                                           v1::QueryBatchResponse* response) {
  const Limits& limits = service_.limits();
  if (static_cast<std::size_t>(request->queries_size()) > limits.batch_prompts_max) {
    return FailCall({ErrorCode::kResourceExhausted,
                     "queries: expected at most " + std::to_string(limits.batch_prompts_max) +
                         " prompts, got " + std::to_string(request->queries_size()),
                     "too_large", "queries", -1},
                    context);
  }
  Seq log_seq = 0;
  std::set<std::string> degraded;
  for (int i = 0; i < request->queries_size(); ++i) {
    const auto& one = request->queries(i);
    const bool ask_caller = i % kQueriesPerLookAtCaller == 0;
    if (ask_caller ? IsExpired(*context) : IsLate(*context)) return ExpiredStatus();
    const auto query = ToPromptQuery(one, limits);
    const auto answer =
        query ? service_.Query(*query) : Result<QueryAnswer>(tl::unexpected(query.error()));
    if (answer) {
      FillQueryResponse(*answer, query->options.detail,
                        response->add_answers()->mutable_response());
      log_seq = log_seq == 0 ? answer->log_seq : std::min(log_seq, answer->log_seq);
      degraded.insert(answer->degraded.begin(), answer->degraded.end());
    } else if (answer.error().code == ErrorCode::kUnavailable) {
      // Not ready is no fault of this prompt: the whole call can be tried again.
      response->Clear();
      return FailCall(answer.error(), context);
    } else {
      FillFailure(answer.error(), response->add_answers()->mutable_failure());
    }
  }
  AddTrustTrailers(log_seq, {degraded.begin(), degraded.end()}, context);
  return grpc::Status::OK;
}

grpc::Status ConductorHandlers::Register(grpc::ServerContext* context,
                                         const v1::RegisterRequest* request,
                                         v1::RegisterResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto outcome = service_.Register(ToRegistrationRequest(*request));
  if (!outcome) return FailCall(outcome.error(), context);
  response->set_status("registered successfully");
  response->set_instance_id(WireText(outcome->instance_id));
  response->set_already(outcome->already);
  return grpc::Status::OK;
}

grpc::Status ConductorHandlers::Unregister(grpc::ServerContext* context,
                                           const v1::UnregisterRequest* request,
                                           v1::UnregisterResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto key = ToServiceKey(*request);
  if (!key) return FailCall(key.error(), context);
  const auto removed = service_.Unregister(*key);
  if (!removed) return FailCall(removed.error(), context);
  response->set_status("unregistered successfully");
  response->add_removed_instances(WireText(*removed));
  return grpc::Status::OK;
}

grpc::Status ConductorHandlers::ListServices(grpc::ServerContext* context,
                                             const v1::ListServicesRequest*,
                                             v1::ListServicesResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto services = service_.ListServices();
  if (!services) return FailCall(services.error(), context);
  response->set_count(services->size());
  for (const auto& view : *services) FillServiceInfo(view, response->add_services());
  return grpc::Status::OK;
}

grpc::Status ConductorHandlers::GetGlobalView(grpc::ServerContext* context,
                                              const v1::GetGlobalViewRequest*,
                                              v1::GetGlobalViewResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto contexts = service_.GetGlobalView();
  if (!contexts) return FailCall(contexts.error(), context);
  response->set_context_count(contexts->size());
  for (const auto& view : *contexts) FillContextInfo(view, response->add_contexts());
  return grpc::Status::OK;
}

}  // namespace conductor::rpc
