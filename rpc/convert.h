// Between the messages of conductor.proto and the domain's types, both ways: the server uses one
// direction of each pair, the client the other. Only the form is judged here (an integer that does
// not fit, a prompt above the limit); what a value means is the service's business.
// Pure functions; any thread may call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rpc/conductor.pb.h"
#include "src/limits.h"
#include "src/query.h"
#include "src/registration.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::rpc {

// The text itself, or, when it is not UTF-8 (a name that came from a publisher's event), the same
// with every byte outside ASCII replaced: proto3 strings are UTF-8 or the message is refused.
std::string WireText(std::string_view text);

// --- queries ----------------------------------------------------------------------------------

// The query borrows the tokens (hashes) of `request`, which must outlive it.
Result<PromptQuery> ToPromptQuery(const v1::QueryRequest& request, const Limits& limits);
Result<HashQuery> ToHashQuery(const v1::QueryByHashRequest& request, const Limits& limits);
void FillQueryRequest(const PromptQuery& query, v1::QueryRequest* request);
// The same request as bytes, appended to `out`: the tokens are copied once.
void AppendQueryRequest(const PromptQuery& query, std::string* out);
void FillQueryByHashRequest(const HashQuery& query, v1::QueryByHashRequest* request);
void FillQueryResponse(const QueryAnswer& answer, bool detail, v1::QueryResponse* response);
QueryAnswer ToQueryAnswer(const v1::QueryResponse& response);

// --- registrations ----------------------------------------------------------------------------

RegistrationRequest ToRegistrationRequest(const v1::RegisterRequest& request);
void FillRegisterRequest(const RegistrationRequest& registration, v1::RegisterRequest* request);
Result<ServiceKey> ToServiceKey(const v1::UnregisterRequest& request);

// --- views ------------------------------------------------------------------------------------

void FillServiceInfo(const ServiceView& view, v1::ServiceInfo* info);
Result<ServiceView> ToServiceView(const v1::ServiceInfo& info);
void FillContextInfo(const ContextView& view, v1::ContextInfo* info);
Result<ContextView> ToContextView(const v1::ContextInfo& info);
void FillStatus(const StatusView& view, v1::StatusResponse* response);
StatusView ToStatusView(const v1::StatusResponse& response);
void FillSnapshotInfo(const SnapshotInfo& snapshot, v1::SnapshotInfo* info);
SnapshotInfo ToSnapshotInfo(const v1::SnapshotInfo& info);

// "connecting", "catching_up", "live", "degraded"; anything newer counts as degraded.
StreamState ParseStreamState(std::string_view text);

}  // namespace conductor::rpc
