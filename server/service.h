#ifndef SOFTLOOKUP_SERVER_SERVICE_H_
#define SOFTLOOKUP_SERVER_SERVICE_H_

#include <cstdint>
#include <string>

#include "server/call.h"
#include "softlookup/engine.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::server {

class UnaryCall;

// The methods of the wire contract: decode, call the engine, encode. Thread-safe.
class SoftLookupService final : public v1::SoftLookup::CallbackService {
 public:
  // Both must outlive the service. `calls` hears of every call from its first handler to its last
  // byte, and a callback of the engine may still hold one.
  SoftLookupService(CallTracker& calls, Engine& engine) : calls_(calls), engine_(engine) {}

  grpc::ServerUnaryReactor* CreateStore(grpc::CallbackServerContext* context,
                                        const v1::CreateStoreRequest* request,
                                        v1::Store* response) override;
  grpc::ServerUnaryReactor* GetStore(grpc::CallbackServerContext* context,
                                     const v1::GetStoreRequest* request,
                                     v1::Store* response) override;
  grpc::ServerUnaryReactor* ListStores(grpc::CallbackServerContext* context,
                                       const v1::ListStoresRequest* request,
                                       v1::ListStoresResponse* response) override;
  grpc::ServerUnaryReactor* UpdateStore(grpc::CallbackServerContext* context,
                                        const v1::UpdateStoreRequest* request,
                                        v1::Store* response) override;
  grpc::ServerUnaryReactor* DeleteStore(grpc::CallbackServerContext* context,
                                        const v1::DeleteStoreRequest* request,
                                        v1::DeleteStoreResponse* response) override;
  grpc::ServerUnaryReactor* Append(grpc::CallbackServerContext* context,
                                   const v1::AppendRequest* request,
                                   v1::AppendResponse* response) override;
  grpc::ServerUnaryReactor* GetWriter(grpc::CallbackServerContext* context,
                                      const v1::GetWriterRequest* request,
                                      v1::Writer* response) override;
  grpc::ServerBidiReactor<v1::AppendRequest, v1::AppendResponse>* StreamAppend(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::ReadRowsResponse>* ReadRows(
      grpc::CallbackServerContext* context, const v1::ReadRowsRequest* request) override;
  grpc::ServerUnaryReactor* DeleteRows(grpc::CallbackServerContext* context,
                                       const v1::DeleteRowsRequest* request,
                                       v1::DeleteRowsResponse* response) override;
  grpc::ServerUnaryReactor* Lookup(grpc::CallbackServerContext* context,
                                   const v1::LookupRequest* request,
                                   v1::LookupResponse* response) override;
  grpc::ServerBidiReactor<v1::LookupRequest, v1::LookupResponse>* StreamLookup(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Attend(grpc::CallbackServerContext* context,
                                   const v1::AttendRequest* request,
                                   v1::AttendResponse* response) override;
  grpc::ServerUnaryReactor* GetMemory(grpc::CallbackServerContext* context,
                                      const v1::GetMemoryRequest* request,
                                      v1::Memory* response) override;

  grpc::ServerWriteReactor<v1::Memory>* WatchMemory(grpc::CallbackServerContext* context,
                                                    const v1::WatchMemoryRequest* request) override;

 private:
  // SHUTTING_DOWN if the server stops, TENANT_RATE if the tenant of `store` has had as many
  // requests, or rows, as it may.
  absl::Status Admit(const std::string& store, std::int64_t rows = 0);
  absl::Status StartAppend(const grpc::CallbackServerContext& context,
                           const v1::AppendRequest& request, v1::AppendResponse& response,
                           UnaryCall& reactor);

  CallTracker& calls_;
  Engine& engine_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SERVICE_H_
