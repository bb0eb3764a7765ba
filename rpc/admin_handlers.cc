#include "rpc/admin_handlers.h"

#include <algorithm>

#include "rpc/conductor_handlers.h"
#include "rpc/convert.h"
#include "rpc/trailers.h"

namespace conductor::rpc {
namespace {

void FillLines(const std::vector<std::string>& lines, v1::InspectResponse* response) {
  for (const auto& line : lines) response->add_lines(WireText(line));
}

}  // namespace

grpc::Status AdminHandlers::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                                      v1::StatusResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto status = service_.GetStatus();
  if (!status) return FailCall(status.error(), context);
  FillStatus(*status, response);
  return grpc::Status::OK;
}

grpc::Status AdminHandlers::CreateSnapshot(grpc::ServerContext* context,
                                           const v1::CreateSnapshotRequest*,
                                           v1::SnapshotInfo* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto snapshot = service_.CreateSnapshot();
  if (!snapshot) return FailCall(snapshot.error(), context);
  FillSnapshotInfo(*snapshot, response);
  return grpc::Status::OK;
}

grpc::Status AdminHandlers::ListSnapshots(grpc::ServerContext* context,
                                          const v1::ListSnapshotsRequest*,
                                          v1::ListSnapshotsResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto snapshots = service_.ListSnapshots();
  if (!snapshots) return FailCall(snapshots.error(), context);
  for (const auto& snapshot : *snapshots) FillSnapshotInfo(snapshot, response->add_snapshots());
  return grpc::Status::OK;
}

grpc::Status AdminHandlers::PruneSnapshots(grpc::ServerContext* context,
                                           const v1::PruneSnapshotsRequest* request,
                                           v1::PruneSnapshotsResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto removed = service_.PruneSnapshots(request->keep());
  if (!removed) return FailCall(removed.error(), context);
  for (const auto& snapshot : *removed) FillSnapshotInfo(snapshot, response->add_removed());
  return grpc::Status::OK;
}

grpc::Status AdminHandlers::CreateCheckpoint(grpc::ServerContext* context,
                                             const v1::CreateCheckpointRequest*,
                                             v1::SnapshotInfo* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto checkpoint = service_.CreateCheckpoint();
  if (!checkpoint) return FailCall(checkpoint.error(), context);
  FillSnapshotInfo(*checkpoint, response);
  return grpc::Status::OK;
}

grpc::Status AdminHandlers::RemoveCheckpoint(grpc::ServerContext* context,
                                             const v1::RemoveCheckpointRequest* request,
                                             v1::RemoveCheckpointResponse*) {
  if (IsExpired(*context)) return ExpiredStatus();
  const Status removed = service_.RemoveCheckpoint(request->path());
  return removed ? grpc::Status::OK : FailCall(removed.error(), context);
}

grpc::Status AdminHandlers::InspectLog(grpc::ServerContext* context,
                                       const v1::InspectLogRequest* request,
                                       v1::InspectResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto found = service_.InspectLog(
      request->from(), std::min(request->count_max(), kInspectRecordsMax), request->stream());
  if (!found) return FailCall(found.error(), context);
  FillLines(found->lines, response);
  response->set_next(found->next);
  response->set_last(found->last);
  return grpc::Status::OK;
}

grpc::Status AdminHandlers::InspectBlock(grpc::ServerContext* context,
                                         const v1::InspectBlockRequest* request,
                                         v1::InspectResponse* response) {
  if (IsExpired(*context)) return ExpiredStatus();
  const auto lines = service_.InspectBlock(request->hash());
  if (!lines) return FailCall(lines.error(), context);
  FillLines(*lines, response);
  return grpc::Status::OK;
}

}  // namespace conductor::rpc
