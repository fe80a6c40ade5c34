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
#include "softlookup/credentials.h"
#include "softlookup/error_details.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/attention.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/memory.pb.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup {

// When a failed call is tried again.
//
// Only calls that are safe to repeat are: reads that have one answer (GetStore, ListStores, Lookup,
// Attend, GetMemory, GetWriter, ListBackups, Health), and Append if the request carries `writer`
// and `sequence`, so that the server applies it exactly once. CreateStore, UpdateStore,
// DeleteStore, DeleteRows and any other Append are sent once, because a lost answer does not tell
// whether they took effect; so are ReadRows and WatchMemory, whose caller knows where to go on. An
// AppendStream with a writer has its own limit instead of attempts_max.
//
// Of failures, only these are: UNAVAILABLE, RESOURCE_EXHAUSTED if the server says when to come back
// (RetryInfo), and CANCELLED without a reason, which is how a server that stops drops calls. A TLS
// handshake that fails over a certificate, or because the server has no TLS, is not. The
// wait before try n + 1 is random in [backoff_min, backoff_min * 2^n], at most backoff_max, on top
// of what the server asks for (RetryInfo or the trailer grpc-retry-pushback-ms, which may also
// forbid it). A wait that would outlast the deadline is not begun: the failure is returned at once.
struct RetryOptions {
  // Including the first. At least 1. So many outlast a server that is started again; the deadline
  // ends them earlier.
  int attempts_max = 20;
  absl::Duration backoff_min = absl::Milliseconds(20);
  absl::Duration backoff_max = absl::Seconds(2);  // At least backoff_min.
};

struct ClientOptions {
  // Changes behaviour.
  absl::Duration deadline = absl::Seconds(10);  // Of a call, all its attempts together. > 0.
  RetryOptions retry;
  Credentials credentials;           // Default: plaintext, no token.
  int message_bytes_max = 64 << 20;  // A message larger than this, in or out: ResourceExhausted.

  // Changes speed. How a dead connection is noticed while a call is open on it. Servers may answer
  // pings that come more often than every five minutes by closing the connection.
  absl::Duration keepalive_interval = absl::Minutes(5);
  absl::Duration keepalive_timeout = absl::Seconds(20);
};

struct CallOptions {
  std::optional<absl::Duration> deadline;  // > 0. Default: ClientOptions::deadline.
};

struct LookupOptions {
  v1::AttentionOptions attention;  // Default: the store's score and temperature, over all rows.
  v1::RowFilter filter;
  v1::Source source = v1::SOURCE_ROWS;
  std::string memory;              // For SOURCE_MEMORY. Default: "average".
  std::uint64_t min_revision = 0;  // Answer from this revision or a later one.
  // The queries are [T x input_dim]; the store's projection makes queries of them.
  bool queries_are_inputs = false;
};

struct ReadRowsOptions {
  // Changes behaviour.
  std::vector<std::string> read_mask;                  // Fields of v1::Row to send. Default: all.
  absl::Duration deadline = absl::InfiniteDuration();  // Of the whole read. > 0.

  // Changes speed.
  std::uint32_t page_rows = 0;  // Most rows in one response. 0: a good default.
};

struct WatchMemoryOptions {
  absl::Duration min_interval = absl::ZeroDuration();  // At most one memory an interval. >= 0.
  absl::Duration deadline = absl::InfiniteDuration();  // Of the whole watch. > 0.
};

// T queries' answers, all from one snapshot. See v1::LookupResponse.
struct LookupAnswer {
  FloatMatrix values;                     // [T x value_dim].
  std::vector<v1::QueryStats> stats;      // T * num_heads, query-major.
  std::vector<v1::QueryWeights> weights;  // Likewise, if LookupOptions::attention asks for them.
  std::uint64_t revision = 0;
  std::uint64_t row_count = 0;
};

// As in grpc.health.v1.
enum class ServingStatus { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// A connection to a softlookup server. Thread-safe: one Client serves a whole process, and calls
// run in parallel over one connection.
//
// Every method blocks until it has its answer, at most for its deadline, and fails with the
// server's status: canonical code, message, and the details that error_details.h reads. An
// unreachable server is Unavailable, without a reason. The messages of v1 say what each call
// refuses.
class Client {
 public:
  // `address` is HOST:PORT or another gRPC target name. Does not wait for the server: the first
  // call does. InvalidArgument for an empty address, an option out of its range or credentials that
  // ValidateCredentials() refuses.
  static absl::StatusOr<Client> Connect(std::string_view address,
                                        const ClientOptions& options = {});

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;
  ~Client();

  // Makes an empty store; returns it with the server's defaults filled in. AlreadyExists.
  absl::StatusOr<v1::Store> CreateStore(const v1::Store& store, const CallOptions& call = {});

  // NotFound.
  absl::StatusOr<v1::Store> GetStore(std::string_view name, const CallOptions& call = {});

  // All stores whose name starts with `prefix`, by name. Walks the pages, each with its own
  // deadline, so a store made or deleted meanwhile may or may not be listed.
  absl::StatusOr<std::vector<v1::Store>> ListStores(std::string_view prefix = {},
                                                    const CallOptions& call = {});

  // Takes the fields named in `update_mask` ("score", "temperature", "labels", "projection") from
  // `store` and leaves the others. NotFound.
  absl::StatusOr<v1::Store> UpdateStore(const v1::Store& store,
                                        const std::vector<std::string>& update_mask,
                                        const CallOptions& call = {});

  // NotFound.
  absl::Status DeleteStore(std::string_view name, const CallOptions& call = {});

  // Appends one batch of rows, whole or not at all: `keys` [N x key_dim], `values` [N x value_dim].
  // Sent once: after Unavailable or DeadlineExceeded the rows may or may not be there.
  absl::StatusOr<v1::AppendResponse> Append(std::string_view store, FloatMatrixView keys,
                                            FloatMatrixView values, const CallOptions& call = {});

  // The same with every field in the caller's hand. Retried if it has `writer` and `sequence`.
  absl::StatusOr<v1::AppendResponse> Append(const v1::AppendRequest& request,
                                            const CallOptions& call = {});

  // For many rows. InvalidArgument for an option out of its range. Without a writer it does not
  // wait for the server: an unknown store shows in the stream's first calls. With one it asks how
  // far the writer got, and fails as GetWriter does, but that an unknown writer is a new one.
  absl::StatusOr<AppendStream> OpenAppendStream(std::string_view store,
                                                const AppendStreamOptions& options = {});

  // How far a writer got with its appends to a store. NotFound, of the reason WRITER_NOT_FOUND if
  // the store is there and has nothing of it.
  absl::StatusOr<v1::Writer> GetWriter(std::string_view store, std::string_view writer,
                                       const CallOptions& call = {});

  // Calls `page` with the rows that `filter` keeps, in position order and of one snapshot; at least
  // one page comes, for its revision. `page` runs on the caller's thread, and no more rows are read
  // than fit the connection's window while it does. If it returns false the read ends with OK.
  // After a failure, read on behind the last row that came.
  absl::Status ReadRows(std::string_view store, const v1::RowFilter& filter,
                        const std::function<bool(const v1::ReadRowsResponse&)>& page,
                        const ReadRowsOptions& options = {});

  // Deletes the rows that `filter`, which may not be empty, keeps. Sent once: after Unavailable or
  // DeadlineExceeded they may or may not be there.
  absl::StatusOr<v1::DeleteRowsResponse> DeleteRows(std::string_view store,
                                                    const v1::RowFilter& filter,
                                                    const CallOptions& call = {});

  // Answers `queries` [T x key_dim], or [T x input_dim]: see LookupOptions.
  absl::StatusOr<LookupAnswer> Lookup(std::string_view store, FloatMatrixView queries,
                                      const LookupOptions& options = {},
                                      const CallOptions& call = {});

  // The same attention over keys and values that the request carries; nothing is stored.
  absl::StatusOr<v1::AttendResponse> Attend(const v1::AttendRequest& request,
                                            const CallOptions& call = {});

  // The running memory, as of any append index. Its matrices are FLOAT64: see DoublesFromProto.
  absl::StatusOr<v1::Memory> GetMemory(const v1::GetMemoryRequest& request,
                                       const CallOptions& call = {});

  // Calls `changed` with the memory `name` (empty: "average") as it is now, then after changes;
  // several appends may show as one. `changed` runs on the caller's thread; when it returns false
  // the watch ends with OK. The server ends it when the store is deleted.
  absl::Status WatchMemory(std::string_view store, std::string_view name,
                           const std::function<bool(const v1::Memory&)>& changed,
                           const WatchMemoryOptions& options = {});

  // Makes a backup on the server, named by the time if `name` is empty. Takes as long as copying
  // what is kept, so give it a deadline to match. Sent once, and not ended by the deadline: what
  // became of it, ListBackups tells. AlreadyExists.
  absl::StatusOr<admin::v1::Backup> CreateBackup(std::string_view name = {},
                                                 const CallOptions& call = {});

  // The server's backups, oldest first.
  absl::StatusOr<std::vector<admin::v1::Backup>> ListBackups(const CallOptions& call = {});

  // Whether the server, or one service of it by its full name, takes calls.
  absl::StatusOr<ServingStatus> Health(std::string_view service = {}, const CallOptions& call = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CLIENT_H_
