#include "server/rpc/message_receiver.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

// Retry delay of a request that was refused because requests in flight take too many bytes.
constexpr absl::Duration kRequestRetryDelay = absl::Milliseconds(100);

// Reads the bytes of a message. If they are in one slice, as in small messages, reads that slice as
// an array. Otherwise uses gRPC's reader.
class MessageReader {
 public:
  explicit MessageReader(grpc::ByteBuffer& bytes) {
    if (bytes.TrySingleSlice(&slice_).ok()) {
      one_.emplace(slice_.begin(), static_cast<int>(slice_.size()));
    } else {
      many_.emplace(&bytes);
    }
  }
  google::protobuf::io::ZeroCopyInputStream& stream() {
    return one_.has_value() ? static_cast<google::protobuf::io::ZeroCopyInputStream&>(*one_)
                            : *many_;
  }
  bool ok() const { return !many_.has_value() || many_->status().ok(); }

 private:
  grpc::Slice slice_;
  std::optional<google::protobuf::io::ArrayInputStream> one_;
  std::optional<grpc::ProtoBufferReader> many_;
};

// Takes `bytes` from `budget` into `charge`. False if that would exceed the budget's limit.
bool Take(const std::shared_ptr<RequestBytes>& budget, std::int64_t bytes, RequestCharge& charge) {
  if (!budget->TryTake(bytes)) return false;
  charge = RequestCharge(budget, bytes);
  return true;
}

absl::Status CallerBytesExceeded(absl::string_view identity, std::int64_t limit_bytes) {
  const std::string limit = absl::StrCat(limit_bytes);
  return WithRetryAfter(
      MakeError(reasons::kIdentityLimit,
                absl::StrCat("The requests of \"", identity, "\" in flight would take more than ",
                             limit, " bytes"),
                {{"identity", std::string(identity)}, {"limit", limit}}),
      kRequestRetryDelay);
}

absl::Status RequestBytesExceeded(std::int64_t limit) {
  return WithRetryAfter(
      MakeError(reasons::kRequestBytes,
                absl::StrCat("The requests in flight would take more than ", limit, " bytes"),
                {{"limit", absl::StrCat(limit)}}),
      kRequestRetryDelay);
}

}  // namespace

absl::Status MessageReceiver::Receive(grpc::ByteBuffer& bytes, const CallerBytes& caller,
                                      google::protobuf::Message& message,
                                      MessageCharge& charge) const {
  const auto size = static_cast<std::int64_t>(bytes.Length());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMessageBytes(size, message_bytes_max_));
  std::int64_t charged_bytes = size;
  {
    MessageReader reader(bytes);
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::int64_t parsed_bytes,
                                scans_.Of(*message.GetDescriptor()).Measure(reader.stream()));
    charged_bytes += parsed_bytes;
  }
  if (caller.budget != nullptr && !Take(caller.budget, charged_bytes, charge.of_caller)) {
    return CallerBytesExceeded(caller.identity, caller.budget->limit());
  }
  if (!Take(budget_, charged_bytes, charge.of_all)) return RequestBytesExceeded(budget_->limit());
  MessageReader reader(bytes);
  const bool is_whole = message.ParseFromZeroCopyStream(&reader.stream()) && reader.ok();
  bytes.Clear();
  return is_whole ? absl::OkStatus() : MalformedMessage();
}

}  // namespace softlookup::server
