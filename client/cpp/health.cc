#include "client/cpp/health.h"

#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

namespace softlookup::client_internal {
namespace {

constexpr int kServiceField = 1;  // string HealthCheckRequest.service
constexpr int kStatusField = 1;   // enum HealthCheckResponse.status

bool ParseStatus(grpc::ByteBuffer* message, ServingStatus* serving) {
  std::vector<grpc::Slice> slices;
  if (!message->Dump(&slices).ok()) return false;
  std::string bytes;
  for (const auto& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  google::protobuf::UnknownFieldSet response;
  if (!response.ParseFromString(bytes)) return false;
  *serving = ServingStatus::kUnknown;
  for (int i = 0; i < response.field_count(); ++i) {
    const auto& field = response.field(i);
    if (field.number() == kStatusField &&
        field.type() == google::protobuf::UnknownField::TYPE_VARINT && field.varint() <= 3) {
      *serving = static_cast<ServingStatus>(field.varint());
    }
  }
  return true;
}

}  // namespace

grpc::Status CheckHealth(const std::shared_ptr<grpc::ChannelInterface>& channel,
                         grpc::ClientContext* context, std::string_view service,
                         ServingStatus* serving) {
  std::string bytes;
  if (!service.empty()) {
    google::protobuf::UnknownFieldSet request;
    request.AddLengthDelimited(kServiceField, std::string(service));
    if (!request.SerializeToString(&bytes)) return {grpc::StatusCode::INTERNAL, "health request"};
  }
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Notification done;
  grpc::GenericStub stub(channel);
  stub.UnaryCall(context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](grpc::Status result) {
                   status = std::move(result);
                   done.Notify();
                 });
  done.WaitForNotification();
  if (status.ok() && !ParseStatus(&response, serving)) {
    return {grpc::StatusCode::INTERNAL, "the answer to the health check does not parse"};
  }
  return status;
}

}  // namespace softlookup::client_internal
