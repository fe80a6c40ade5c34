#include "server/rpc/message_receiver.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/message_reader.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

// Retry delay of a request that was refused because requests in flight take too many bytes.
constexpr absl::Duration kRequestRetryDelay = absl::Milliseconds(100);

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

absl::Status MessageReceiver::Charge(std::int64_t bytes, const CallerBytes& caller,
                                     MessageCharge& charge) const {
  if (caller.budget != nullptr && !Take(caller.budget, bytes, charge.of_caller)) {
    return CallerBytesExceeded(caller.identity, caller.budget->limit());
  }
  if (!Take(budget_, bytes, charge.of_all)) return RequestBytesExceeded(budget_->limit());
  return absl::OkStatus();
}

absl::Status MessageReceiver::Hold(const grpc::ByteBuffer& bytes, const CallerBytes& caller,
                                   MessageCharge& charge) const {
  const auto size = static_cast<std::int64_t>(bytes.Length());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMessageBytes(size, message_bytes_max_));
  return Charge(size, caller, charge);
}

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
  SOFTLOOKUP_RETURN_IF_ERROR(Charge(charged_bytes, caller, charge));
  MessageReader reader(bytes);
  const bool is_whole = message.ParseFromZeroCopyStream(&reader.stream()) && reader.ok();
  bytes.Clear();
  return is_whole ? absl::OkStatus() : MalformedMessage();
}

}  // namespace softlookup::server
