#ifndef SOFTLOOKUP_CORE_ENGINE_WRITES_H_
#define SOFTLOOKUP_CORE_ENGINE_WRITES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "core/base/limits.h"
#include "core/engine/committer.h"
#include "core/engine/store_table.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// The writes of an engine, which Engine's methods define. What they are given has been checked as
// far as it does not depend on the writes before; they check the rest. `table` outlives them.

template <typename Result>
using WriteCallback = absl::AnyInvocable<void(absl::StatusOr<Result>)>;

// Rows on their way into a store.
struct RowsToAppend {
  std::vector<float> keys;    // [N, key_dim]
  std::vector<float> values;  // [N, value_dim]
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<std::string>> row_labels;
  OnConflict on_conflict = OnConflict::kUnspecified;
  std::string writer;  // May be empty.
  std::uint64_t sequence = 0;
  Sync sync = Sync::kYes;
  std::vector<std::size_t> memories;   // To return, by index.
  std::shared_ptr<AppendChain> chain;  // May be null.
};

std::unique_ptr<Write> MakeAppend(StoreTable& table, std::shared_ptr<Store> store,
                                  RowsToAppend rows, WriteCallback<AppendResult> callback);

// An append that is refused with `status`, in its turn.
std::unique_ptr<Write> MakeRefusedAppend(absl::Status status, std::shared_ptr<AppendChain> chain,
                                         WriteCallback<AppendResult> callback);

std::unique_ptr<Write> MakeDeleteRows(StoreTable& table, std::shared_ptr<Store> store,
                                      RowFilter filter, WriteCallback<DeleteRowsResult> callback);

std::unique_ptr<Write> MakeUpdate(StoreTable& table, std::shared_ptr<Store> store,
                                  StoreUpdate update, WriteCallback<StoreInfo> callback);

// What GetWriter answers, in its turn: whatever was posted before counts. Changes nothing.
std::unique_ptr<Write> MakeGetWriter(StoreTable& table, std::shared_ptr<Store> store,
                                     std::string writer, WriteCallback<WriterInfo> callback);

// `number` and `executor` are the store's, if it is made.
std::unique_ptr<Write> MakeCreateStore(StoreTable& table, std::uint64_t number, StoreConfig config,
                                       Store::Executor executor, std::int64_t store_count_max,
                                       WriteCallback<StoreInfo> callback);

std::unique_ptr<Write> MakeDeleteStore(StoreTable& table, std::string name,
                                       absl::AnyInvocable<void(absl::Status)> callback);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_WRITES_H_
