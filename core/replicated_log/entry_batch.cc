#include "core/replicated_log/entry_batch.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/storage/records.h"

namespace softlookup {
namespace {

constexpr std::uint8_t kEntryVersion = 1;

enum class Change : std::uint8_t { kPut = 1, kDelete = 2, kDeleteRange = 3, kFreeDiskOf = 4 };

void Begin(Change change, Encoder& encoder) { encoder.Put(static_cast<std::uint8_t>(change)); }

absl::Status Malformed(absl::string_view what) {
  return MakeError(reasons::kDataLoss, absl::StrCat("an entry cannot be read: ", what));
}

// Whether a change of [begin, end) changes what a replica keeps for itself.
bool TouchesReplica(absl::string_view begin, absl::string_view end) {
  const KeyRange own = KeysOfReplicas();
  return begin < own.end && end > own.begin;
}

bool IsOfReplica(absl::string_view key) {
  const KeyRange own = KeysOfReplicas();
  return key >= own.begin && key < own.end;
}

// Only tells whether a range is deleted.
class RangeFinder final : public LogBatch {
 public:
  void Put(absl::string_view, absl::string_view) override {}
  void Delete(absl::string_view) override {}
  void DeleteRange(absl::string_view, absl::string_view) override { has_range = true; }
  void FreeDiskOf(absl::string_view, absl::string_view) override {}

  bool has_range = false;
};

}  // namespace

EntryBatch::EntryBatch() { encoder_.Put(kEntryVersion); }

void EntryBatch::Put(absl::string_view key, absl::string_view value) {
  Begin(Change::kPut, encoder_);
  encoder_.PutString(key);
  encoder_.PutString(value);
  empty_ = false;
}

void EntryBatch::Delete(absl::string_view key) {
  Begin(Change::kDelete, encoder_);
  encoder_.PutString(key);
  empty_ = false;
}

void EntryBatch::DeleteRange(absl::string_view begin, absl::string_view end) {
  Begin(Change::kDeleteRange, encoder_);
  encoder_.PutString(begin);
  encoder_.PutString(end);
  empty_ = false;
}

void EntryBatch::FreeDiskOf(absl::string_view begin, absl::string_view end) {
  Begin(Change::kFreeDiskOf, encoder_);
  encoder_.PutString(begin);
  encoder_.PutString(end);
  empty_ = false;
}

absl::Status AddChanges(absl::string_view entry, LogBatch& batch) {
  Decoder decoder(entry);
  if (const auto version = decoder.Get<std::uint8_t>(); version != kEntryVersion) {
    return Malformed(decoder.ok() ? absl::StrCat("it has version ", int{version},
                                                 "; this server reads up to ", int{kEntryVersion})
                                  : "it is empty");
  }
  while (!decoder.at_end()) {
    const auto change = static_cast<Change>(decoder.Get<std::uint8_t>());
    const absl::string_view first = decoder.GetString();
    const absl::string_view second =
        change == Change::kDelete ? absl::string_view() : decoder.GetString();
    if (!decoder.ok()) return Malformed("it ends in the middle of a change");
    const bool is_of_key = change == Change::kPut || change == Change::kDelete;
    if (is_of_key ? IsOfReplica(first) : TouchesReplica(first, second)) {
      return Malformed("it would change what the replica keeps for itself");
    }
    switch (change) {
      case Change::kPut:
        batch.Put(first, second);
        break;
      case Change::kDelete:
        batch.Delete(first);
        break;
      case Change::kDeleteRange:
        batch.DeleteRange(first, second);
        break;
      case Change::kFreeDiskOf:
        batch.FreeDiskOf(first, second);
        break;
      default:
        return Malformed(
            absl::StrCat("it has a change of the unknown kind ", static_cast<int>(change)));
    }
  }
  return absl::OkStatus();
}

bool DeletesRange(absl::string_view entry) {
  RangeFinder finder;
  return AddChanges(entry, finder).ok() && finder.has_range;
}

}  // namespace softlookup
