#ifndef SOFTLOOKUP_TESTS_CLIENT_SCRIPTED_SERVICE_H_
#define SOFTLOOKUP_TESTS_CLIENT_SCRIPTED_SERVICE_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"

namespace softlookup::testing {

// A real gRPC server on 127.0.0.1 whose answers the test writes. A method without a handler fails
// with UNIMPLEMENTED. Handlers are set before the first call and run on gRPC's threads. One may
// still run when its client has given up, until ~ScriptedService() returns: what it refers to is
// declared before the service.
class ScriptedService final : public v1::SoftLookup::Service {
 public:
  template <typename Request, typename Response>
  using Handler = std::function<grpc::Status(grpc::ServerContext*, const Request&, Response*)>;
  template <typename Request, typename Response>
  using StreamHandler = std::function<grpc::Status(grpc::ServerContext*, const Request&,
                                                   grpc::ServerWriter<Response>*)>;
  using AppendServerStream = grpc::ServerReaderWriter<v1::AppendResponse, v1::AppendRequest>;

  // Serves plaintext, or as `credentials` say.
  explicit ScriptedService(std::shared_ptr<grpc::ServerCredentials> credentials = nullptr);
  // As Stop().
  ~ScriptedService() override;

  // Cancels what is running and waits until no handler does; nothing is answered any more.
  void Stop();

  // HOST:PORT.
  const std::string& address() const { return address_; }

  // Whether grpc.health.v1 says SERVING; it does from the start.
  void SetServing(bool serving);

  Handler<v1::CreateStoreRequest, v1::Store> create_store;
  Handler<v1::GetStoreRequest, v1::Store> get_store;
  Handler<v1::ListStoresRequest, v1::ListStoresResponse> list_stores;
  Handler<v1::UpdateStoreRequest, v1::Store> update_store;
  Handler<v1::RenameStoreRequest, v1::RenameStoreResponse> rename_store;
  Handler<v1::CompactStoreRequest, v1::CompactStoreResponse> compact_store;
  Handler<v1::DeleteStoreRequest, v1::DeleteStoreResponse> delete_store;
  Handler<v1::AppendRequest, v1::AppendResponse> append;
  Handler<v1::GetWriterRequest, v1::Writer> get_writer;
  StreamHandler<v1::ReadRowsRequest, v1::ReadRowsResponse> read_rows;
  Handler<v1::DeleteRowsRequest, v1::DeleteRowsResponse> delete_rows;
  Handler<v1::LookupRequest, v1::LookupResponse> lookup;
  Handler<v1::AttendRequest, v1::AttendResponse> attend;
  Handler<v1::GetMemoryRequest, v1::Memory> get_memory;
  StreamHandler<v1::WatchMemoryRequest, v1::Memory> watch_memory;
  std::function<grpc::Status(grpc::ServerContext*, AppendServerStream*)> stream_append;

 private:
  grpc::Status CreateStore(grpc::ServerContext*, const v1::CreateStoreRequest*,
                           v1::Store*) override;
  grpc::Status GetStore(grpc::ServerContext*, const v1::GetStoreRequest*, v1::Store*) override;
  grpc::Status ListStores(grpc::ServerContext*, const v1::ListStoresRequest*,
                          v1::ListStoresResponse*) override;
  grpc::Status UpdateStore(grpc::ServerContext*, const v1::UpdateStoreRequest*,
                           v1::Store*) override;
  grpc::Status RenameStore(grpc::ServerContext*, const v1::RenameStoreRequest*,
                           v1::RenameStoreResponse*) override;
  grpc::Status CompactStore(grpc::ServerContext*, const v1::CompactStoreRequest*,
                            v1::CompactStoreResponse*) override;
  grpc::Status DeleteStore(grpc::ServerContext*, const v1::DeleteStoreRequest*,
                           v1::DeleteStoreResponse*) override;
  grpc::Status Append(grpc::ServerContext*, const v1::AppendRequest*, v1::AppendResponse*) override;
  grpc::Status GetWriter(grpc::ServerContext*, const v1::GetWriterRequest*, v1::Writer*) override;
  grpc::Status ReadRows(grpc::ServerContext*, const v1::ReadRowsRequest*,
                        grpc::ServerWriter<v1::ReadRowsResponse>*) override;
  grpc::Status DeleteRows(grpc::ServerContext*, const v1::DeleteRowsRequest*,
                          v1::DeleteRowsResponse*) override;
  grpc::Status Lookup(grpc::ServerContext*, const v1::LookupRequest*, v1::LookupResponse*) override;
  grpc::Status Attend(grpc::ServerContext*, const v1::AttendRequest*, v1::AttendResponse*) override;
  grpc::Status GetMemory(grpc::ServerContext*, const v1::GetMemoryRequest*, v1::Memory*) override;
  grpc::Status WatchMemory(grpc::ServerContext*, const v1::WatchMemoryRequest*,
                           grpc::ServerWriter<v1::Memory>*) override;
  grpc::Status StreamAppend(grpc::ServerContext*, AppendServerStream*) override;

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// A status with the details that a softlookup server sends.
grpc::Status DetailedStatus(grpc::StatusCode code, const std::string& message,
                            const std::string& reason,
                            const std::map<std::string, std::string>& metadata = {},
                            std::optional<absl::Duration> retry_delay = std::nullopt);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_SCRIPTED_SERVICE_H_
