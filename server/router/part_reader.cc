#include "server/router/part_reader.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"
#include "server/rpc/message_reader.h"
#include "server/rpc/ranges/ranges.pb.h"
#include "server/rpc/ranges_codec.h"
#include "server/rpc/status.h"

namespace softlookup::server {

bool ParseBytes(grpc::ByteBuffer bytes, google::protobuf::MessageLite& message) {
  MessageReader reader(bytes);
  return message.ParseFromZeroCopyStream(&reader.stream()) && reader.ok();
}

absl::Status MalformedAnswer(absl::string_view what) {
  return absl::InternalError(absl::StrCat("A node has answered with ", what));
}

absl::StatusOr<std::shared_ptr<const RangesAt>> ReadRanges(const grpc::ByteBuffer& response) {
  cluster::v1::BeginLookupResponse begun;
  if (!ParseBytes(response, begun)) return MalformedAnswer("something else than ranges");
  if (begun.ranges_size() > kRangeCountMax) return MalformedAnswer("too many ranges");
  auto told = std::make_shared<RangesAt>(RangesAt{.revision = begun.revision(),
                                                  .incarnation = begun.incarnation(),
                                                  .row_count = begun.row_count()});
  for (const cluster::v1::StoreRange& range : begun.ranges()) {
    const bool is_next =
        told->ranges.empty() ? range.begin() == 0 : range.begin() > told->ranges.back().begin;
    if (!is_next) return MalformedAnswer("ranges that do not follow each other");
    told->ranges.push_back(
        {.begin = range.begin(), .nodes = {range.nodes().begin(), range.nodes().end()}});
  }
  return told;
}

absl::StatusOr<SharedLimit::Share> PartReader::Take(std::uint64_t count) const {
  std::optional<SharedLimit::Share> bytes = bytes_.Take(count);
  if (bytes.has_value()) return *std::move(bytes);
  return WithRetryAfter(
      MakeError(reasons::kQueueFull,
                "The parts of answers that this router holds would take too many bytes; ask for "
                "fewer queries at a time"),
      absl::Seconds(1));
}

absl::StatusOr<PartReader::Decoded<PartialLookup>> PartReader::ReadPart(
    const grpc::ByteBuffer& response) const {
  Decoded<PartialLookup> decoded;
  SOFTLOOKUP_ASSIGN_OR_RETURN(SharedLimit::Share bytes, Take(response.Length()));
  decoded.bytes.push_back(std::move(bytes));
  cluster::v1::PartialLookup message;
  if (!ParseBytes(response, message)) return MalformedAnswer("something else than a part");
  // Components are decoded to float64. An answer without a row comes as two bytes.
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      SharedLimit::Share answers,
      Take(response.Length() +
           static_cast<std::uint64_t>(message.answers_size()) * sizeof(PartialAnswer)));
  decoded.bytes.push_back(std::move(answers));
  absl::StatusOr<PartialLookup> part = DecodePartialLookup(message);
  if (!part.ok()) return MalformedAnswer(part.status().message());
  decoded.answer = *std::move(part);
  return decoded;
}

absl::StatusOr<PartReader::Decoded<RowSums>> PartReader::ReadSums(
    const grpc::ByteBuffer& response) const {
  Decoded<RowSums> decoded;
  SOFTLOOKUP_ASSIGN_OR_RETURN(SharedLimit::Share bytes, Take(response.Length()));
  decoded.bytes.push_back(std::move(bytes));
  cluster::v1::RowSums message;
  if (!ParseBytes(response, message)) return MalformedAnswer("something else than sums");
  absl::StatusOr<RowSums> sums = DecodeRowSums(message);
  if (!sums.ok()) return MalformedAnswer(sums.status().message());
  decoded.answer = *std::move(sums);
  return decoded;
}

}  // namespace softlookup::server
