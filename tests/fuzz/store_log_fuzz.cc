#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/load_stores.h"
#include "core/engine/put_records.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/store_log.h"
#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

constexpr std::uint64_t kRowsRead = 64;

// Whatever was read of the store, it can be read, appended to and logged.
void UseStore(Store& store) {
  const StoreInfo info = store.info();
  REQUIRE(info.live_row_count <= info.row_count);
  const std::shared_ptr<const Snapshot> snapshot = store.snapshot();
  const std::uint64_t end = std::min(info.row_count, kRowsRead);
  for (const PositionedBlock& block : snapshot->BlocksOf(0, end)) {
    for (std::int64_t row = 0; row < std::min<std::int64_t>(block.view.row_count, 4); ++row) {
      (void)snapshot->RowOf(block, row);
    }
  }
  for (std::uint64_t position = 0; position < end; ++position) (void)snapshot->TagsOf(position);
  for (std::size_t memory = 0; memory <= info.config.memories.size(); ++memory) {
    // Inside a compacted block there is none.
    if (const auto state = snapshot->MemoryAsOf(end, memory); state.ok()) (void)(*state)->Read();
  }
  const std::vector<float> key(static_cast<std::size_t>(info.config.key_dim), 0.5f);
  const std::vector<float> value(static_cast<std::size_t>(info.config.value_dim), -1);
  const RowBatch rows{.keys = {key.data(), 1, info.config.key_dim},
                      .values = {value.data(), 1, info.config.value_dim}};
  const auto appended = store.editor().Append(rows);
  if (!appended.ok()) return;
  REQUIRE(appended->first_position == info.row_count && appended->appended_count == 1);
  MemoryLog log;
  PutAppend(store.number(), *appended, rows, /*writer=*/nullptr, *log.NewBatch());
}

}  // namespace

void FuzzStoreLog(const std::uint8_t* bytes, std::size_t size) {
  const MemoryLog log = MemoryLog::Parse({reinterpret_cast<const char*>(bytes), size});
  const auto stores = StoresIn(log);
  if (!stores.ok()) {
    REQUIRE(absl::IsDataLoss(stores.status()));
    return;
  }
  for (const NamedStore& store : *stores) {
    const LoadedStore loaded =
        LoadStore(store, log, [](absl::AnyInvocable<void()> task) { task(); });
    REQUIRE(loaded.store.ok() || absl::IsDataLoss(loaded.store.status()));
    if (loaded.store.ok()) UseStore(**loaded.store);
  }
}

}  // namespace softlookup::fuzz
