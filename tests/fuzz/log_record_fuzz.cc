#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/engine/validate.h"
#include "core/storage/records.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

template <typename Record>
bool IsRead(const absl::StatusOr<Record>& record) {
  REQUIRE(record.ok() || absl::IsDataLoss(record.status()));
  return record.ok();
}

// What is read is written as it stood, which is only so where a record has one form.
template <typename Parse, typename Encode>
void CheckExact(absl::string_view value, const Parse& parse, const Encode& encode) {
  if (const auto record = parse(value); IsRead(record)) REQUIRE(encode(*record) == value);
}

// What is read is written in a form that is read and written as the same.
template <typename Parse, typename Encode>
void CheckStable(absl::string_view value, const Parse& parse, const Encode& encode) {
  const auto record = parse(value);
  if (!IsRead(record)) return;
  const std::string written = encode(*record);
  const auto again = parse(written);
  REQUIRE(again.ok() && encode(*again) == written);
}

void CheckConfig(absl::string_view value) {
  CheckStable(value, ParseConfig, EncodeConfig);
  const auto record = ParseConfig(value);
  if (!record.ok() || !CheckStoreConfig(record->config).ok()) return;
  const StoreConfig& config = record->config;
  if (config.projection == nullptr) return;
  const Projection& projection = *config.projection;
  const auto size = [&](std::int64_t dim) {
    return static_cast<std::size_t>(dim * projection.input_dim);
  };
  REQUIRE(projection.query.size() == size(config.key_dim));
  REQUIRE(projection.key.size() == size(config.key_dim));
  REQUIRE(projection.value.size() == size(config.value_dim));
}

void CheckRows(absl::string_view value) {
  // Any that a store may have.
  constexpr std::int64_t kRowBytes = 6;
  CheckStable(
      value, [](absl::string_view bytes) { return ParseRows(bytes, kRowBytes); }, EncodeRows);
  const auto record = ParseRows(value, kRowBytes);
  if (!record.ok()) return;
  const std::size_t count = record->row_count;
  REQUIRE(record->components.size() == count * kRowBytes);
  REQUIRE(record->has_id.empty() || record->has_id.size() == count);
  const auto with_id = record->has_id.empty()
                           ? count
                           : static_cast<std::size_t>(
                                 std::count(record->has_id.begin(), record->has_id.end(), true));
  REQUIRE(record->ids.empty() || record->ids.size() == with_id);
  REQUIRE(record->row_labels.empty() || record->row_labels.size() == count);
}

}  // namespace

void FuzzLogRecord(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return;
  const absl::string_view value(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  switch (bytes[0] % 10) {
    case 0:
      return CheckExact(value, ParseKey, EncodeKey);
    case 1:
      return CheckConfig(value);
    case 2:
      return CheckExact(value, ParseRevision, EncodeRevision);
    case 3:
      return CheckExact(value, ParseBlockStart, EncodeBlockStart);
    case 4:
      return CheckExact(value, ParseLiveRows, EncodeLiveRows);
    case 5:
      return CheckRows(value);
    case 6:
      return CheckExact(value, ParseWriter, EncodeWriter);
    case 7: {
      const absl::Status status = CheckFormat(value);
      REQUIRE(status.ok() ? value == EncodeFormat() : absl::IsDataLoss(status));
      return;
    }
    case 8:
      return CheckExact(
          value, [](absl::string_view v) { return ParseName(KeyOfName(7), v); },
          [](const NamedStore& store) { return EncodeName(store.name); });
    default:
      (void)IsRead(ParseName(value, EncodeName("store")));
  }
}

}  // namespace softlookup::fuzz
