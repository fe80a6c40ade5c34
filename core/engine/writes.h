#ifndef SOFTLOOKUP_CORE_ENGINE_WRITES_H_
#define SOFTLOOKUP_CORE_ENGINE_WRITES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/limits.h"
#include "core/engine/committer.h"
#include "core/engine/counted_stores.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// These functions make the writes to one store that Engine's methods post. A write is refused with
// STORE_NOT_FOUND if the store is deleted or renamed before its turn. Callers must have checked
// everything in the arguments that does not depend on earlier writes. The writes check the rest.
// `stores` must outlive the writes.

// The rows of an append, and what came with them.
struct RowsToAppend {
  std::vector<float> keys;    // [N, key_dim]
  std::vector<float> values;  // [N, value_dim]
  std::vector<std::uint64_t> ids;
  std::vector<std::vector<std::string>> row_labels;
  OnConflict on_conflict = OnConflict::kUnspecified;
  std::string writer;  // May be empty.
  std::uint64_t sequence = 0;
  Sync sync = Sync::kYes;
  std::vector<std::size_t> memories;   // Memories to return: indexes that FindMemory returned.
  std::shared_ptr<AppendChain> chain;  // May be null.
  std::uint64_t chain_number = 0;      // The append's number in its chain. 0 without a chain.
};

std::unique_ptr<Write> MakeAppend(CountedStores& stores, std::shared_ptr<Store> store,
                                  RowsToAppend rows, WriteCallback<AppendResult> callback);

// Ends a chain: its appends with numbers above `last_to_run` are refused in their turn. Its appends
// up to this number still run. Thread-safe.
void EndChain(AppendChain& chain, std::uint64_t last_to_run);

// Makes an append that is refused with `status` in its turn, and then ends its chain. `chain` may
// be null.
std::unique_ptr<Write> MakeRefusedAppend(absl::Status status, std::shared_ptr<AppendChain> chain,
                                         std::uint64_t chain_number,
                                         WriteCallback<AppendResult> callback);

std::unique_ptr<Write> MakeDeleteRows(CountedStores& stores, std::shared_ptr<Store> store,
                                      RowFilter filter, WriteCallback<DeleteRowsResult> callback);

std::unique_ptr<Write> MakeUpdate(CountedStores& stores, std::shared_ptr<Store> store,
                                  StoreUpdate update, WriteCallback<StoreInfo> callback);

// Makes the write of Engine::SetRanges(). `plan` is called in the write's turn. It must live until
// the write answers.
std::unique_ptr<Write> MakeSetRanges(CountedStores& stores, std::shared_ptr<Store> store,
                                     Engine::RangesOf plan,
                                     WriteCallback<std::shared_ptr<const Snapshot>> callback);

// Makes a write that answers GetWriter() and changes nothing. It is a write so that it has its turn
// after the appends that were posted before. The answer then shows what they did.
std::unique_ptr<Write> MakeGetWriter(CountedStores& stores, std::shared_ptr<Store> store,
                                     std::string writer, WriteCallback<WriterInfo> callback);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_WRITES_H_
