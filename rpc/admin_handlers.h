// conductor.v1.Admin over a Service: what conductorctl asks for. gRPC calls the methods from its
// own threads, many at once; the class has no state besides the borrowed service.
#pragma once

#include "rpc/conductor.grpc.pb.h"
#include "src/service.h"

namespace conductor::rpc {

// Records of one InspectLog call, each with up to limits.group_frames_max lines; a caller that wants
// more asks again from the answer's `next`.
inline constexpr std::uint32_t kInspectRecordsMax = 256;

class AdminHandlers final : public v1::Admin::Service {
 public:
  // `service` must outlive the server.
  explicit AdminHandlers(conductor::Service& service) : service_(service) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::StatusResponse* response) override;
  grpc::Status CreateSnapshot(grpc::ServerContext* context,
                              const v1::CreateSnapshotRequest* request,
                              v1::SnapshotInfo* response) override;
  grpc::Status ListSnapshots(grpc::ServerContext* context, const v1::ListSnapshotsRequest* request,
                             v1::ListSnapshotsResponse* response) override;
  grpc::Status PruneSnapshots(grpc::ServerContext* context,
                              const v1::PruneSnapshotsRequest* request,
                              v1::PruneSnapshotsResponse* response) override;
  grpc::Status CreateCheckpoint(grpc::ServerContext* context,
                                const v1::CreateCheckpointRequest* request,
                                v1::SnapshotInfo* response) override;
  grpc::Status RemoveCheckpoint(grpc::ServerContext* context,
                                const v1::RemoveCheckpointRequest* request,
                                v1::RemoveCheckpointResponse* response) override;
  grpc::Status InspectLog(grpc::ServerContext* context, const v1::InspectLogRequest* request,
                          v1::InspectResponse* response) override;
  grpc::Status InspectBlock(grpc::ServerContext* context, const v1::InspectBlockRequest* request,
                            v1::InspectResponse* response) override;

 private:
  conductor::Service& service_;
};

}  // namespace conductor::rpc
