// conductor.v1.Conductor over a Service: convert, call, convert. gRPC calls the methods from its
// own threads, many at once; the class has no state besides the borrowed service.
#pragma once

#include "rpc/arena_method.h"
#include "rpc/conductor.grpc.pb.h"
#include "src/service.h"

namespace conductor::rpc {

// True when nobody waits for the answer any more: the deadline is over or the caller is gone.
// Such a call is dropped before it costs anything. Asking for the caller costs several times what
// a query does (gRPC polls the connection), so queries ask IsLate.
bool IsExpired(const grpc::ServerContext& context);
bool IsLate(const grpc::ServerContext& context);
grpc::Status ExpiredStatus();

class ConductorHandlers final : public grpc::Service {
 public:
  // `service` must outlive the server.
  explicit ConductorHandlers(conductor::Service& service);

  // The two write a v1.QueryResponse.
  grpc::Status Query(grpc::ServerContext* context, const v1::QueryRequest* request,
                     grpc::ByteBuffer* response);
  grpc::Status QueryByHash(grpc::ServerContext* context, const v1::QueryByHashRequest* request,
                           grpc::ByteBuffer* response);
  grpc::Status QueryBatch(grpc::ServerContext* context, const v1::QueryBatchRequest* request,
                          v1::QueryBatchResponse* response);
  grpc::Status Register(grpc::ServerContext* context, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response);
  grpc::Status Unregister(grpc::ServerContext* context, const v1::UnregisterRequest* request,
                          v1::UnregisterResponse* response);
  grpc::Status ListServices(grpc::ServerContext* context, const v1::ListServicesRequest* request,
                            v1::ListServicesResponse* response);
  grpc::Status GetGlobalView(grpc::ServerContext* context, const v1::GetGlobalViewRequest* request,
                             v1::GetGlobalViewResponse* response);

 private:
  template <typename Request, typename Response>
  void Add(const char* method,
           grpc::Status (ConductorHandlers::*function)(grpc::ServerContext*, const Request*,
                                                       Response*));

  conductor::Service& service_;
  ArenaPool arenas_;
};

}  // namespace conductor::rpc
