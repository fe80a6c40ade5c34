#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/rpc/ranges_codec.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

// What is decoded is encoded in a form that is decoded and encoded as the same. Returns what was
// decoded.
template <typename Message, typename Decode, typename Encode>
auto CheckStable(const std::string& bytes, const Decode& decode, const Encode& encode)
    -> decltype(decode(Message())) {
  Message message;
  if (!message.ParseFromString(bytes)) return absl::InvalidArgumentError("no message");
  auto decoded = decode(message);
  if (!decoded.ok()) {
    REQUIRE(absl::IsInvalidArgument(decoded.status()));
    return decoded;
  }
  const Message encoded = encode(*decoded);
  const auto again = decode(encoded);
  REQUIRE(again.ok() && encode(*again).SerializeAsString() == encoded.SerializeAsString());
  return decoded;
}

// An answer is what the wire contract allows: no number is NaN, and lists are sorted.
void CheckAnswer(const LookupResult& result) {
  for (const float value : result.values) REQUIRE(std::isfinite(value));
  for (const QueryStats& stats : result.stats) {
    REQUIRE(!std::isnan(stats.log_sum_exp) && !std::isnan(stats.max_logit));
    REQUIRE(stats.entropy >= 0 && stats.error_bound >= 0 && stats.error_bound <= 1);
    REQUIRE(stats.summed_rows <= stats.counted_rows);
  }
  for (const QueryWeights& weights : result.weights) {
    REQUIRE(!std::isnan(weights.remaining_weight));
    for (std::size_t i = 0; i < weights.rows.size(); ++i) {
      REQUIRE(!std::isnan(weights.rows[i].weight));
      REQUIRE(i == 0 || weights.rows[i - 1].weight >= weights.rows[i].weight);
    }
  }
}

// Merges a partial answer alone, as if its range had all rows.
void MergeAlone(PartialLookup part) {
  constexpr std::int64_t kAnswerBytesMax = 1 << 20;
  const auto components = static_cast<std::size_t>(part.shape.query_count * part.shape.value_dim);
  std::vector<PartialLookup> parts;
  parts.push_back(std::move(part));
  auto merged = MergedLookup::Merge(std::move(parts), kAnswerBytesMax, [] { return true; });
  if (!merged.ok()) {
    REQUIRE(absl::IsInternal(merged.status()) || absl::IsResourceExhausted(merged.status()));
    return;
  }
  const RowSumsRequest& request = merged->requests()[0];
  RowSums sums;
  if (!request.rows.empty()) sums.sums.resize(components);
  const auto result = merged->Finish({sums}, [] { return true; });
  REQUIRE(result.ok());
  CheckAnswer(*result);
}

}  // namespace

void FuzzRanges(const std::uint8_t* bytes, std::size_t size) {
  using server::DecodePartialLookup, server::EncodePartialLookup;
  if (size == 0) return;
  const std::string message(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  switch (bytes[0] % 3) {
    case 0: {
      auto part = CheckStable<cluster::v1::PartialLookup>(message, DecodePartialLookup,
                                                          EncodePartialLookup);
      if (part.ok()) MergeAlone(*std::move(part));
      break;
    }
    case 1:
      (void)CheckStable<cluster::v1::RowSumsRequest>(message, server::DecodeRowSumsRequest,
                                                     server::EncodeRowSumsRequest);
      break;
    default:
      (void)CheckStable<cluster::v1::RowSums>(message, server::DecodeRowSums,
                                              server::EncodeRowSums);
  }
}

}  // namespace softlookup::fuzz
