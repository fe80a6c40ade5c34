#include "core/engine/compaction.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/base/status_macros.h"
#include "core/engine/store_write.h"
#include "core/storage/records.h"
#include "core/store/block_shape.h"

namespace softlookup {
namespace {

// Blocks that one write compacts at most. Other writes wait for it, and their rows are rewritten in
// one batch of the log.
constexpr std::int64_t kBlocksPerWrite = 16;

// Blocks [begin, end) of a store, and the log's records that have their rows.
struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<RowSpan> spans;
};

class CompactWrite final : public StoreWrite<std::int64_t> {
 public:
  CompactWrite(CountedStores& stores, std::shared_ptr<Store> store, Window window,
               WriteCallback<std::int64_t> callback)
      : StoreWrite(stores, std::move(store), std::move(callback)), window_(std::move(window)) {}

 protected:
  absl::StatusOr<std::shared_ptr<const Snapshot>> WriteTo(StoreEditor& editor) override {
    outcome_ = editor.Compact(window_.begin, window_.end);
    return outcome_.snapshot;
  }
  void PutRecords(const StoreEditor&, LogBatch& batch) override {
    if (outcome_.compacted_blocks.empty()) return;
    PutCompaction(store().number(), outcome_, window_.begin, window_.end, window_.spans, batch);
  }
  bool IsBounded(const Snapshot&, const Snapshot&) const override { return false; }
  std::int64_t MakeResult() override {
    return static_cast<std::int64_t>(outcome_.compacted_blocks.size());
  }

 private:
  const Window window_;
  CompactOutcome outcome_;
};

// TODO: spans, windows, CompactStore().

}  // namespace
}  // namespace softlookup
