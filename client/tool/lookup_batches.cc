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

constexpr std::uint32_t kCallQueriesMax = 4096;       // The server's limit.
constexpr std::uint64_t kCallBytesMax = 16ull << 20;  // Well under a message's limit.
constexpr std::size_t kCallsMax = 2;
constexpr std::uint32_t kGrowthMax = 8;  // Times as many queries as in the call before.
constexpr absl::Duration kCallTime = absl::Seconds(1);

struct Answered {
  absl::StatusOr<LookupAnswer> answer;
  absl::Duration elapsed;
};

struct Call {
  std::uint32_t begin;  // Its queries are [begin, begin + rows).
  std::uint32_t rows;
  std::future<Answered> answered;
};

class Batches {
 public:
  Batches(const std::string& store, FloatMatrixView queries, const LookupOptions& options,
          Client* client)
      : store_(store), queries_(queries), options_(options), client_(client) {
    const std::uint64_t row_bytes = std::max<std::uint64_t>(queries.cols * sizeof(float), 1);
    rows_max_ = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(kCallBytesMax / row_bytes, 1, kCallQueriesMax));
    rows_ = std::min(kFirstCallQueries, rows_max_);
  }

  absl::Status Run(absl::FunctionRef<void(const LookupAnswer&)> take) {
    Begin();
    while (!calls_.empty()) {
      Answered answered = calls_.front().answered.get();
      const Call call = std::move(calls_.front());
      calls_.pop_front();
      if (!answered.answer.ok()) return NameQueries(answered.answer.status(), call);
      Resize(call.rows, answered.elapsed);
      options_.min_revision = std::max(options_.min_revision, answered.answer->revision);
      while (begin_ < queries_.rows && calls_.size() < kCallsMax) Begin();
      take(*answered.answer);
    }
    return absl::OkStatus();
  }

 private:
  // Begins the next call. There is one also of no queries, for the server to refuse.
  void Begin() {
    const std::uint32_t rows = std::min(rows_, queries_.rows - begin_);
    const FloatMatrixView batch(queries_.data.subspan(std::size_t{begin_} * queries_.cols,
                                                      std::size_t{rows} * queries_.cols),
                                rows, queries_.cols);
    auto answer = [this, batch, options = options_]() -> Answered {
      const absl::Time begin = absl::Now();
      absl::StatusOr<LookupAnswer> answer = client_->Lookup(store_, batch, options);
      return {std::move(answer), absl::Now() - begin};
    };
    calls_.push_back({begin_, rows, std::async(std::launch::async, std::move(answer))});
    begin_ += rows;
  }

  // Chooses the size of the calls to come by the time of one.
  void Resize(std::uint32_t rows, absl::Duration elapsed) {
    const double fitting = rows * (kCallTime / std::max(elapsed, absl::Microseconds(1)));
    const double grown = std::min<double>(fitting, double{kGrowthMax} * rows);
    rows_ = static_cast<std::uint32_t>(std::clamp<double>(grown, 1, rows_max_));
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

  const std::string& store_;
  const FloatMatrixView queries_;
  LookupOptions options_;
  Client* const client_;
  std::uint32_t rows_max_;
  std::uint32_t rows_;       // Queries of the next call.
  std::uint32_t begin_ = 0;  // First query of the next call.
  std::deque<Call> calls_;   // Under way, oldest first. Their destructors wait for them.
};

}  // namespace

absl::Status LookupInBatches(const std::string& store, FloatMatrixView queries,
                             const LookupOptions& options, Client* client,
                             absl::FunctionRef<void(const LookupAnswer&)> take) {
  return Batches(store, queries, options, client).Run(take);
}

}  // namespace softlookup::tool
