#include "tests/fuzz/engine_fuzz.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/cancellation.h"
#include "server/rpc/codec.h"
#include "server/rpc/store_codec.h"
#include "softlookup/engine.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/engine_calls.h"

namespace softlookup::fuzz {
namespace {

// The stores that every input finds. The first stands in where a request names none, as on a
// stream.
const std::string kStore = "s";
const std::string kStoreWithHeads = "heads";
constexpr std::int64_t kRowCount = 3;
constexpr std::uint64_t kRevision = 2;

// Small, so that requests go beyond them.
constexpr Limits kLimits{.queries_per_lookup_max = 64,
                         .rows_per_append_max = 64,
                         .top_weights_max = 64,
                         .message_bytes_max = 1 << 10,
                         .store_count_max = 3};

bool AllFinite(const auto& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

class Fuzzer {
 public:
  Fuzzer() : engine_(Engine::Create({.limits = kLimits})) {
    google::protobuf::SetLogHandler(nullptr);  // It logs every string that is not UTF-8.
  }

  void Run(const std::uint8_t* bytes, std::size_t size) {
    input_ = {};
    TryMatrix(bytes, size);
    TryAs<v1::CreateStoreRequest>(bytes, size);
    TryAs<v1::UpdateStoreRequest>(bytes, size);
    TryAs<v1::RenameStoreRequest>(bytes, size);
    TryAs<v1::CompactStoreRequest>(bytes, size);
    TryAs<v1::AppendRequest>(bytes, size);
    TryAs<v1::LookupRequest>(bytes, size);
    TryAs<v1::GetMemoryRequest>(bytes, size);
    reached_.parsed += input_.parsed > 0;
    reached_.decoded += input_.decoded > 0;
    reached_.answered += input_.answered > 0;
  }

  const Reached& reached() const { return reached_; }

 private:
  template <typename Message>
  void TryAs(const std::uint8_t* bytes, std::size_t size) {
    Message message;
    if (!message.ParseFromArray(bytes, static_cast<int>(size))) return;
    ++input_.parsed;
    ResetStores();
    const absl::Status status = Try(message);
    if (status.ok()) {
      ++input_.answered;
    } else {
      CheckRefusal(status);
    }
  }

  static void TryMatrix(const std::uint8_t* bytes, std::size_t size) {
    v1::Matrix matrix;
    if (!matrix.ParseFromArray(bytes, static_cast<int>(size))) return;
    const auto decoded = server::DecodeMatrix("matrix", matrix);
    if (!decoded.ok()) return CheckRefusal(decoded.status());
    const MatrixView view = decoded->view();
    REQUIRE(view.rows == matrix.rows() && view.cols == matrix.cols());
    // Reads every element, for AddressSanitizer.
    volatile float last = 0;
    for (std::int64_t i = 0; i < view.rows * view.cols; ++i) last = view.data[i];
    (void)last;
  }

  absl::Status Try(const v1::CreateStoreRequest& request) {
    const auto config = server::DecodeStore(request.store());
    if (!config.ok()) return config.status();
    ++input_.decoded;
    const auto info = engine_->CreateStore(*config);
    if (!info.ok()) return info.status();
    REQUIRE(info->revision == 1 && info->row_count == 0);
    REQUIRE(server::DecodeStore(server::EncodeStore(*info)).ok());
    return absl::OkStatus();
  }

  absl::Status Try(const v1::UpdateStoreRequest& request) {
    const auto update = server::DecodeUpdate(request);
    if (!update.ok()) return update.status();
    ++input_.decoded;
    const auto info = engine_->UpdateStore(request.store().name(), *update);
    if (!info.ok()) return info.status();
    REQUIRE(info->row_count == kRowCount && info->revision == kRevision + 1);
    CheckEveryScore(info->config);
    return absl::OkStatus();
  }

  absl::Status Try(const v1::RenameStoreRequest& request) {
    ++input_.decoded;
    const auto renamed = engine_->RenameStore(
        {.name = request.store(), .new_name = request.new_name(), .replace = request.replace()});
    if (!renamed.ok()) {
      REQUIRE(engine_->GetStore(kStore).ok() && engine_->GetStore(kStoreWithHeads).ok());
      return renamed.status();
    }
    REQUIRE(!engine_->GetStore(request.store()).ok());
    REQUIRE(renamed->store.config.name == request.new_name());
    REQUIRE(renamed->store.row_count == kRowCount && renamed->store.revision == kRevision + 1);
    REQUIRE(!renamed->replaced || (request.replace() && renamed->replaced->revision == kRevision));
    v1::RenameStoreResponse response;
    server::EncodeStoreRenamed(*renamed, response);
    REQUIRE(response.has_replaced() == renamed->replaced.has_value());
    CheckEveryScore(renamed->store.config);
    return absl::OkStatus();
  }

  absl::Status Try(const v1::CompactStoreRequest& request) {
    ++input_.decoded;
    const auto compacted = engine_->CompactStore(
        {.store = request.name(), .end_memories = request.end_memories()}, CancelToken());
    if (!compacted.ok()) return compacted.status();
    // The stores have no deleted row.
    REQUIRE(compacted->dropped_rows == 0 && compacted->block_count == 0);
    REQUIRE(compacted->store.row_count == kRowCount && compacted->store.revision == kRevision);
    v1::CompactStoreResponse response;
    server::EncodeCompaction(*compacted, response);
    REQUIRE(response.store().name() == request.name());
    return absl::OkStatus();
  }

  absl::Status Try(const v1::AppendRequest& request) {
    server::DecodedAppend decoded;
    if (absl::Status status = server::DecodeAppend(request, kStore, decoded); !status.ok()) {
      return status;
    }
    ++input_.decoded;
    const auto before = engine_->GetStore(decoded.request.store);
    const absl::StatusOr<AppendResult> result = testing::AppendAndWait(*engine_, decoded.request);
    const auto after = engine_->GetStore(decoded.request.store);
    REQUIRE(before.ok() == after.ok());
    if (!result.ok()) {
      REQUIRE(!after.ok() || after->revision == before->revision);
      REQUIRE(!after.ok() || after->row_count == before->row_count);
      return result.status();
    }
    const AppendResult& appended = *result;
    REQUIRE(appended.first_position == before->row_count);
    REQUIRE(appended.row_count == appended.first_position + appended.appended_count);
    REQUIRE(appended.row_count == after->row_count && appended.revision == after->revision);
    v1::AppendResponse response;
    server::EncodeAppend(request.sequence(), appended, response);
    REQUIRE(response.memories_size() == request.return_memories_size());
    for (const MemoryState& memory : appended.memories) CheckMemory(memory);
    CheckEveryScore(after->config);
    return absl::OkStatus();
  }

  absl::Status Try(const v1::LookupRequest& request) {
    server::DecodedLookup decoded;
    if (absl::Status status = server::DecodeLookup(request, kStore, decoded); !status.ok()) {
      return status;
    }
    ++input_.decoded;
    const absl::StatusOr<LookupResult> result = Lookup(decoded.request);
    if (!result.ok()) {
      // A revision that never comes is waited for until the caller goes.
      const bool waited = absl::IsCancelled(result.status());
      REQUIRE(!waited || decoded.request.min_revision > kRevision);
      return waited ? absl::OkStatus() : result.status();
    }
    CheckAnswer(*result, request.queries().rows(), request.options().max_error());
    v1::LookupResponse response;
    return server::EncodeLookup(request, *result, kLimits.message_bytes_max, response);
  }

  absl::Status Try(const v1::GetMemoryRequest& request) {
    ++input_.decoded;
    const auto memory =
        engine_->GetMemory(request.store(), request.name(),
                           request.has_begin() ? std::optional(request.begin()) : std::nullopt,
                           request.has_end() ? std::optional(request.end()) : std::nullopt);
    if (!memory.ok()) return memory.status();
    CheckMemory(*memory);
    return absl::OkStatus();
  }

  absl::StatusOr<LookupResult> Lookup(const LookupRequest& request) {
    const auto cancel = std::make_shared<CancelToken>();
    absl::StatusOr<LookupResult> result;
    absl::Notification done;  // Notified twice, it aborts.
    engine_->Lookup(request, cancel, [&](auto r) {
      result = std::move(r);
      done.Notify();
    });
    if (request.min_revision > kRevision) cancel->Cancel();
    REQUIRE(done.WaitForNotificationWithTimeout(absl::Minutes(1)));
    return result;
  }

  // Whatever was appended or set, the store's answers are numbers.
  void CheckEveryScore(const StoreConfig& config) {
    const std::vector<float> query(config.key_dim, -1.5f);
    for (const Score score : {Score::kDot, Score::kScaledDot, Score::kCosine, Score::kEuclidean,
                              Score::kSquaredEuclidean}) {
      const auto result = Lookup({.store = config.name,
                                  .queries = {query.data(), 1, config.key_dim},
                                  .options = {.score = score}});
      REQUIRE(result.ok());
      CheckAnswer(*result, 1, /*max_error=*/0);
    }
  }

  static void CheckAnswer(const LookupResult& result, std::int64_t query_count, double max_error) {
    REQUIRE(static_cast<std::int64_t>(result.values.size()) == query_count * result.value_dim);
    REQUIRE(AllFinite(result.values));
    for (const QueryStats& stats : result.stats) {
      REQUIRE(stats.counted_rows <= result.row_count);
      REQUIRE(stats.log_sum_exp < INFINITY && stats.max_logit < INFINITY);  // Nor NaN.
      REQUIRE(stats.entropy >= 0 && std::isfinite(stats.entropy));
      REQUIRE(stats.error_bound >= 0);
      REQUIRE(stats.error_bound <= std::max(max_error, kErrorBoundDefault));
      REQUIRE(stats.summed_rows <= stats.counted_rows);
    }
    for (const QueryWeights& weights : result.weights) {
      REQUIRE(weights.rows.size() <= result.row_count);
      REQUIRE(std::isfinite(weights.remaining_weight));
      for (const WeightedRow& row : weights.rows) {
        REQUIRE(row.position < result.row_count);
        REQUIRE(std::isfinite(row.weight) && std::isfinite(row.score));
      }
    }
  }

  static void CheckMemory(const MemoryState& state) {
    const MemoryValue& memory = state.memory;
    REQUIRE(state.begin <= state.end);
    REQUIRE(memory.weight >= 0 && memory.weight <= static_cast<double>(state.end - state.begin));
    REQUIRE(AllFinite(memory.key) && AllFinite(memory.value));
    v1::Memory message;
    server::EncodeMemory(state, message);
    REQUIRE(server::DecodeMatrix("key", message.key()).ok());
  }

  void ResetStores() {
    const ListResult list = *engine_->ListStores("", "", kLimits.store_count_max);
    for (const StoreInfo& info : list.stores) {
      REQUIRE(engine_->DeleteStore(info.config.name).ok());
    }
    MakeStore({.name = kStore, .key_dim = 2, .value_dim = 1});
    MakeStore({.name = kStoreWithHeads,
               .key_dim = 2,
               .value_dim = 4,
               .num_heads = 2,
               .memories = {{.name = "sum", .kind = MemoryKind::kDecayedSum, .decay = 0.5},
                            {.name = "mean", .kind = MemoryKind::kDecayedAverage, .decay = 0.5},
                            {.name = "gate", .kind = MemoryKind::kGated, .gate = {1, -3e38f, 2}},
                            {.name = "gated-mean",
                             .kind = MemoryKind::kGatedAverage,
                             .gate = {-1, 1e-40f, 3e38f}}}});
  }

  void MakeStore(const StoreConfig& config) {
    const std::vector<float> numbers = {1, -2, 0, 3e38f, 0.5f, -7, 1e-40f, 8, 9, 10, 11, 12};
    REQUIRE(engine_->CreateStore(config).ok());
    REQUIRE(
        testing::AppendAndWait(*engine_, {.store = config.name,
                                          .keys = {numbers.data(), kRowCount, config.key_dim},
                                          .values = {numbers.data(), kRowCount, config.value_dim}})
            .ok());
  }

  const std::unique_ptr<Engine> engine_;
  Reached reached_;
  Reached input_;  // Of the input in progress, by message.
};

Fuzzer& TheFuzzer() {
  static Fuzzer fuzzer;
  return fuzzer;
}

}  // namespace

const Reached& ReachedSoFar() { return TheFuzzer().reached(); }

void FuzzEngine(const std::uint8_t* bytes, std::size_t size) { TheFuzzer().Run(bytes, size); }

}  // namespace softlookup::fuzz
