#ifndef SOFTLOOKUP_CLIENT_H_
#define SOFTLOOKUP_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/append_stream.h"
#include "softlookup/canceller.h"
#include "softlookup/credentials.h"
#include "softlookup/error_details.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/attention.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/memory.pb.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup {

// Says when the client sends a failed call again.
//
// Only calls that are safe to repeat are retried. These are reads with one answer: GetStore,
// ListStores, Lookup, Attend, GetMemory, GetWriter, ListBackups, GetGroup, GetRanges and Health.
// Append is safe if the request has `writer` and `sequence`, because the server then applies it
// exactly once. CreateStore, UpdateStore, RenameStore, CompactStore, DeleteStore, DeleteRows,
// CreateBackup, RestoreStore, AddReplica, RemoveReplica, MovePrimary, SplitStore, MoveRange and any
// other Append are sent once, unless the server refuses them because it is still reading its stores
// (LOADING). If the answer is lost, such a call may or may not have taken effect. ReadRows and
// WatchMemory are sent once, because only their caller knows after which row or memory to go on. An
// AppendStream with a writer is bounded by its own outage_max instead of attempts_max.
//
// Only these failures are retried: UNAVAILABLE, RESOURCE_EXHAUSTED if the server says how long to
// wait, and CANCELLED without a reason. A server that is stopping ends the calls that just arrive
// with this CANCELLED. No call is retried if the client finds that a TLS handshake failed because
// of a certificate, or because the server has no TLS. A server that refuses the client's
// certificate, or a client without TLS, only closes the connection, so such calls are retried.
//
// The wait before attempt n + 1 is random in [backoff_min, backoff_min * 2^n], at most backoff_max.
// The client adds the wait that the server asks for, in the trailer grpc-retry-pushback-ms, or
// without this trailer, in RetryInfo. The trailer can also forbid a retry. If the wait would
// outlast the deadline, the failure is returned at once.
//
// A client of several servers (see Client) makes the next attempt at the one that it uses then. A
// server that is still reading its stores, or follows the primary and so refuses a write, has not
// made the call: any call goes on from there to each other server once, without a wait.
struct RetryOptions {
  // Attempts of one call, the first included. At least 1. The default outlasts a restart of the
  // server, unless the deadline comes first.
  int attempts_max = 20;
  absl::Duration backoff_min = absl::Milliseconds(20);  // At least 0.
  absl::Duration backoff_max = absl::Seconds(2);        // At least backoff_min.
};

struct ClientOptions {
  // The options below change what calls do.
  absl::Duration deadline = absl::Seconds(10);  // Of a call, all its attempts together. > 0.
  RetryOptions retry = {};
  Credentials credentials = {};  // Default: plaintext, no token.
  // Largest message to send or receive, at least 1. A larger one fails with ResourceExhausted.
  int message_bytes_max = 64 << 20;

  // The options below change how soon the client notices a dead connection while a call is open on
  // it. The client pings the connection once per keepalive_interval. It closes the connection if no
  // answer comes within keepalive_timeout. Both must be > 0. A server may close a connection that
  // is pinged more often than every five minutes.
  absl::Duration keepalive_interval = absl::Minutes(5);
  absl::Duration keepalive_timeout = absl::Seconds(20);
};

struct CallOptions {
  std::optional<absl::Duration> deadline = {};  // > 0. Default: ClientOptions::deadline.
};

struct RenameStoreOptions {
  // Whether a store that has the new name is deleted in the same step.
  bool replace = false;
};

struct CompactStoreOptions {
  // Consents to the end of the memories as of append indexes inside the blocks that lose rows.
  bool end_memories = false;
};

struct LookupOptions {
  v1::AttentionOptions attention = {};  // Default: the store's score and temperature.
  v1::RowFilter filter = {};            // Default: all rows.
  v1::Source source = v1::SOURCE_ROWS;
  // For SOURCE_MEMORY. Default: "average". Ignored unless `source` is SOURCE_MEMORY.
  std::string memory = {};
  std::uint64_t min_revision = 0;  // The lookup waits until the store has this revision.
  // The answer is not older than any write that was acknowledged to anyone before the call. A
  // server of a group asks etcd for that.
  bool linearizable = false;
  // True: the queries are [T x input_dim] inputs, which the store's projection maps to queries.
  bool queries_are_inputs = false;
};

struct ReadRowsOptions {
  std::vector<std::string> read_mask = {};             // Fields of v1::Row to send. Default: all.
  absl::Duration deadline = absl::InfiniteDuration();  // For the whole read. > 0.

  // Largest number of rows in one page. 0: as many as the server allows. Changes the speed only.
  std::uint32_t page_rows = 0;

  Canceller* canceller = nullptr;  // Ends the read early. May be null; must outlive the call.
};

struct WatchMemoryOptions {
  // The server sends at most one memory per `min_interval`. In [0, 2^32) milliseconds.
  absl::Duration min_interval = absl::ZeroDuration();
  absl::Duration deadline = absl::InfiniteDuration();  // For the whole watch. > 0.

  Canceller* canceller = nullptr;  // Ends the watch early. May be null; must outlive the call.
};

// The answers to T queries, all from one snapshot. See v1::LookupResponse.
struct LookupAnswer {
  FloatMatrix values;                 // [T x value_dim].
  std::vector<v1::QueryStats> stats;  // T * num_heads, query-major.
  // T * num_heads, query-major. Empty unless LookupOptions::attention asks for weights.
  std::vector<v1::QueryWeights> weights;
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;

  // The fields below are for MergeAnswers() (merge_answers.h).

  // How far each log_sum_exp may be from the exact one. Lookup() sets it to the larger of
  // LookupOptions::attention.max_error and 1e-5.
  double log_sum_exp_error = 0;
  std::uint32_t parts = 1;  // How many answers this one was merged from.
  // Which of these answers each row in `weights` is from, counted from 0. Has a list for each list
  // in `weights`, and is empty if there are none or if this answer was not merged.
  std::vector<std::vector<std::uint32_t>> weight_parts;
};

// Numbered as in grpc.health.v1.
enum class ServingStatus { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// A connection to a softlookup server. Thread-safe: one Client is enough for most processes, and
// calls run in parallel over its connection. The server takes 1,024 calls at once of a connection
// (--max-streams-per-connection), and an open stream is one of them. Further calls wait for a place
// until their deadline. Another Client has a connection of its own.
//
// Every call blocks until it has its answer, at most until its deadline. It fails with the server's
// status: canonical code, message, and the details that error_details.h reads. If the server cannot
// be reached, it fails with Unavailable, and ErrorReason() is empty. The request messages of v1 say
// which requests the server refuses.
//
// A client can name several servers with the same data: routers of a cluster, or nodes of a group.
// It uses one at a time, at first the first one. It goes to the next one that can be reached when
// the one in use cannot be, when the connection breaks, when the server starts or stops or has lost
// its cluster, and when the server follows the primary and so refuses a write. It stays there, also
// when the one before is back. A server that does not answer an attempt to connect is given up
// after a second. RetryOptions says which calls are sent again. An AppendStream with a writer goes
// on at the next server. Other streams end, and the next one begins there.
class Client {
 public:
  // `address` is HOST:PORT or [IPV6]:PORT, with a port in [1, 65535], or a gRPC target name that
  // begins with dns:, unix:, ipv4: or ipv6: and has a port, too, unless it is a path. Several
  // addresses have commas between them; what begins with unix:, ipv4: or ipv6: is one address. With
  // TLS, each server's certificate must name the host of that server's address. This does not
  // wait for the server. The first call does, if it is retried (see RetryOptions): a program that
  // may start before its server calls Health() first. InvalidArgument for another address, an
  // option out of its range or credentials that ValidateCredentials() refuses.
  static absl::StatusOr<Client> Connect(std::string_view address,
                                        const ClientOptions& options = {});

  // A client that was moved from may only be destroyed or assigned to.
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Creates an empty store and returns it with the server's defaults filled in. AlreadyExists if
  // the name is taken.
  absl::StatusOr<v1::Store> CreateStore(const v1::Store& store, const CallOptions& call = {});

  // NotFound if there is no store of this name. A damaged store is returned, too: damage() then
  // says what is wrong with it, and fields that the server could not read are unset.
  absl::StatusOr<v1::Store> GetStore(std::string_view name, const CallOptions& call = {});

  // Returns the stores that the caller may read and whose names start with `prefix`, by name,
  // ascending. Damaged stores are included (see GetStore). Makes one call per page of the list.
  // Each call has the full deadline. A store that is created or deleted meanwhile may or may not be
  // listed. One that is renamed meanwhile may be listed under either name, under both or under
  // none. Internal if a page names itself as the next one, because the list would not end.
  absl::StatusOr<std::vector<v1::Store>> ListStores(std::string_view prefix = {},
                                                    const CallOptions& call = {});

  // Returns one page of what ListStores() returns, in one call.
  absl::StatusOr<v1::ListStoresResponse> ListStoresPage(const v1::ListStoresRequest& request,
                                                        const CallOptions& call = {});

  // Changes the store `store.name()` on the server. Sets the fields named in `update_mask`
  // ("score", "temperature", "labels", "projection") as in `store`, and no others. Returns the
  // updated store. NotFound if there is no store of this name.
  absl::StatusOr<v1::Store> UpdateStore(const v1::Store& store,
                                        const std::vector<std::string>& update_mask,
                                        const CallOptions& call = {});

  // Gives the store `store` the name `new_name`, in one step. Returns the renamed store without the
  // elements of its matrices, and says which store it replaced, if any. NotFound if there is no
  // store `store`. AlreadyExists if another store has the new name, unless
  // RenameStoreOptions::replace is set. InvalidArgument if the names are equal. DataLoss if the
  // store, or the one to replace, is damaged.
  //
  // The request is sent once. After Unavailable or DeadlineExceeded, the store may have either
  // name. GetStore() of both names then tells which: a store keeps its create_time. A second rename
  // after one that took effect fails with NotFound.
  absl::StatusOr<v1::RenameStoreResponse> RenameStore(std::string_view store,
                                                      std::string_view new_name,
                                                      const RenameStoreOptions& options = {},
                                                      const CallOptions& call = {});

  // Drops deleted rows of the store from RAM and from the server's disk, block by block (see
  // v1::CompactStoreRequest). FailedPrecondition with the reason COMPACTION_ENDS_MEMORIES if there
  // are rows to drop, unless CompactStoreOptions::end_memories is set. ResourceExhausted with the
  // reason COMPACTION_IN_PROGRESS while the server compacts a store. NotFound if there is no store
  // of this name.
  //
  // The call takes up to minutes for a large store, so the deadline must allow for that. If the
  // deadline passes, the server ends the work. What it dropped by then is gone, and the next call
  // goes on with the rest. The request is sent once.
  absl::StatusOr<v1::CompactStoreResponse> CompactStore(std::string_view name,
                                                        const CompactStoreOptions& options = {},
                                                        const CallOptions& call = {});

  // NotFound if there is no store of this name. A damaged store is deleted, too.
  absl::Status DeleteStore(std::string_view name, const CallOptions& call = {});

  // Appends all rows or none: `keys` [N x key_dim], `values` [N x value_dim]. The request is sent
  // once. After Unavailable or DeadlineExceeded, the rows may or may not be in the store.
  absl::StatusOr<v1::AppendResponse> Append(std::string_view store, FloatMatrixView keys,
                                            FloatMatrixView values, const CallOptions& call = {});

  // Sends `request`, of which the caller sets all fields. A request with `writer` and `sequence` is
  // retried, because the server applies it once. A sequence that is not above the writer's last one
  // in the store counts as sent before: the answer is OK, has `duplicate` set, and nothing is
  // written. So make one call at a time for each writer and store, and ask GetWriter() after a
  // restart of the process.
  absl::StatusOr<v1::AppendResponse> Append(const v1::AppendRequest& request,
                                            const CallOptions& call = {});

  // Opens a stream for many rows. It takes one of the connection's places for calls until it ends.
  // To write few rows for each of many users, call Append() with a writer and a sequence instead.
  //
  // InvalidArgument for an option out of its range. Without a writer, this does not wait for the
  // server: if the store is unknown, one of the stream's first calls fails. With a writer, this
  // calls GetWriter() and returns its errors, except that an unknown writer counts as a new one.
  absl::StatusOr<AppendStream> OpenAppendStream(std::string_view store,
                                                const AppendStreamOptions& options = {});

  // Returns the writer's last sequence in the store and the position of the last row it wrote.
  // NotFound if there is no such store, or with the reason WRITER_NOT_FOUND if the writer never
  // appended to it.
  absl::StatusOr<v1::Writer> GetWriter(std::string_view store, std::string_view writer,
                                       const CallOptions& call = {});

  // Calls `page` with the rows that pass `filter`, in position order and from one snapshot. There
  // is at least one page, which tells the revision even if no row passes. `page` runs on the
  // caller's thread. While `page` runs, the server can send only as many rows as fit the
  // connection's flow control window. If `page` returns false, the read ends with OK. After a
  // failure, the caller can go on with a new read, whose filter begins after the last row that
  // `page` got.
  absl::Status ReadRows(std::string_view store, const v1::RowFilter& filter,
                        const std::function<bool(const v1::ReadRowsResponse&)>& page,
                        const ReadRowsOptions& options = {});

  // Deletes the rows that pass `filter`, which must not be empty. The request is sent once. After
  // Unavailable or DeadlineExceeded, the rows may or may not be deleted.
  absl::StatusOr<v1::DeleteRowsResponse> DeleteRows(std::string_view store,
                                                    const v1::RowFilter& filter,
                                                    const CallOptions& call = {});

  // Answers `queries`: [T x key_dim], or [T x input_dim] with LookupOptions::queries_are_inputs.
  // The lists of the answer have the sizes that LookupAnswer says, and all weights are finite:
  // Internal if the server sends another answer.
  absl::StatusOr<LookupAnswer> Lookup(std::string_view store, FloatMatrixView queries,
                                      const LookupOptions& options = {},
                                      const CallOptions& call = {});

  // Computes attention as Lookup() does, but over the keys and values in `request`. The server
  // stores nothing.
  absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                            const CallOptions& call = {});

  // Returns a memory as of any append index, or the memory "average" of any window of rows. The
  // matrices of the result are FLOAT64: see DoublesFromProto().
  absl::StatusOr<v1::Memory> GetMemory(const v1::GetMemoryRequest& request,
                                       const CallOptions& call = {});

  // Calls `changed` with the memory `name` (empty: "average") at once, and again after appends.
  // Several appends may show as one change. `changed` runs on the caller's thread. If it returns
  // false, the watch ends with OK. While the memory does not change, only another thread can end
  // the watch, by WatchMemoryOptions::canceller: the watch then returns Cancelled. If the store is
  // deleted, renamed or replaced, the server ends the watch with NotFound.
  absl::Status WatchMemory(std::string_view store, std::string_view name,
                           const std::function<bool(const v1::Memory&)>& changed,
                           const WatchMemoryOptions& options = {});

  // Makes a backup of all stores on the server. If `name` is empty, the backup is named after the
  // time. The call takes as long as copying the stores, so the deadline must allow for that. Sent
  // once. If the deadline passes, the server still goes on with the backup, and ListBackups() tells
  // whether it was completed. AlreadyExists if the name is taken.
  absl::StatusOr<admin::v1::Backup> CreateBackup(std::string_view name = {},
                                                 const CallOptions& call = {});

  // Returns the server's complete backups, oldest first.
  absl::StatusOr<std::vector<admin::v1::Backup>> ListBackups(const CallOptions& call = {});

  // Brings the store `store` of the server's backup `backup` into the server, and returns it as it
  // is there, without the elements of its matrices. It gets the name `name`, or, if that is empty,
  // the name that it had. The call reads the whole backup and writes the store, which takes several
  // times as long while the server has other calls (docs/operating.md), so the deadline must allow
  // for that. If the deadline passes, nothing of the store stays. Sent once: if the answer is lost,
  // GetStore() tells whether the store is there. NotFound if there is no such backup, or no such
  // store in it. AlreadyExists if the server has a store of the new name. DataLoss if the backup is
  // damaged. ResourceExhausted with the reason RESTORE_IN_PROGRESS while the server restores a
  // store.
  absl::StatusOr<v1::Store> RestoreStore(std::string_view backup, std::string_view store,
                                         std::string_view name = {}, const CallOptions& call = {});
  // The same with all that a request can say, such as that the store keeps its ranges.
  absl::StatusOr<v1::Store> RestoreStore(const admin::v1::RestoreStoreRequest& request,
                                         const CallOptions& call = {});

  // Returns the group of replicas of which the server is one, as the server has read it from etcd
  // within some seconds. FailedPrecondition with the reason NO_CLUSTER if it is no replica.
  absl::StatusOr<admin::v1::Group> GetGroup(const CallOptions& call = {});

  // The next three change the group, and return it as it is then. The server must be the primary of
  // the group. Each is sent once: if the answer is lost, GetGroup() tells whether the change was
  // made. FailedPrecondition with the reason GROUP_UNCHANGED if the group cannot be changed so, or
  // the server is not the primary; the message says why. Unavailable with the reason
  // CLUSTER_UNAVAILABLE if etcd does not answer: the change may have been made.

  // Makes `node` a replica, which must then be started. OK if it is one already.
  absl::StatusOr<admin::v1::Group> AddReplica(std::string_view node, const CallOptions& call = {});
  // Makes `node`, which must not be the primary, no replica. OK if it is none.
  absl::StatusOr<admin::v1::Group> RemoveReplica(std::string_view node,
                                                 const CallOptions& call = {});
  // Has the server step down, so that another replica becomes the primary. Waits for that for some
  // seconds. The `primary` of the result is empty if no replica has become the primary by then.
  absl::StatusOr<admin::v1::Group> MovePrimary(const CallOptions& call = {});

  // The next three are about the ranges of a store, and return them as they are then. NotFound if
  // there is no such store. FailedPrecondition with the reason NO_CLUSTER if the server is no
  // replica. Changes are sent once, and the primary alone makes them. With `dry_run`, the first two
  // return what they would set, and change nothing.

  // Cuts the rows that `store` has now into `range_count` ranges of about equal size, which go
  // round the nodes of the group. A store that has ranges already is cut there as well, and its
  // rows keep their nodes. With a `range_count` of 1 the store has no ranges any more.
  // InvalidArgument if it has too few rows for that many.
  absl::StatusOr<admin::v1::StoreRanges> SplitStore(std::string_view store,
                                                    std::uint32_t range_count, bool dry_run = false,
                                                    const CallOptions& call = {});
  // Gives the range of `store` that begins at `begin` to `nodes`, 1 to 5 nodes of the group.
  // InvalidArgument if no range begins there, or a node is none of the group. A node that gets the
  // range loads its rows first, and one that loses it drops them at once. So name both until
  // GetRanges() shows that the new one has all rows.
  absl::StatusOr<admin::v1::StoreRanges> MoveRange(std::string_view store, std::uint64_t begin,
                                                   const std::vector<std::string>& nodes,
                                                   bool dry_run = false,
                                                   const CallOptions& call = {});
  // Returns the ranges as they are, and how many of their rows a node keeps in RAM: the node
  // `node`, which a router can be asked about, or the one that answers.
  absl::StatusOr<admin::v1::StoreRanges> GetRanges(std::string_view store,
                                                   std::string_view node = {},
                                                   const CallOptions& call = {});

  // Returns whether the server takes calls. If `service` is not empty, returns whether this one
  // gRPC service does, such as "softlookup.v1.SoftLookup". NotFound if the server has no service of
  // this name.
  absl::StatusOr<ServingStatus> Health(std::string_view service = {}, const CallOptions& call = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CLIENT_H_
