#include "tests/client/scripted_service.h"

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace softlookup::testing {
namespace {

template <typename Handler, typename... Arguments>
grpc::Status Run(const Handler& handler, Arguments&&... arguments) {
  if (!handler) return {grpc::StatusCode::UNIMPLEMENTED, "the test wrote no answer to this call"};
  return handler(std::forward<Arguments>(arguments)...);
}

}  // namespace

ScriptedService::ScriptedService(std::shared_ptr<grpc::ServerCredentials> credentials) {
  if (credentials == nullptr) credentials = grpc::InsecureServerCredentials();
  grpc::EnableDefaultHealthCheckService(true);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port);
  builder.SetMaxReceiveMessageSize(64 << 20);  // As the real server.
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  server_->GetHealthCheckService()->SetServingStatus(v1::SoftLookup::service_full_name(), true);
  address_ = absl::StrCat("127.0.0.1:", port);
}

ScriptedService::~ScriptedService() { Stop(); }

void ScriptedService::Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

void ScriptedService::SetServing(bool serving) {
  server_->GetHealthCheckService()->SetServingStatus(serving);
}

grpc::Status ScriptedService::CreateStore(grpc::ServerContext* context,
                                          const v1::CreateStoreRequest* request,
                                          v1::Store* response) {
  return Run(create_store, context, *request, response);
}

grpc::Status ScriptedService::GetStore(grpc::ServerContext* context,
                                       const v1::GetStoreRequest* request, v1::Store* response) {
  return Run(get_store, context, *request, response);
}

grpc::Status ScriptedService::ListStores(grpc::ServerContext* context,
                                         const v1::ListStoresRequest* request,
                                         v1::ListStoresResponse* response) {
  return Run(list_stores, context, *request, response);
}

grpc::Status ScriptedService::UpdateStore(grpc::ServerContext* context,
                                          const v1::UpdateStoreRequest* request,
                                          v1::Store* response) {
  return Run(update_store, context, *request, response);
}

grpc::Status ScriptedService::RenameStore(grpc::ServerContext* context,
                                          const v1::RenameStoreRequest* request,
                                          v1::RenameStoreResponse* response) {
  return Run(rename_store, context, *request, response);
}

grpc::Status ScriptedService::CompactStore(grpc::ServerContext* context,
                                           const v1::CompactStoreRequest* request,
                                           v1::CompactStoreResponse* response) {
  return Run(compact_store, context, *request, response);
}

grpc::Status ScriptedService::DeleteStore(grpc::ServerContext* context,
                                          const v1::DeleteStoreRequest* request,
                                          v1::DeleteStoreResponse* response) {
  return Run(delete_store, context, *request, response);
}

grpc::Status ScriptedService::Append(grpc::ServerContext* context, const v1::AppendRequest* request,
                                     v1::AppendResponse* response) {
  return Run(append, context, *request, response);
}

grpc::Status ScriptedService::GetWriter(grpc::ServerContext* context,
                                        const v1::GetWriterRequest* request, v1::Writer* response) {
  return Run(get_writer, context, *request, response);
}

grpc::Status ScriptedService::ReadRows(grpc::ServerContext* context,
                                       const v1::ReadRowsRequest* request,
                                       grpc::ServerWriter<v1::ReadRowsResponse>* stream) {
  return Run(read_rows, context, *request, stream);
}

grpc::Status ScriptedService::DeleteRows(grpc::ServerContext* context,
                                         const v1::DeleteRowsRequest* request,
                                         v1::DeleteRowsResponse* response) {
  return Run(delete_rows, context, *request, response);
}

grpc::Status ScriptedService::Lookup(grpc::ServerContext* context, const v1::LookupRequest* request,
                                     v1::LookupResponse* response) {
  return Run(lookup, context, *request, response);
}

grpc::Status ScriptedService::Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                                     v1::AttendResponse* response) {
  return Run(attend, context, *request, response);
}

grpc::Status ScriptedService::GetMemory(grpc::ServerContext* context,
                                        const v1::GetMemoryRequest* request, v1::Memory* response) {
  return Run(get_memory, context, *request, response);
}

grpc::Status ScriptedService::WatchMemory(grpc::ServerContext* context,
                                          const v1::WatchMemoryRequest* request,
                                          grpc::ServerWriter<v1::Memory>* stream) {
  return Run(watch_memory, context, *request, stream);
}

grpc::Status ScriptedService::StreamAppend(grpc::ServerContext* context,
                                           AppendServerStream* stream) {
  return Run(stream_append, context, stream);
}

grpc::Status DetailedStatus(grpc::StatusCode code, const std::string& message,
                            const std::string& reason,
                            const std::map<std::string, std::string>& metadata,
                            std::optional<absl::Duration> retry_delay) {
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("softlookup");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  details.add_details()->PackFrom(info);
  if (retry_delay.has_value()) {
    google::rpc::RetryInfo retry;
    absl::Duration rest;
    retry.mutable_retry_delay()->set_seconds(
        absl::IDivDuration(*retry_delay, absl::Seconds(1), &rest));
    retry.mutable_retry_delay()->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(rest)));
    details.add_details()->PackFrom(retry);
  }
  return {code, message, details.SerializeAsString()};
}

}  // namespace softlookup::testing
