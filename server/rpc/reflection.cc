#include "server/rpc/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <set>
#include <string>
#include <utility>

#include "server/rpc/message_buffer.h"
#include "server/rpc/status.h"
#include "softlookup/v1/soft_lookup.pb.h"

// The services' .proto file has no message that other code could refer to. This reference makes the
// linker keep the file's descriptor.
[[gnu::used]] static const auto* const kServicesFile =
    &descriptor_table_softlookup_2fv1_2fsoft_5flookup_2eproto;

namespace softlookup::server {
namespace {

using google::protobuf::DescriptorPool;
using ProtoFile = google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr const char* kServices[] = {"grpc.health.v1.Health",
                                     "grpc.reflection.v1alpha.ServerReflection",
                                     "softlookup.admin.v1.Admin", "softlookup.v1.SoftLookup"};

void AddFile(const ProtoFile& file, std::set<const ProtoFile*>& added,
             ServerReflectionResponse& response) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  *response.mutable_file_descriptor_response()->add_file_descriptor_proto() =
      proto.SerializeAsString();
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, response);
}

void SetFile(const ProtoFile* file, ServerReflectionResponse& response) {
  if (file != nullptr) {
    std::set<const ProtoFile*> added;
    return AddFile(*file, added, response);
  }
  response.mutable_error_response()->set_error_code(static_cast<int>(absl::StatusCode::kNotFound));
  response.mutable_error_response()->set_error_message("There is no such name");
}

}  // namespace

ServerReflectionResponse Reflect(const ServerReflectionRequest& request) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      SetFile(pool.FindFileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      SetFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const char* service : kServices) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    default:  // No message of this server has extensions.
      SetFile(nullptr, response);
  }
  return response;
}

void ReflectionStream::Start(std::unique_ptr<Call> call) {
  const std::shared_ptr<ReflectionStream> stream(new ReflectionStream(std::move(call)));
  stream->Begin();
}

void ReflectionStream::OnRead(bool ok) {
  if (!ok) return End(absl::OkStatus());
  HandleMessage([self = shared_from_this()] { self->Answer(); });
}

void ReflectionStream::Answer() {
  ServerReflectionRequest request;
  MessageCharge charge;
  absl::Status status = call().gate().AdmitNext();
  if (status.ok()) status = call().Receive(bytes(), request, charge);
  if (!status.ok()) return End(status);
  const grpc::ByteBuffer response = BytesOf(Reflect(request));
  absl::MutexLock lock(&mutex_);
  if (finished_) return;
  writing_ = true;
  StartWrite(response);
}

void ReflectionStream::OnWritten(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok && !end_) end_ = absl::CancelledError("The caller is gone");
  if (end_) return Finish();
  StartRead();
}

void ReflectionStream::Drain() { End(ShuttingDown()); }

void ReflectionStream::Recheck() {
  const absl::Status status = call().gate().Recheck();
  if (!status.ok()) End(status);
}

void ReflectionStream::End(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (!end_) end_ = status;
  if (!writing_) Finish();
}

void ReflectionStream::Finish() {
  if (finished_) return;
  finished_ = true;
  call().rpc().Finish(call().reporter().Answer(*end_));
}

}  // namespace softlookup::server
