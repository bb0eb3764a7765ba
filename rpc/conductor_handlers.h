// conductor.v1.Conductor over a Service: convert, call, convert. gRPC calls the methods from its
// own threads, many at once; the class has no state besides the borrowed service.
#pragma once

#include "rpc/conductor.grpc.pb.h"
#include "src/service.h"

namespace conductor::rpc {

// True when nobody waits for the answer any more: the deadline is over or the caller is gone.
// Such a call is dropped before it costs anything.
bool IsExpired(const grpc::ServerContext& context);
grpc::Status ExpiredStatus();

class ConductorHandlers final : public v1::Conductor::Service {
 public:
  // `service` must outlive the server.
  explicit ConductorHandlers(conductor::Service& service) : service_(service) {}

  grpc::Status Query(grpc::ServerContext* context, const v1::QueryRequest* request,
                     v1::QueryResponse* response) override;
  grpc::Status QueryByHash(grpc::ServerContext* context, const v1::QueryByHashRequest* request,
                           v1::QueryResponse* response) override;
  grpc::Status QueryBatch(grpc::ServerContext* context, const v1::QueryBatchRequest* request,
                          v1::QueryBatchResponse* response) override;
  grpc::Status Register(grpc::ServerContext* context, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override;
  grpc::Status Unregister(grpc::ServerContext* context, const v1::UnregisterRequest* request,
                          v1::UnregisterResponse* response) override;
  grpc::Status ListServices(grpc::ServerContext* context, const v1::ListServicesRequest* request,
                            v1::ListServicesResponse* response) override;
  grpc::Status GetGlobalView(grpc::ServerContext* context, const v1::GetGlobalViewRequest* request,
                             v1::GetGlobalViewResponse* response) override;

 private:
  conductor::Service& service_;
};

}  // namespace conductor::rpc
