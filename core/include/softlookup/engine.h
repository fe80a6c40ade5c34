#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/base/cancellation.h"
#include "core/base/limits.h"
#include "core/base/matrix_view.h"
#include "softlookup/attention.h"
#include "softlookup/engine_stats.h"
#include "softlookup/kernel.h"
#include "softlookup/memory.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

struct EngineOptions {
  Limits limits;
  // The other options change how fast answers come, not what they are.
  // Threads that scan. At least 1.
  int thread_count = 1;
  // Lookups in the same store share a pass over its rows, which has at most this many queries. At
  // least 1: no pass is shared then.
  std::int64_t queries_per_pass_max = 256;
  // Longest time a pass waits for more lookups, after one in the same store was answered.
  absl::Duration pass_wait_max = absl::Milliseconds(5);
  // kSimd is used on CPUs without AMX: see ChooseKernel.
  Kernel kernel = Kernel::kAuto;
};

// The name of the memory that every store keeps.
inline constexpr absl::string_view kAverageMemory = "average";

// Appends to one store of which none may be applied after one before it has failed, such as those
// of a stream. A store that was deleted and made again under the same name is another one.
struct AppendChain {
  std::atomic<bool> failed{false};
  std::uint64_t store_number = 0;  // Set by the engine.
};

struct AppendRequest {
  absl::string_view store;
  MatrixView keys;    // [N, key_dim], finite, N in [1, rows_per_append_max].
  MatrixView values;  // [N, value_dim]
  // Instead of both, where the store has a projection: [N, input_dim].
  std::optional<MatrixView> inputs;
  absl::Span<const std::uint64_t> ids;                    // None, or one a row, all different.
  OnConflict on_conflict = OnConflict::kUnspecified;      // Unspecified: fail.
  absl::Span<const std::vector<std::string>> row_labels;  // None, or one a row.
  std::vector<std::string> return_memories;
  // The writer's name and the number of its append. An append whose sequence is not above the
  // writer's last one is a duplicate. Both or neither; a sequence is at least 1.
  std::string writer;
  std::uint64_t sequence = 0;
  // True: acknowledged when it is on disk. False: when it is visible.
  bool durable = true;
  // Whether the write may run on the caller's thread, which then waits for the disk.
  bool may_block = false;
  std::shared_ptr<AppendChain> chain;  // May be null.
  // An append whose inputs are not projected by then is refused. Rows that are ready are written.
  absl::Time deadline = absl::InfiniteFuture();
};

struct AppendResult {
  std::uint64_t first_position = 0;
  std::uint64_t appended_count = 0;
  bool duplicate = false;       // It had been applied before; nothing was done.
  std::uint64_t row_count = 0;  // After this append, as is the revision.
  std::uint64_t revision = 0;
  std::vector<MemoryState> memories;  // As of this append, in the order asked for.
};

// Where the time of a lookup went.
struct LookupReport {
  absl::Duration revision_wait;    // Waiting for min_revision.
  absl::Duration queue_wait;       // Waiting in the scheduler's queue.
  absl::Duration compute;          // Selecting rows, and the whole pass that it took part in.
  std::uint64_t scanned_rows = 0;  // Rows that its queries were to be scored against.
};

// What a lookup attends to. Numbered as in the wire contract.
enum class Source { kUnspecified = 0, kRows = 1, kMemory = 2, kRowsAndMemory = 3 };

struct LookupRequest {
  std::string store;
  MatrixView queries;  // [T, key_dim], finite, T in [0, queries_per_lookup_max].
  // Instead, where the store has a projection: [T, input_dim].
  std::optional<MatrixView> inputs;
  AttentionOptions options;
  RowFilter filter;
  Source source = Source::kUnspecified;  // Unspecified: rows.
  std::string memory;                    // For kMemory. Empty: average.
  std::uint64_t min_revision = 0;        // Waits until the store has it.
  // Filled in before the callback, also if the lookup fails. Not owned; may be null.
  LookupReport* report = nullptr;
};

// Attention over what the request carries.
struct AttendRequest {
  MatrixView queries;  // [T, key_dim]
  MatrixView keys;     // [N, key_dim]
  MatrixView values;   // [N, value_dim]
  // [N, input_dim]: keys and values, and with `self` queries, are made of them.
  std::optional<MatrixView> inputs;
  std::shared_ptr<const Projection> projection;  // Null: with `self`, inputs stand for themselves.
  bool self = false;
  std::int64_t num_heads = 1;
  AttentionOptions options;  // Defaults: SCALED_DOT, temperature 1.
};

struct LookupResult {
  std::vector<float> values;     // [T, value_dim]
  std::int64_t query_count = 0;  // T
  std::int64_t value_dim = 0;
  std::vector<QueryStats> stats;      // T * num_heads, query-major.
  std::vector<QueryWeights> weights;  // Likewise, if asked for.
  std::uint64_t revision = 0;         // The snapshot that answered.
  std::uint64_t row_count = 0;
};

struct DeleteRowsResult {
  std::uint64_t deleted_count = 0;
  std::uint64_t revision = 0;
};

// The rows of one snapshot, in position order. Not thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // The next rows, at most `count_max` of them; none at the end.
  virtual std::vector<Row> Next(std::int64_t count_max) = 0;
  virtual std::uint64_t revision() const = 0;
  // Bytes of a row's key and value.
  virtual std::int64_t row_bytes() const = 0;
};

// Where a writer resumes.
struct WriterInfo {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;  // Of the last row it wrote.
};

struct ListResult {
  std::vector<StoreInfo> stores;  // By name, ascending.
  bool more = false;              // Stores with this prefix follow.
};

// Is told about stores as they are loaded: one call at a time, from any thread.
class LoadObserver {
 public:
  virtual ~LoadObserver() = default;
  // `loaded` of `count` stores are done, damaged ones included.
  virtual void OnProgress(std::int64_t loaded, std::int64_t count) {}
  virtual void OnStore(const StoreInfo& info) {}
  // DATA_LOSS, which names the store.
  virtual void OnDamage(const absl::Status& damage) {}
};

// Stores of rows and soft lookups over them. Thread-safe: appends never wait for lookups, nor
// lookups for appends, and a lookup sees one snapshot.
//
// Errors carry a reason (core/base/error.h) and name the field of the wire contract, and the row,
// that is wrong. A refused call changes nothing.
class Engine {
 public:
  using AppendCallback = absl::AnyInvocable<void(absl::StatusOr<AppendResult>)>;
  using LookupCallback = absl::AnyInvocable<void(absl::StatusOr<LookupResult>)>;

  // An engine that keeps everything in memory.
  static std::unique_ptr<Engine> Create(const EngineOptions& options);

  // An engine that keeps everything in `directory` as well, which is made if there is none. Until
  // Load has returned, whatever is asked of its stores is answered LOADING.
  //
  // DIRECTORY_IN_USE if another process has it open, DATA_LOSS if it is damaged as a whole,
  // STORAGE_FAILED for what else the file system refuses.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(const EngineOptions& options,
                                                      const std::string& directory);
  // The same, loaded.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(
      const EngineOptions& options, const std::string& directory,
      absl::FunctionRef<void(const absl::Status&)> on_damage);

  // Reads all of `directory`, which must exist, as Open and Load do, and checks besides what they
  // have no use for; changes nothing.
  static absl::Status Verify(const std::string& directory, LoadObserver& observer);

  // Waits for lookups in progress. Nothing may be called any more.
  virtual ~Engine() = default;

  virtual const Limits& limits() const = 0;

  // Takes the same time whatever the engine holds. Does not wait for other calls.
  virtual EngineStats stats() const = 0;

  // Loads the stores of the directory. Called once; blocks. Other methods may be called meanwhile.
  // A damaged store answers DATA_LOSS to every call.
  virtual absl::Status Load(LoadObserver& observer) = 0;

  virtual absl::StatusOr<StoreInfo> CreateStore(const StoreConfig& config) = 0;
  virtual absl::StatusOr<StoreInfo> GetStore(absl::string_view name) = 0;
  // At most `count_max` stores whose name starts with `prefix` and comes after `after`.
  virtual absl::StatusOr<ListResult> ListStores(absl::string_view prefix, absl::string_view after,
                                                std::int64_t count_max) = 0;
  virtual absl::StatusOr<StoreInfo> UpdateStore(absl::string_view name,
                                                const StoreUpdate& update) = 0;
  virtual absl::Status DeleteStore(absl::string_view name) = 0;

  // Appends the batch whole or not at all. `request` is not needed once this returns.
  //
  // `on_turn` runs once, here or on another thread, when the append has its turn: those that are
  // called after it come after this one. That is at once but for inputs that take long to project.
  // `callback` runs once, when the rows are acknowledged or refused: in the order of the turns, and
  // while other writes wait, so it must be quick and must not wait for one. It runs here if too
  // much waits already, with QUEUE_FULL, or if the request may block; else on another thread.
  virtual void Append(const AppendRequest& request, AppendCallback callback,
                      absl::AnyInvocable<void()> on_turn) = 0;
  void Append(const AppendRequest& request, AppendCallback callback) {
    Append(request, std::move(callback), [] {});
  }

  // The last append of `writer`, those counted that were called before. WRITER_NOT_FOUND if it
  // never appended to the store.
  virtual absl::StatusOr<WriterInfo> GetWriter(absl::string_view store,
                                               absl::string_view writer) = 0;

  // The rows that `filter` leaves of the newest snapshot.
  virtual absl::StatusOr<std::unique_ptr<RowReader>> ReadRows(absl::string_view store,
                                                              const RowFilter& filter) = 0;

  // Deletes the rows that `filter`, which must not be empty, leaves. Positions and memories stay.
  virtual absl::StatusOr<DeleteRowsResult> DeleteRows(absl::string_view store,
                                                      const RowFilter& filter) = 0;

  // Answers a batch of queries from one snapshot. What `request.queries` points to must live until
  // `callback`. It runs once: before Lookup returns if the lookup is small, otherwise later on
  // another thread. It must not wait for another call. `cancel` stops the work. While the lookup
  // waits for its min_revision, the owner of `cancel` must cancel it at the deadline.
  virtual void Lookup(LookupRequest request, std::shared_ptr<CancelToken> cancel,
                      LookupCallback callback) = 0;

  // QUEUE_FULL if Lookup would now refuse so many queries over all rows of the store for load. OK
  // otherwise, also if the store does not exist. Cheap: callers ask before they decode a request.
  virtual absl::Status CheckRoom(absl::string_view store, std::int64_t query_count) = 0;

  // The memory `name` (empty: average) as of the append index `end` (default: all rows) and, for
  // the AVERAGE kind, from `begin` (default 0). Costs the reading of at most one block at either
  // end.
  virtual absl::StatusOr<MemoryState> GetMemory(absl::string_view store, absl::string_view name,
                                                std::optional<std::uint64_t> begin,
                                                std::optional<std::uint64_t> end) = 0;

  // Runs `callback` once, as Lookup does with min_revision: with OK once the store has `revision`,
  // or with what came before it, such as STORE_NOT_FOUND if the store of that name is not, or no
  // longer, the one whose MemoryState has this `incarnation`. It must be quick: all that wait share
  // a thread.
  virtual void WhenRevision(absl::string_view store, std::uint64_t incarnation,
                            std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                            absl::AnyInvocable<void(absl::Status)> callback) = 0;

  // Attention over the request's own keys and values; nothing is stored. What the request points to
  // must live until `callback`, which runs as Lookup's does.
  virtual void Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
                      LookupCallback callback) = 0;

  // Makes `directory`, which must not exist, a copy that Open takes: of what is here at one moment
  // during the call, whole writes only, with all that was acknowledged before the call. It is safe
  // on disk once this returns. Writes and lookups go on meanwhile; only the caller waits.
  //
  // BACKUPS_DISABLED if everything is in memory only, STORAGE_FAILED for what the file system
  // refuses.
  virtual absl::Status CopyTo(const std::string& directory) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_H_
