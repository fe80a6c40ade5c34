#include "core/engine/leftovers.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/engine/put_records.h"

namespace softlookup {
namespace {

// The largest number whose records end before the end of KeysOfAllStores().
constexpr std::uint64_t kNumberMax = ~std::uint64_t{0} - 2;

// Returns the ranges of keys that belong to numbers up to `last_number` and to none of `stores`.
std::vector<KeyRange> RangesBeside(const std::vector<NamedStore>& stores,
                                   std::uint64_t last_number) {
  std::vector<KeyRange> ranges;
  std::string begin = KeysOfAllStores().begin;
  const auto add_up_to = [&](const std::string& end) {
    if (begin < end) ranges.push_back({.begin = begin, .end = end});
  };
  for (const NamedStore& store : stores) {
    const KeyRange records = KeysOfStore(store.store);
    add_up_to(records.begin);
    begin = records.end;
  }
  add_up_to(KeysOfStore(last_number).end);
  return ranges;
}

// Returns whether a scan of `range` succeeds and finds no record.
bool IsEmpty(const KeyRange& range, const CommitLog& log) {
  return log
      .Scan(range.begin, range.end,
            [](absl::string_view, absl::string_view) { return absl::CancelledError(); })
      .ok();
}

}  // namespace

absl::StatusOr<std::vector<std::uint64_t>> UnfinishedIn(const CommitLog& log) {
  std::vector<std::uint64_t> numbers;
  const KeyRange marks = KeysOfUnfinished();
  const absl::Status status =
      log.Scan(marks.begin, marks.end, [&](absl::string_view key, absl::string_view) {
        SOFTLOOKUP_ASSIGN_OR_RETURN(const std::uint64_t number, ParseUnfinishedKey(key));
        // No server gives a larger number.
        if (number <= kNumberMax) numbers.push_back(number);
        return absl::OkStatus();
      });
  if (absl::IsDataLoss(status)) return std::vector<std::uint64_t>();
  SOFTLOOKUP_RETURN_IF_ERROR(status);
  return numbers;
}

void ClearUnfinished(const std::vector<NamedStore>& stores, CommitLog& log) {
  const absl::StatusOr<std::vector<std::uint64_t>> unfinished = UnfinishedIn(log);
  if (!unfinished.ok() || unfinished->empty()) return;
  const std::unique_ptr<LogBatch> deletions = log.NewBatch();
  for (const std::uint64_t number : *unfinished) {
    // A version that knows no marks may have given the number to a store of its own.
    const bool is_store = std::ranges::binary_search(stores, number, {}, &NamedStore::store);
    if (!is_store) DeleteUnfinished(number, *deletions);
    deletions->Delete(KeyOfUnfinished(number));
  }
  log.Commit(*deletions, Sync::kYes).IgnoreError();  // The next write gets the error again.
}

std::uint64_t LastNumberIn(const std::vector<NamedStore>& stores, const CommitLog& log) {
  std::uint64_t last_store = stores.empty() ? 0 : stores.back().store;
  if (const auto unfinished = UnfinishedIn(log); unfinished.ok() && !unfinished->empty()) {
    last_store = std::max(last_store, unfinished->back());
  }
  const std::uint64_t last = StoreOfKey(log.LastKeyInTables());
  // No server gives so large a number, so it is that of a record which no server wrote.
  return last > kNumberMax ? last_store : std::max(last, last_store);
}

absl::Status ClearLeftovers(const std::vector<NamedStore>& stores, std::uint64_t last_number,
                            CommitLog& log) {
  const std::vector<KeyRange> leftovers = log.RangesInTables(RangesBeside(stores, last_number));
  const std::unique_ptr<LogBatch> deletions = log.NewBatch();
  for (const KeyRange& range : leftovers) {
    // A record that a scan finds was not deleted, so it is no leftover, whatever else it is.
    if (IsEmpty(range, log)) deletions->DeleteRange(range.begin, range.end);
  }
  // The error is ignored here: the log then drops no table, and there is more to read below. The
  // next write gets an error from the log again.
  if (!leftovers.empty()) log.Commit(*deletions, Sync::kYes).IgnoreError();
  // Table files may also have the names of deleted stores.
  std::vector<KeyRange> unread = {{.begin = "", .end = KeysOfAllStores().begin}};
  unread.insert(unread.end(), leftovers.begin(), leftovers.end());
  return log.ReadTables(unread);
}

void CountLeftovers(const std::vector<NamedStore>& stores, std::uint64_t last_number,
                    CommitLog& log) {
  const std::vector<KeyRange> leftovers = log.RangesInTables(RangesBeside(stores, last_number));
  if (leftovers.empty()) return;
  const std::unique_ptr<LogBatch> batch = log.NewBatch();
  for (const KeyRange& range : leftovers) batch->FreeDiskOf(range.begin, range.end);
  log.Commit(*batch, Sync::kYes).IgnoreError();  // The next write gets the error again.
}

}  // namespace softlookup
