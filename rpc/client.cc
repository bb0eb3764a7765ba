#include "rpc/client.h"

#include <google/protobuf/arena.h>

#include <array>
#include <utility>

#include "rpc/answer_wire.h"
#include "rpc/channel.h"
#include "rpc/convert.h"
#include "rpc/error_detail.h"

namespace conductor::rpc {
namespace {

#define CONDUCTOR_METHOD(name) "/conductor.v1.Conductor/" name
#define ADMIN_METHOD(name) "/conductor.v1.Admin/" name
constexpr Channel::Method kQuery{CONDUCTOR_METHOD("Query"), Repeatable::kYes};
constexpr Channel::Method kQueryByHash{CONDUCTOR_METHOD("QueryByHash"), Repeatable::kYes};
constexpr Channel::Method kQueryBatch{CONDUCTOR_METHOD("QueryBatch"), Repeatable::kYes};
// Registering the identical configuration again changes nothing; unregistering again is an error.
constexpr Channel::Method kRegister{CONDUCTOR_METHOD("Register"), Repeatable::kYes};
constexpr Channel::Method kUnregister{CONDUCTOR_METHOD("Unregister"), Repeatable::kNo};
constexpr Channel::Method kListServices{CONDUCTOR_METHOD("ListServices"), Repeatable::kYes};
constexpr Channel::Method kGetGlobalView{CONDUCTOR_METHOD("GetGlobalView"), Repeatable::kYes};
constexpr Channel::Method kGetStatus{ADMIN_METHOD("GetStatus"), Repeatable::kYes};
constexpr Channel::Method kCreateSnapshot{ADMIN_METHOD("CreateSnapshot"), Repeatable::kNo};
constexpr Channel::Method kListSnapshots{ADMIN_METHOD("ListSnapshots"), Repeatable::kYes};
constexpr Channel::Method kPruneSnapshots{ADMIN_METHOD("PruneSnapshots"), Repeatable::kNo};
constexpr Channel::Method kCreateCheckpoint{ADMIN_METHOD("CreateCheckpoint"), Repeatable::kNo};
constexpr Channel::Method kRemoveCheckpoint{ADMIN_METHOD("RemoveCheckpoint"), Repeatable::kNo};
constexpr Channel::Method kInspectLog{ADMIN_METHOD("InspectLog"), Repeatable::kYes};
constexpr Channel::Method kInspectBlock{ADMIN_METHOD("InspectBlock"), Repeatable::kYes};
#undef CONDUCTOR_METHOD
#undef ADMIN_METHOD

// protobuf counts in int; the server's own limit is far lower.
constexpr std::size_t kRequestBytesMax = std::size_t{1} << 30;
// On the stack of a query: the parsed answer of some dozens of instances; more goes on the heap.
constexpr std::size_t kAnswerBlockBytes = 16u << 10;

Status CheckSize(std::size_t bytes) {
  if (bytes <= kRequestBytesMax) return {};
  return tl::unexpected(Error{ErrorCode::kResourceExhausted,
                              "request: expected at most " + std::to_string(kRequestBytesMax) +
                                  " bytes, got " + std::to_string(bytes),
                              "too_large", "", -1});
}

Status Parse(const Channel::Method& method, const std::string& reply,
             google::protobuf::MessageLite* response) {
  if (response->ParseFromString(reply)) return {};
  return MakeError(ErrorCode::kInternal,
                   std::string(method.path) + ": the server's answer cannot be decoded");
}

template <typename Response, typename Request>
Result<Response> Call(const Channel& channel, const Channel::Method& method, const Request& message,
                      std::uint32_t timeout_ms) {
  const std::size_t bytes = message.ByteSizeLong();
  CONDUCTOR_RETURN_IF_ERROR(CheckSize(bytes));
  std::string request(Channel::kPrefixBytes, '\0');
  request.reserve(Channel::kPrefixBytes + bytes);
  message.AppendToString(&request);
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string reply, channel.Call(method, &request, timeout_ms));
  Response response;
  CONDUCTOR_RETURN_IF_ERROR(Parse(method, reply, &response));
  return response;
}

template <typename View, typename List, typename Convert>
Result<std::vector<View>> ConvertAll(const List& list, Convert convert) {
  std::vector<View> views;
  views.reserve(static_cast<std::size_t>(list.size()));
  for (const auto& one : list) {
    auto view = convert(one);
    if (!view) return tl::unexpected(view.error());
    views.push_back(*std::move(view));
  }
  return views;
}

std::vector<SnapshotInfo> ToSnapshotInfos(
    const google::protobuf::RepeatedPtrField<v1::SnapshotInfo>& list) {
  std::vector<SnapshotInfo> snapshots;
  for (const auto& info : list) snapshots.push_back(ToSnapshotInfo(info));
  return snapshots;
}

std::vector<std::string> ToLines(const v1::InspectResponse& response) {
  return {response.lines().begin(), response.lines().end()};
}

}  // namespace

RpcClient::RpcClient(std::unique_ptr<Channel> channel, std::uint32_t request_timeout_ms)
    : channel_(std::move(channel)), request_timeout_ms_(request_timeout_ms) {}

RpcClient::~RpcClient() = default;

Result<std::unique_ptr<RpcClient>> RpcClient::Connect(const std::string& address,
                                                      const Options& options) {
  auto channel = Channel::Open(address, options.connect_timeout_ms);
  if (!channel) return tl::unexpected(channel.error());
  return std::unique_ptr<RpcClient>(new RpcClient(*std::move(channel), options.request_timeout_ms));
}

Result<QueryAnswer> RpcClient::Query(const PromptQuery& query) const {
  std::string request(Channel::kPrefixBytes, '\0');
  AppendQueryRequest(query, &request);
  CONDUCTOR_RETURN_IF_ERROR(CheckSize(request.size()));
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string reply,
                             channel_->Call(kQuery, &request, request_timeout_ms_));
  if (auto answer = ReadPlainAnswer(reply)) return *std::move(answer);
  std::array<char, kAnswerBlockBytes> block;
  google::protobuf::Arena arena(block.data(), block.size());
  auto* response = google::protobuf::Arena::CreateMessage<v1::QueryResponse>(&arena);
  CONDUCTOR_RETURN_IF_ERROR(Parse(kQuery, reply, response));
  return ToQueryAnswer(*response);
}

Result<QueryAnswer> RpcClient::QueryByHash(const HashQuery& query) const {
  v1::QueryByHashRequest request;
  FillQueryByHashRequest(query, &request);
  auto response = Call<v1::QueryResponse>(*channel_, kQueryByHash, request, request_timeout_ms_);
  return response.map(ToQueryAnswer);
}

Result<std::vector<Result<QueryAnswer>>> RpcClient::QueryBatch(
    std::span<const PromptQuery> queries) const {
  v1::QueryBatchRequest request;
  for (const auto& query : queries) FillQueryRequest(query, request.add_queries());
  auto response =
      Call<v1::QueryBatchResponse>(*channel_, kQueryBatch, request, request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  std::vector<Result<QueryAnswer>> answers;
  for (const auto& answer : response->answers()) {
    if (answer.has_failure()) {
      answers.push_back(tl::unexpected(ErrorOfFailure(answer.failure())));
    } else {
      answers.push_back(ToQueryAnswer(answer.response()));
    }
  }
  if (answers.size() != queries.size()) {
    return MakeError(ErrorCode::kInternal, "query batch: expected " +
                                               std::to_string(queries.size()) + " answers, got " +
                                               std::to_string(answers.size()));
  }
  return answers;
}

Result<RegisterOutcome> RpcClient::Register(const RegistrationRequest& registration) const {
  v1::RegisterRequest request;
  FillRegisterRequest(registration, &request);
  auto response = Call<v1::RegisterResponse>(*channel_, kRegister, request, request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return RegisterOutcome{response->instance_id(), response->already()};
}

Result<std::string> RpcClient::Unregister(const std::string& instance_id,
                                          const std::string& tenant_id,
                                          std::int64_t dp_rank) const {
  v1::UnregisterRequest request;
  request.set_instance_id(instance_id);
  request.set_tenant_id(tenant_id);
  request.set_dp_rank(dp_rank);
  auto response =
      Call<v1::UnregisterResponse>(*channel_, kUnregister, request, request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return response->removed_instances_size() > 0 ? response->removed_instances(0) : std::string();
}

Result<std::vector<ServiceView>> RpcClient::ListServices() const {
  auto response = Call<v1::ListServicesResponse>(*channel_, kListServices,
                                                 v1::ListServicesRequest(), request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return ConvertAll<ServiceView>(response->services(), ToServiceView);
}

Result<std::vector<ContextView>> RpcClient::GetGlobalView() const {
  auto response = Call<v1::GetGlobalViewResponse>(*channel_, kGetGlobalView,
                                                  v1::GetGlobalViewRequest(), request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return ConvertAll<ContextView>(response->contexts(), ToContextView);
}

Result<StatusView> RpcClient::GetStatus() const {
  auto response =
      Call<v1::StatusResponse>(*channel_, kGetStatus, v1::GetStatusRequest(), request_timeout_ms_);
  return response.map(ToStatusView);
}

Result<SnapshotInfo> RpcClient::CreateSnapshot() const {
  auto response = Call<v1::SnapshotInfo>(*channel_, kCreateSnapshot, v1::CreateSnapshotRequest(),
                                         request_timeout_ms_);
  return response.map(ToSnapshotInfo);
}

Result<std::vector<SnapshotInfo>> RpcClient::ListSnapshots() const {
  auto response = Call<v1::ListSnapshotsResponse>(*channel_, kListSnapshots,
                                                  v1::ListSnapshotsRequest(), request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return ToSnapshotInfos(response->snapshots());
}

Result<std::vector<SnapshotInfo>> RpcClient::PruneSnapshots(std::uint32_t keep) const {
  v1::PruneSnapshotsRequest request;
  request.set_keep(keep);
  auto response =
      Call<v1::PruneSnapshotsResponse>(*channel_, kPruneSnapshots, request, request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return ToSnapshotInfos(response->removed());
}

Result<SnapshotInfo> RpcClient::CreateCheckpoint() const {
  auto response = Call<v1::SnapshotInfo>(*channel_, kCreateCheckpoint,
                                         v1::CreateCheckpointRequest(), request_timeout_ms_);
  return response.map(ToSnapshotInfo);
}

Status RpcClient::RemoveCheckpoint(const std::string& path) const {
  v1::RemoveCheckpointRequest request;
  request.set_path(path);
  auto response = Call<v1::RemoveCheckpointResponse>(*channel_, kRemoveCheckpoint, request,
                                                     request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return {};
}

Result<Service::LogLines> RpcClient::InspectLog(Seq from, std::uint32_t count_max,
                                                StreamId stream) const {
  v1::InspectLogRequest request;
  request.set_from(from);
  request.set_count_max(count_max);
  request.set_stream(stream);
  auto response = Call<v1::InspectResponse>(*channel_, kInspectLog, request, request_timeout_ms_);
  if (!response) return tl::unexpected(response.error());
  return Service::LogLines{ToLines(*response), response->next(), response->last()};
}

Result<std::vector<std::string>> RpcClient::InspectBlock(std::uint64_t hash) const {
  v1::InspectBlockRequest request;
  request.set_hash(hash);
  auto response = Call<v1::InspectResponse>(*channel_, kInspectBlock, request, request_timeout_ms_);
  return response.map(ToLines);
}

}  // namespace conductor::rpc
