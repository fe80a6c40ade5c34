#include "client/tool/lookup_batches.h"

#include <algorithm>
#include <deque>
#include <future>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/tool/exit_code.h"
#include "softlookup/error_details.h"

namespace softlookup::tool {
namespace {

constexpr double kCallQueriesMax = 4096;  // The server's default of --max-queries.
// Most bytes of a call's request, and of its answer. Both are well under the server's default of
// --max-message-bytes, 64 MiB.
constexpr double kCallBytesMax = 16 << 20;
constexpr double kAnswerBytesMax = 16 << 20;
// Upper estimate of the bytes of a row in a list of weights.
constexpr double kListedRowBytes = 32;
// Fewest rows that a list of weights is assumed to have. More than the wire contract's default of
// top_weights, 10.
constexpr double kListedRowsOfDefault = 16;
constexpr std::size_t kCallsMax = 2;  // Calls in progress at a time.
// Most queries of a call, as a multiple of those of the call before it.
constexpr std::uint32_t kGrowthMax = 8;
constexpr absl::Duration kCallTime = absl::Seconds(1);  // Time that a call should take.

// Returns the most queries that a call can have if its request has at most kCallBytesMax bytes, and
// its answer at most kAnswerBytesMax. Never more than kCallQueriesMax, or fewer than 1.
std::uint32_t CallQueriesMax(const v1::Store& store, std::uint32_t query_dim,
                             const v1::AttentionOptions& options) {
  double listed = 0;
  if (options.weights() == v1::WEIGHTS_MODE_ALL) {
    listed = static_cast<double>(store.row_count()) + 1;
  } else if (options.weights() == v1::WEIGHTS_MODE_TOP) {
    listed = std::max<double>(options.top_weights(), kListedRowsOfDefault);
  }
  const double heads = std::max(store.num_heads(), 1u);
  const double answer_bytes = 4.0 * store.value_dim() + heads * (listed + 4) * kListedRowBytes;
  const double most = std::min(
      {kCallQueriesMax, kCallBytesMax / (4.0 * query_dim + 1), kAnswerBytesMax / answer_bytes});
  return static_cast<std::uint32_t>(std::max(most, 1.0));
}

// Whether `error` refuses a call as too large, so that a call of fewer queries may succeed. Calls
// keep to the limits above, but a server can have lower ones.
bool IsTooLarge(const absl::Status& error) {
  const std::string reason = ErrorReason(error);
  return reason == "LIMIT_EXCEEDED" || reason == "ANSWER_TOO_LARGE";
}

struct Answered {
  absl::StatusOr<LookupAnswer> answer;
  absl::Duration elapsed;
};

struct Call {
  std::uint32_t begin;  // Its queries are [begin, begin + rows).
  std::uint32_t rows;
  std::uint64_t revision_min;  // Of its answer: the latest that was known when it began.
  std::future<Answered> answered;
};

class Batches {
 public:
  Batches(const v1::Store& store, FloatMatrixView queries, const LookupOptions& options,
          Client* client)
      : store_(store),
        queries_(queries),
        options_(options),
        client_(client),
        rows_max_(CallQueriesMax(store, queries.cols, options.attention)),
        rows_(std::min(kFirstCallQueries, rows_max_)) {}

  absl::Status Run(absl::FunctionRef<void(const LookupAnswer&)> take) {
    const absl::Status status = AskAll(take);
    // A single call is answered by one store.
    return begun_count_ > 1 && IsReplaced() ? Replaced() : status;
  }

 private:
  absl::Status AskAll(absl::FunctionRef<void(const LookupAnswer&)> take) {
    Begin();
    while (!calls_.empty()) {
      Answered answered = calls_.front().answered.get();
      const Call call = std::move(calls_.front());
      calls_.pop_front();
      if (!answered.answer.ok()) {
        if (!IsTooLarge(answered.answer.status()) || call.rows == 1) {
          return NameQueries(answered.answer.status(), call);
        }
        calls_.clear();  // Drop the later calls; their queries are sent again.
        begin_ = call.begin;
        rows_ = rows_max_ = call.rows / 2;
        Begin();
        continue;
      }
      const std::uint64_t revision = answered.answer->revision;
      if (revision < call.revision_min) return NameQueries(Older(revision, call), call);
      rows_ = std::min(NextCallQueries(call.rows, answered.elapsed), rows_max_);
      revision_ = std::max(revision_, revision);
      while (begin_ < queries_.rows && calls_.size() < kCallsMax) Begin();
      take(*answered.answer);
    }
    return absl::OkStatus();
  }

  // Whether another store has the name now. Its revision may be lower, and its values may have
  // other dimensions. If the server does not tell, no.
  bool IsReplaced() {
    const absl::StatusOr<v1::Store> now = client_->GetStore(store_.name());
    return now.ok() && (now->create_time().seconds() != store_.create_time().seconds() ||
                        now->create_time().nanos() != store_.create_time().nanos());
  }

  absl::Status Replaced() const {
    return absl::AbortedError(
        absl::StrCat("another store has taken the name \"", store_.name(),
                     "\" since the first query, so the answers may be of both; ask again"));
  }

  absl::Status Older(std::uint64_t revision, const Call& call) const {
    return absl::AbortedError(absl::StrCat(
        "\"", store_.name(), "\" is at revision ", revision, ", after answers at revision ",
        call.revision_min, ": another store has taken the name, or the store lost writes"));
  }

  // Begins the next call. Without any queries, this is one empty call: the server then checks the
  // options, and its answer has a revision to print.
  void Begin() {
    const std::uint32_t rows = std::min(rows_, queries_.rows - begin_);
    const FloatMatrixView batch(queries_.data.subspan(std::size_t{begin_} * queries_.cols,
                                                      std::size_t{rows} * queries_.cols),
                                rows, queries_.cols);
    LookupOptions options = options_;
    // A store that has answered has reached the revision. Only another store of its name may not
    // have, and a call would wait for that one's in vain.
    if (revision_ > 0) options.min_revision = 0;
    // The server counts the queries of each call from 0, so the offset must include the queries of
    // the earlier calls.
    options.attention.set_causal_offset(options_.attention.causal_offset() + begin_);
    auto answer = [this, batch, options]() -> Answered {
      const absl::Time begin = absl::Now();
      absl::StatusOr<LookupAnswer> answer = client_->Lookup(store_.name(), batch, options);
      return {std::move(answer), absl::Now() - begin};
    };
    ++begun_count_;
    calls_.push_back({begin_, rows, revision_, std::async(std::launch::async, std::move(answer))});
    begin_ += rows;
  }

  absl::Status NameQueries(const absl::Status& error, const Call& call) const {
    if (call.begin == 0) return error;
    const std::string answered = absl::StrCat("queries answered before: ", call.begin);
    const std::map<std::string, std::string> metadata = ErrorMetadata(error);
    const auto row = metadata.find("row");
    std::uint64_t offset;
    if (row == metadata.end() || !absl::SimpleAtoi(row->second, &offset)) {
      return Annotate(error, answered);
    }
    return Annotate(error,
                    absl::StrCat("that is query ", call.begin + offset, " (from 0); ", answered));
  }

  const v1::Store& store_;
  const FloatMatrixView queries_;
  LookupOptions options_;
  Client* const client_;
  std::uint32_t rows_max_;
  std::uint32_t rows_;          // Queries of the next call.
  std::uint32_t begin_ = 0;     // First query of the next call.
  std::uint64_t revision_ = 0;  // Latest one that an answer was of.
  std::uint64_t begun_count_ = 0;
  std::deque<Call> calls_;  // In progress, oldest first. A Call's destructor waits for its answer.
};

}  // namespace

std::uint32_t NextCallQueries(std::uint32_t queries, absl::Duration elapsed) {
  const double fitting =
      queries * absl::FDivDuration(kCallTime, std::max(elapsed, absl::Microseconds(1)));
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, double{kGrowthMax} * queries));
}

absl::Status LookupInBatches(const v1::Store& store, FloatMatrixView queries,
                             const LookupOptions& options, Client* client,
                             absl::FunctionRef<void(const LookupAnswer&)> take) {
  return Batches(store, queries, options, client).Run(take);
}

}  // namespace softlookup::tool
