#include "tests/fuzz/request_fuzz.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/codec.h"
#include "server/rpc/message_scans.h"
#include "server/rpc/store_codec.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"
#include "tests/fuzz/wire_facts.h"

namespace softlookup::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Reads every element, for AddressSanitizer.
void Read(const MatrixView& view) {
  volatile float last = 0;
  for (std::int64_t i = 0; i < view.rows * view.cols; ++i) last = view.data[i];
  (void)last;
}

void Read(const std::optional<MatrixView>& view) {
  if (view) Read(*view);
}

// What the server does with a request between parsing it and asking the engine. OK where that is
// nothing.

absl::Status Decode(const Message&) { return absl::OkStatus(); }

absl::Status Decode(const v1::CreateStoreRequest& request) {
  const auto config = server::DecodeStore(request.store());
  if (!config.ok()) return config.status();
  // What is answered decodes to the same.
  const v1::Store encoded = server::EncodeStore({.config = *config});
  const auto again = server::DecodeStore(encoded);
  REQUIRE(again.ok());
  const v1::Store encoded_again = server::EncodeStore({.config = *again});
  REQUIRE(encoded_again.ByteSizeLong() == encoded.ByteSizeLong());
  return server::CheckStoreBytes(*config, Limits().message_bytes_max);
}

absl::Status Decode(const v1::UpdateStoreRequest& request) {
  return server::DecodeUpdate(request).status();
}

absl::Status Decode(const v1::AppendRequest& request) {
  server::DecodedAppend decoded;
  const absl::Status status = server::DecodeAppend(request, "store", decoded);
  if (!status.ok()) return status;
  REQUIRE(!decoded.request.store.empty());
  REQUIRE(decoded.request.row_labels.size() == static_cast<std::size_t>(request.row_labels_size()));
  Read(decoded.request.keys);
  Read(decoded.request.values);
  Read(decoded.request.inputs);
  return status;
}

absl::Status Decode(const v1::ReadRowsRequest& request) {
  const auto filter = server::DecodeFilter(request.filter());
  return filter.ok() ? server::DecodeReadMask(request.read_mask()).status() : filter.status();
}

absl::Status Decode(const v1::DeleteRowsRequest& request) {
  return server::DecodeFilter(request.filter()).status();
}

absl::Status Decode(const v1::LookupRequest& request) {
  server::DecodedLookup decoded;
  const absl::Status status = server::DecodeLookup(request, "store", decoded);
  if (!status.ok()) return status;
  REQUIRE(!decoded.request.store.empty());
  Read(decoded.request.queries);
  Read(decoded.request.inputs);
  return status;
}

absl::Status Decode(const v1::AttendRequest& request) {
  server::DecodedAttend decoded;
  const absl::Status status = server::DecodeAttend(request, decoded);
  if (!status.ok()) return status;
  REQUIRE(decoded.request.num_heads > 0);
  Read(decoded.request.queries);
  Read(decoded.request.keys);
  Read(decoded.request.values);
  Read(decoded.request.inputs);
  return status;
}

struct RequestType {
  const Message* prototype;
  std::function<absl::Status(const Message&)> decode;
};

template <typename Request>
RequestType TypeOf() {
  return {&Request::default_instance(),
          [](const Message& message) { return Decode(static_cast<const Request&>(message)); }};
}

// All that this server takes. Inputs name them by their index: new ones go to the end.
const std::vector<RequestType>& Types() {
  static const auto* const types = new std::vector<RequestType>{
      TypeOf<v1::CreateStoreRequest>(),
      TypeOf<v1::GetStoreRequest>(),
      TypeOf<v1::ListStoresRequest>(),
      TypeOf<v1::UpdateStoreRequest>(),
      TypeOf<v1::DeleteStoreRequest>(),
      TypeOf<v1::AppendRequest>(),
      TypeOf<v1::ReadRowsRequest>(),
      TypeOf<v1::DeleteRowsRequest>(),
      TypeOf<v1::LookupRequest>(),
      TypeOf<v1::AttendRequest>(),
      TypeOf<v1::GetMemoryRequest>(),
      TypeOf<v1::WatchMemoryRequest>(),
      TypeOf<v1::GetWriterRequest>(),
      TypeOf<admin::v1::CreateBackupRequest>(),
      TypeOf<admin::v1::ListBackupsRequest>(),
      TypeOf<grpc::health::v1::HealthCheckRequest>(),
      TypeOf<grpc::reflection::v1alpha::ServerReflectionRequest>(),
      TypeOf<v1::RenameStoreRequest>(),
      TypeOf<v1::CompactStoreRequest>(),
      TypeOf<admin::v1::RestoreStoreRequest>(),
      TypeOf<admin::v1::GetGroupRequest>(),
      TypeOf<admin::v1::AddReplicaRequest>(),
      TypeOf<admin::v1::RemoveReplicaRequest>(),
      TypeOf<admin::v1::MovePrimaryRequest>(),
      TypeOf<admin::v1::SplitStoreRequest>(),
      TypeOf<admin::v1::MoveRangeRequest>(),
      TypeOf<admin::v1::GetRangesRequest>(),
  };
  return *types;
}

// Whether some repeated field of the message has more elements than its limit.
bool IsOverLimit(const Message& message, const server::MessageScan::CountLimits& limits) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    const auto limit = limits.find(field->full_name());
    if (limit != limits.end() && count > limit->second) return true;
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    for (int i = 0; i < count; ++i) {
      const Message& part = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                 : reflection.GetMessage(message, field);
      if (IsOverLimit(part, limits)) return true;
    }
  }
  return false;
}

void CheckMeasured(const absl::StatusOr<std::int64_t>& measured, const WireFacts& facts,
                   const Message* parsed) {
  static const auto* const limits =
      new server::MessageScan::CountLimits(server::ContractCountLimits(Limits()));
  if (measured.ok()) {
    REQUIRE(facts.is_whole);
    REQUIRE(facts.unknown_count <= server::MessageScan::kUnknownFieldsMax);
    if (parsed == nullptr) return;
    REQUIRE(*measured >= static_cast<std::int64_t>(parsed->SpaceUsedLong()));
    // Also of a submessage that came in parts, which the parser merges.
    REQUIRE(!IsOverLimit(*parsed, *limits));
    return;
  }
  CheckRefusal(measured.status());
  if (ReasonOf(measured.status()) == reasons::kMalformedMessage.name) {
    // Not `!is_whole`: UnknownFieldSet, which the facts are from, cuts lengths above 32 bits.
    REQUIRE(parsed == nullptr || facts.has_group);
    return;
  }
  REQUIRE(ReasonOf(measured.status()) == reasons::kLimitExceeded.name);
  REQUIRE(facts.unknown_count > server::MessageScan::kUnknownFieldsMax || parsed == nullptr ||
          IsOverLimit(*parsed, *limits));
}

absl::StatusOr<std::int64_t> Measure(const Descriptor& type, const std::string& bytes,
                                     int piece_bytes) {
  static const auto* const scans = new server::MessageScans(Limits());
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()),
                                                piece_bytes);
  return scans->Of(type).Measure(stream);
}

}  // namespace

std::string RequestInput(const Message& request) {
  for (std::size_t i = 0; i < Types().size(); ++i) {
    if (Types()[i].prototype->GetDescriptor() != request.GetDescriptor()) continue;
    return std::string{static_cast<char>(i), '\0'} + request.SerializeAsString();
  }
  REQUIRE(!"a request of this server");
  return "";
}

void FuzzRequest(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return;
  static const bool is_quiet = [] {
    google::protobuf::SetLogHandler(nullptr);  // It logs every string that is not UTF-8.
    return true;
  }();
  (void)is_quiet;
  const RequestType& type = Types()[bytes[0] % Types().size()];
  const Descriptor& descriptor = *type.prototype->GetDescriptor();
  const std::string input(bytes + 2, bytes + size);

  const absl::StatusOr<std::int64_t> measured = Measure(descriptor, input, /*piece_bytes=*/-1);
  const WireFacts facts = FactsOf(descriptor, input);
  const std::unique_ptr<Message> message(type.prototype->New());
  const bool is_parsed = message->ParseFromString(input);
  // The converse does not hold: a parser refuses tags of more than five bytes, streams cut them.
  REQUIRE(!is_parsed || (facts.is_whole && facts.are_values_valid));
  CheckMeasured(measured, facts, is_parsed ? message.get() : nullptr);
  if (bytes[1] > 0) {
    const absl::StatusOr<std::int64_t> of_pieces = Measure(descriptor, input, bytes[1]);
    REQUIRE(of_pieces.status() == measured.status());
    REQUIRE(!measured.ok() || *of_pieces == *measured);
  }
  if (!measured.ok() || !is_parsed) return;
  if (const absl::Status status = type.decode(*message); !status.ok()) CheckRefusal(status);
}

}  // namespace softlookup::fuzz
