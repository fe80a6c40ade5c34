#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
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
#include "softlookup/engine_observer.h"
#include "softlookup/engine_stats.h"
#include "softlookup/kernel.h"
#include "softlookup/memory.h"
#include "softlookup/row.h"
#include "softlookup/store_config.h"

namespace softlookup {

struct PartialLookup;   // partial_lookup.h
struct RowSums;         // partial_lookup.h
struct RowSumsRequest;  // partial_lookup.h

struct EngineOptions {
  Limits limits;
  // The engine compacts a store by itself, as CompactStore() with `end_memories` does, once it
  // could drop at least this part of the rows that no compaction has dropped yet. In [0, 1]. 0:
  // never.
  double compact_above = 0;
  std::shared_ptr<EngineObserver> observer;  // Null: events are not reported.
  // This server's name in its group. Of a store that is cut into ranges, it keeps those rows in
  // memory whose ranges name it, and all rows on disk. Empty: all rows in RAM.
  std::string node;
  // The options below change the speed. Only `kernel` can also change answers, in their last bits.

  // Threads that run the scheduler's jobs, such as lookups, and load stores. At least 1.
  int thread_count = 1;
  // Most queries in one pass that several lookups in a store share. A lookup with more queries has
  // a pass of its own. At least 1. With 1, lookups share no pass.
  std::int64_t queries_per_pass_max = 256;
  // Longest time that a store's next pass waits for more lookups, counted from the answers of the
  // store's previous pass.
  absl::Duration pass_wait_max = absl::Milliseconds(5);
  // If ChooseKernel refuses this kernel, the engine uses kSimd.
  Kernel kernel = Kernel::kAuto;
};

// The name of the memory that every store keeps.
inline constexpr absl::string_view kAverageMemory = "average";

// Links appends to one store, such as the appends of a stream. Once one append fails, the engine
// refuses all later appends of the chain with CANCELLED. If another store comes to have the store's
// name, later appends of the chain fail. Pass an append to Engine::Append() only once `on_turn`
// of the chain's previous append has run. Otherwise the order of the two appends is undefined.
//
// The engine sets the members. It numbers the appends of a chain from 1, in their order.
struct AppendChain {
  // Appends with larger numbers are refused. When an append fails, the engine lowers this number.
  // The appends before the failed one still run, even if they have their turns after the failure.
  std::atomic<std::uint64_t> last_to_run{std::numeric_limits<std::uint64_t>::max()};
  std::uint64_t append_count = 0;  // Number of the newest append. 0: there is none yet.
  std::uint64_t store_number = 0;  // Number of the chain's store. 0: not known yet.
};

struct AppendRequest {
  absl::string_view store;
  MatrixView keys;    // [N, key_dim], finite, N in [1, rows_per_append_max].
  MatrixView values;  // [N, value_dim], finite.
  // [N, input_dim], finite. If set, the store's projection makes the keys and values from the
  // inputs, and `keys` and `values` are not used. NO_PROJECTION if the store has none.
  std::optional<MatrixView> inputs;
  absl::Span<const std::uint64_t> ids;                    // Empty, or one per row, all different.
  OnConflict on_conflict = OnConflict::kUnspecified;      // Unspecified: fail.
  absl::Span<const std::vector<std::string>> row_labels;  // Empty, or one element per row.
  std::vector<std::string> return_memories;               // Names of the memories to return.
  // The writer's name, and the number of its append, which is at least 1. Set both or neither. An
  // append is a duplicate, and changes nothing, if `sequence` is not above that of the writer's
  // last append.
  std::string writer;
  std::uint64_t sequence = 0;
  // True: acknowledged when lookups see the rows and, if the engine has a directory, the disk has
  // them. False: acknowledged when lookups see the rows, although a power cut may still lose them.
  bool durable = true;
  // Whether the write may run on the caller's thread, which then waits for the disk.
  bool may_block = false;
  std::shared_ptr<AppendChain> chain;  // May be null.
  // A time of day, as absl::Now() returns it. The append is refused if its inputs are not projected
  // by then. Rows that need no projection, or are projected by then, are written even after the
  // deadline.
  absl::Time deadline = absl::InfiniteFuture();
};

struct AppendResult {
  std::uint64_t first_position = 0;
  std::uint64_t appended_count = 0;
  bool duplicate = false;             // Nothing was done (see AppendRequest::sequence).
  std::uint64_t row_count = 0;        // Row count of the store after this append.
  std::uint64_t revision = 0;         // Revision of the store after this append.
  std::vector<MemoryState> memories;  // As of this append, in the order asked for.
};

// Where the time of a lookup went, and about how many rows it covers.
struct LookupReport {
  absl::Duration revision_wait;  // Waiting for min_revision, or to be linearizable.
  absl::Duration queue_wait;     // Waiting in the scheduler's queue.
  // From the start of the lookup's batch to the end of its pass. Includes the time to select rows
  // if a job of the scheduler selected them.
  absl::Duration compute;
  // Estimate of the rows to scan, from the filter's range. Rows that other parts of the filter
  // exclude, or that a first look leaves out, still count.
  std::uint64_t scanned_rows = 0;
};

// What a lookup attends to. The enumerators have the numbers of proto/softlookup/v1/lookup.proto.
enum class Source { kUnspecified = 0, kRows = 1, kMemory = 2, kRowsAndMemory = 3 };

struct LookupRequest {
  std::string store;
  MatrixView queries;  // [T, key_dim], finite, T in [0, queries_per_lookup_max].
  // [T, input_dim], finite. If set, the store's projection makes the queries from the inputs, and
  // `queries` is not used. NO_PROJECTION if the store has none.
  std::optional<MatrixView> inputs;
  AttentionOptions options;
  RowFilter filter;
  Source source = Source::kUnspecified;  // Unspecified: rows.
  std::string memory;                    // Name of the memory, for kMemory. Empty: average.
  std::uint64_t min_revision = 0;        // The lookup waits until the store has this revision.
  // The answer is not older than any write that was acknowledged before the lookup began. A replica
  // asks etcd for that. CLUSTER_UNAVAILABLE if it is not sure to have all such writes within 5 s.
  bool linearizable = false;
  // Whether the lookup fails with kStoreHasRanges (partial_lookup.h) in a store that has ranges.
  // Then each range is to be asked for its part.
  bool refuses_ranges = false;
  // The engine sets `*report` before it runs the callback, also if the lookup fails. But it sets
  // `revision_wait` only if the lookup waited for what that counts, and nothing else if that wait
  // failed. A lookup that is refused at once may leave `*report` unchanged. Not owned. May be null.
  LookupReport* report = nullptr;
};

// Which part of a lookup to answer, for a range of the store's positions. All ranges must answer as
// of one revision (partial_lookup.h).
struct LookupPart {
  PositionRange range;
  // The revision to answer as of, once the store has it. LookupRequest::min_revision is not used
  // then. 0: the newest, once the store has min_revision.
  std::uint64_t revision = 0;
  // The MemoryState::incarnation of the store that has this revision. 0: any.
  std::uint64_t incarnation = 0;
  // Whether the part fails with kSnapshotGone if the store has a newer revision.
  bool must_be_newest = false;
  // This server has answered another part of the lookup. So this one is not refused with QUEUE_FULL
  // for the work that waits.
  bool is_further = false;
};

// Attention over keys and values that the request carries.
struct AttendRequest {
  MatrixView queries;  // [T, key_dim]
  MatrixView keys;     // [N, key_dim]
  MatrixView values;   // [N, value_dim]
  // [N, input_dim]. If set, the projection makes the keys and values from the inputs, and `keys`
  // and `values` are not used.
  std::optional<MatrixView> inputs;
  // Used only with `inputs`. With `inputs`, null is valid only if `self` is set: the inputs
  // themselves are then the queries, keys and values.
  std::shared_ptr<const Projection> projection;
  // Self attention: the queries, too, come from `inputs`, which must be set. `queries` is not used.
  bool self = false;
  std::int64_t num_heads = 1;
  AttentionOptions options;  // Defaults: SCALED_DOT, temperature 1.
};

struct LookupResult {
  std::vector<float> values;     // [T, value_dim]
  std::int64_t query_count = 0;  // T
  std::int64_t value_dim = 0;
  std::vector<QueryStats> stats;      // [T, num_heads].
  std::vector<QueryWeights> weights;  // [T, num_heads]. Empty unless asked for.
  std::uint64_t revision = 0;         // Revision of the snapshot that answered. 0 for an Attend.
  std::uint64_t row_count = 0;        // Row count of that snapshot. 0 for an Attend.
};

struct DeleteRowsResult {
  std::uint64_t deleted_count = 0;
  std::uint64_t revision = 0;
};

struct CompactionRequest {
  std::string store;
  // Consents to the end of memories as of an index inside a compacted block.
  bool end_memories = false;
  // The engine adds to `*dropped_rows` the number of rows that it drops, also if the call fails
  // afterwards. Not owned. May be null.
  std::uint64_t* dropped_rows = nullptr;
};

struct CompactionResult {
  std::uint64_t block_count = 0;   // Blocks that lost rows.
  std::uint64_t dropped_rows = 0;  // Deleted rows that are gone.
  StoreInfo store;                 // The store afterwards.
};

// A store to take from a copy of the stores of an engine.
struct StoreRestore {
  std::string directory;      // What Engine::CopyTo() made. It is only read.
  std::string store;          // The store's name there.
  std::string name;           // The name that it gets. Empty: the same.
  bool keeps_ranges = false;  // A node of a group then loads the rows of its own ranges alone.
  // Either check may be empty. If a check returns an error, the restore ends and returns it.
  // check_directory is called after the names are found to be valid and the new name to be free,
  // and before anything in the directory is read. check_store is called after the store is read,
  // and before it is copied. Its argument is the store as it will be.
  std::function<absl::Status()> check_directory;
  std::function<absl::Status(const StoreInfo&)> check_store;
};

// Reads rows of one snapshot, in position order. Not thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // Returns the next rows, at most `count_max`. Returns none at the end, and after an error.
  virtual std::vector<Row> Next(std::int64_t count_max) = 0;
  // The error that ended the rows, or OK.
  virtual const absl::Status& status() const = 0;
  virtual std::uint64_t revision() const = 0;
  // Bytes of the key and value of a returned Row.
  virtual std::int64_t row_bytes() const = 0;
};

// The last append of a writer. The writer resumes after this append.
struct WriterInfo {
  std::uint64_t last_sequence = 0;
  std::uint64_t last_position = 0;  // Position of the last row it appended. 0 if it appended none.
};

struct ListResult {
  std::vector<StoreInfo> stores;  // By name, ascending.
  bool more = false;              // Whether more stores with the prefix follow.
};

// Receives events while stores are loaded or verified: one call at a time, on any thread.
class LoadObserver {
 public:
  virtual ~LoadObserver() = default;
  // Called when `loaded` of `count` stores are done, damaged ones included.
  virtual void OnProgress(std::int64_t loaded, std::int64_t count) {}
  // Called for each store that was loaded whole.
  virtual void OnStore(const StoreInfo& info) {}
  // Called for each damaged store. `damage` is a DATA_LOSS error that names the store, or says its
  // number if the name is lost. Engine::Verify() also passes two errors that name no store:
  // UNAVAILABLE for a store that could not be read, and the error of the check of all table files.
  virtual void OnDamage(const absl::Status& damage) {}
  // Called at most once, when all stores are loaded, if the engine will not compact the tables of
  // the log before it is opened again. Tables that hold records of both deleted stores and others
  // then keep their disk. `why` says what the reason is, and what helps.
  virtual void OnDiskKept(const absl::Status& why) {}
};

// Keeps stores of rows, and answers soft lookups over them. Thread-safe. Lookups, and appends of
// keys and values, never wait for each other, except that a lookup waits for its min_revision. Each
// lookup sees one snapshot.
//
// Errors carry a reason (core/base/error.h). If one field or row of a request is wrong, the error
// names it. Fields have the names of the wire contract. A refused call changes nothing.
class Engine {
 public:
  using AppendCallback = absl::AnyInvocable<void(absl::StatusOr<AppendResult>)>;
  using LookupCallback = absl::AnyInvocable<void(absl::StatusOr<LookupResult>)>;
  using PartCallback = absl::AnyInvocable<void(absl::StatusOr<PartialLookup>)>;
  using RowSumsCallback = absl::AnyInvocable<void(absl::StatusOr<RowSums>)>;

  // Creates an engine without a directory. Its stores do not outlive the process.
  static std::unique_ptr<Engine> Create(const EngineOptions& options);

  // Creates an engine that also keeps its stores in `directory`, which is created if missing. Until
  // Load has succeeded, calls of most methods fail with LOADING. Exceptions are Attend, CheckRoom,
  // CopyTo, DamagedStores, limits and stats.
  //
  // DIRECTORY_IN_USE if another process has the directory open. DATA_LOSS if the log in it is so
  // damaged that it cannot be opened, or has lost synced writes. STORAGE_FAILED for other errors of
  // the file system.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(const EngineOptions& options,
                                                      const std::string& directory);
  // Opens the directory like the function above, then loads its stores. Calls `on_damage` for each
  // damaged store.
  static absl::StatusOr<std::unique_ptr<Engine>> Open(
      const EngineOptions& options, const std::string& directory,
      absl::FunctionRef<void(const absl::Status&)> on_damage);

  // Reads the stores in `directory`, which must exist, as Open and Load do. Then checks all table
  // files of the log, also the parts that Open and Load do not read. Goes on after a damaged store,
  // and at the end returns the first error. Changes no stored data. Never calls
  // observer.OnProgress().
  static absl::Status Verify(const std::string& directory, LoadObserver& observer);

  // Waits for lookups, Attends and writes in progress. Does not wait for calls that wait for a
  // revision, so cancel such calls first. No other method may be called from then on.
  virtual ~Engine() = default;

  virtual const Limits& limits() const = 0;

  // Returns the counts and sizes of the whole engine. Takes time in proportion to the number of
  // stores with recent work in the scheduler. Does not wait for other calls to finish.
  virtual EngineStats stats() const = 0;

  // Loads the stores of the directory. Call this once if the engine comes from the first Open, and
  // never otherwise. Blocks. Other methods may be called meanwhile. Later calls to a damaged store
  // fail with DATA_LOSS, except GetStore, ListStores and DeleteStore. Its name stays taken.
  virtual absl::Status Load(LoadObserver& observer) = 0;

  // CreateStore, UpdateStore, RenameStore, DeleteStore, GetWriter and DeleteRows block. They wait
  // for earlier writes and, if there is a directory, for the disk. QUEUE_FULL if too many bytes of
  // writes wait.

  // In a replica, a call that gives a store a name first claims the name's tenant: CreateStore,
  // RestoreStore, and RenameStore to another tenant. The errors are those of
  // Replication::ClaimTenant().

  // STORE_EXISTS if there is a store of this name. TOO_MANY_STORES beyond Limits::store_count_max.
  virtual absl::StatusOr<StoreInfo> CreateStore(const StoreConfig& config) = 0;
  virtual absl::StatusOr<StoreInfo> GetStore(absl::string_view name) = 0;
  // Returns at most `count_max` stores whose names start with `prefix` and come after `after`.
  // Damaged stores are included.
  virtual absl::StatusOr<ListResult> ListStores(absl::string_view prefix, absl::string_view after,
                                                std::int64_t count_max) = 0;
  virtual absl::StatusOr<StoreInfo> UpdateStore(absl::string_view name,
                                                const StoreUpdate& update) = 0;
  // Gives a store another name, as one write and the store's next revision. With `replace`, the
  // same write deletes the store that has the new name. At every moment, a lookup in the new name
  // then finds one of the two stores.
  //
  // To calls in progress, the old name and the replaced store end as if they were deleted. Lookups
  // and readers go on with their snapshots. Calls that wait for a revision fail with
  // STORE_NOT_FOUND. So do writes that were called before the rename and have their turn after it.
  //
  // STORE_NOT_FOUND if there is no store `name`. STORE_EXISTS if another store has the new name and
  // `replace` is not set. INVALID_OPTION if the two names are the same. DATA_LOSS if the store, or
  // the one to replace, is damaged. Never refused for the bytes of the new name.
  virtual absl::StatusOr<StoreRenamed> RenameStore(const StoreRename& rename) = 0;
  virtual absl::Status DeleteStore(absl::string_view name) = 0;

  // Makes the ranges of a store out of the store as it is.
  using RangesOf = absl::FunctionRef<absl::StatusOr<std::vector<StoreRange>>(const StoreInfo&)>;
  // Gives a store the ranges that `plan` makes of it, as one write and the store's next revision.
  // `plan` is called in the write's turn, so that it sees all earlier writes. Other writes wait for
  // it, so it must be quick. Its errors, and those of CheckStoreRanges() about what it returns,
  // refuse the write. Blocks, as UpdateStore().
  virtual absl::StatusOr<RangesInfo> SetRanges(absl::string_view name, RangesOf plan) = 0;
  absl::StatusOr<RangesInfo> SetRanges(absl::string_view name,
                                       const std::vector<StoreRange>& ranges) {
    return SetRanges(
        name, [&](const StoreInfo&) -> absl::StatusOr<std::vector<StoreRange>> { return ranges; });
  }
  // Returns what SetRanges() would, but with the revision that the store has, and changes nothing.
  virtual absl::StatusOr<RangesInfo> PlanRanges(absl::string_view name, RangesOf plan) = 0;
  absl::StatusOr<RangesInfo> GetRanges(absl::string_view name) {
    return PlanRanges(name, [](const StoreInfo& store) -> absl::StatusOr<std::vector<StoreRange>> {
      return store.config.ranges;
    });
  }

  // Appends the batch whole or not at all. `request` may be destroyed once this returns.
  //
  // An append's turn is its place in the order of writes. `on_turn` runs once, on this or another
  // thread, when the turn is fixed. An append that is called after `on_turn` has run comes after
  // this one. The turn is fixed at once unless the inputs take long to project.
  //
  // `callback` runs once, when the rows are acknowledged or refused, in the order of the turns.
  // Other writes wait while `callback` runs, so it must be quick and must not wait for a write. If
  // `may_block` is set, `callback` may run on this thread. If the append is refused with
  // QUEUE_FULL, `callback` may run on this thread and before the callbacks of earlier appends. All
  // other callbacks run on another thread.
  virtual void Append(const AppendRequest& request, AppendCallback callback,
                      absl::AnyInvocable<void()> on_turn) = 0;
  void Append(const AppendRequest& request, AppendCallback callback) {
    Append(request, std::move(callback), [] {});
  }

  // Returns the last append of `writer`. Includes all appends whose turns were fixed before this
  // call. WRITER_NOT_FOUND if `writer` never appended to the store.
  virtual absl::StatusOr<WriterInfo> GetWriter(absl::string_view store,
                                               absl::string_view writer) = 0;

  // Returns a reader of the rows that pass `filter`, as of the newest snapshot.
  virtual absl::StatusOr<std::unique_ptr<RowReader>> ReadRows(absl::string_view store,
                                                              const RowFilter& filter) = 0;

  // Deletes the live rows that pass `filter`, which must not be empty. Positions and running
  // memories do not change.
  virtual absl::StatusOr<DeleteRowsResult> DeleteRows(absl::string_view store,
                                                      const RowFilter& filter) = 0;

  // Drops deleted rows from RAM and from the log. Stores keep rows in blocks of a fixed number of
  // positions. A block loses its deleted rows if at most a quarter of its positions hold live rows.
  // The store's last block loses none. This call blocks. It works in parts, so that other calls to
  // the store go on meanwhile. Positions, ids, labels and the bits of lookups of rows do not
  // change. Nor do the memories over all rows, or those as of an index at the edge of a block.
  // Memories as of an index inside a compacted block fail with ROWS_COMPACTED from then on. So do
  // windows that begin or end there, and lookups that ask for such a memory.
  //
  // COMPACTION_ENDS_MEMORIES if there are rows to drop and `request.end_memories` is not set.
  // COMPACTION_IN_PROGRESS if the store is being compacted. After any other error, or once `cancel`
  // ends the work, what was dropped so far is gone, and the next call goes on with the rest.
  virtual absl::StatusOr<CompactionResult> CompactStore(const CompactionRequest& request,
                                                        const CancelToken& cancel) = 0;

  // Answers a batch of queries from one snapshot. The data of `request.queries` and
  // `request.inputs` must live until `callback` runs.
  //
  // `callback` runs once: before Lookup returns if the lookup is small or refused at once,
  // otherwise later on another thread. If the lookup waits (LookupReport::revision_wait), that can
  // be the thread that calls cancel->Cancel(). `callback` must not wait for another call.
  //
  // `cancel` stops the work. But a deadline that passes does not end such a wait. So
  // the owner of `cancel` must call Cancel() at the deadline.
  virtual void Lookup(LookupRequest request, std::shared_ptr<CancelToken> cancel,
                      LookupCallback callback) = 0;
  // Returns whether a lookup that is linearizable waits. False if the engine is no replica.
  virtual bool asks_for_latest() const = 0;

  // Answers a part of a lookup, by the rules of Lookup(). kSnapshotGone (partial_lookup.h) if the
  // snapshot of part.revision is not kept any more, or must be the newest and is not. The engine
  // keeps the last snapshots of a store for 10 s, and at most 16,384 of them, while it is asked for
  // parts. So the first part of an older revision fails.
  virtual void AnswerPart(LookupRequest request, const LookupPart& part,
                          std::shared_ptr<CancelToken> cancel, PartCallback callback) = 0;
  // Answers what MergedLookup asks of the part in the second phase. `request` is that of the first
  // phase, and part.revision is the revision that was answered. Also kSnapshotGone as above. Never
  // refused with QUEUE_FULL.
  virtual void SumRowsOfPart(LookupRequest request, const LookupPart& part, RowSumsRequest rows,
                             std::shared_ptr<CancelToken> cancel, RowSumsCallback callback) = 0;

  // Returns QUEUE_FULL if the current load would make Lookup refuse `query_count` queries over all
  // rows of the store. Returns OK otherwise, also if the store does not exist, is damaged or is not
  // loaded yet. Cheap, so that callers can ask before they decode a request.
  virtual absl::Status CheckRoom(absl::string_view store, std::int64_t query_count) = 0;

  // Returns the memory `name` (empty: average) over the positions [begin, end). By default these
  // are all positions. Only the AVERAGE kind takes a `begin` above 0. Reads at most one block each
  // for `begin` and for `end`.
  virtual absl::StatusOr<MemoryState> GetMemory(absl::string_view store, absl::string_view name,
                                                std::optional<std::uint64_t> begin,
                                                std::optional<std::uint64_t> end) = 0;

  // Runs `callback` once: with OK when the store has `revision`, or with an error if the wait ends
  // before. As in Lookup, the owner of `cancel` must call Cancel() at the deadline. The error is
  // STORE_NOT_FOUND if `store` does not exist, has another `incarnation` (see MemoryState), or is
  // deleted, renamed or replaced meanwhile.
  //
  // `callback` may run before this returns. It must be quick, because one thread runs the callbacks
  // of all waiting calls.
  virtual void WhenRevision(absl::string_view store, std::uint64_t incarnation,
                            std::uint64_t revision, std::shared_ptr<CancelToken> cancel,
                            absl::AnyInvocable<void(absl::Status)> callback) = 0;

  // Computes attention over the request's own keys and values. Stores nothing. The data that the
  // request points to must live until `callback` runs. `callback` runs by the rules of Lookup's.
  virtual void Attend(const AttendRequest& request, std::shared_ptr<CancelToken> cancel,
                      LookupCallback callback) = 0;

  // Returns the names, in order, of the damaged stores that Load has found so far and that are not
  // deleted. A damaged store whose name is lost is not among them.
  virtual std::vector<std::string> DamagedStores() const = 0;

  // Copies the stores to `directory`, which must not exist and which Open can open later. The copy
  // shows one moment during the call. It has whole writes only, and every write that was
  // acknowledged before the call. The copy shares files with the engine's directory. These files
  // are safe on disk once the caller has synced them. Other calls do not wait for this one. A
  // damaged store is copied with its damage.
  //
  // BACKUPS_DISABLED if the engine has no directory, STORAGE_FAILED for errors of the file system.
  virtual absl::Status CopyTo(const std::string& directory) = 0;

  // Takes a store from a copy that CopyTo() made, and adds it to this engine's stores as it was
  // then: its rows with their positions, ids and labels, deleted rows, writers, memories, settings,
  // creation time and revision. Only its name may be another. Checks the store's records, and then
  // copies them. Blocks as long as that takes; other calls go on meanwhile. Waits while too many
  // bytes of writes wait. Nobody sees the store before it is whole and on the disk. After an error,
  // or once `cancel` ends the work, nothing of the store is left.
  //
  // STORE_NOT_FOUND if the copy has no store of that name. STORE_EXISTS if there is a store of the
  // new name, also if it came meanwhile. TOO_MANY_STORES and MEMORY_LIMIT as for a new store and
  // its rows. DATA_LOSS if the store or the copy is damaged. STORAGE_FAILED if the copy cannot be
  // read. Also the errors of the checks in `restore`.
  virtual absl::StatusOr<StoreInfo> RestoreStore(const StoreRestore& restore,
                                                 const CancelToken& cancel) = 0;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_ENGINE_H_
