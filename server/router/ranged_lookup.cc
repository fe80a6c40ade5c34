#include "server/router/ranged_lookup.h"

#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "core/base/error.h"
#include "core/base/steady_time.h"
#include "server/router/replica_call.h"
#include "server/router/wire_fields.h"
#include "server/rpc/alarm.h"
#include "server/rpc/codec.h"
#include "server/rpc/message_buffer.h"
#include "server/rpc/ranges_codec.h"
#include "server/rpc/status.h"
#include "softlookup/v1/lookup.pb.h"

namespace softlookup::server {
namespace {

// Field numbers of LookupRequest and BeginLookupRequest.
constexpr int kQueriesField = 2;
constexpr int kInputsField = 3;
constexpr int kRowsField = 1;  // Of Matrix.
constexpr int kMinRevisionField = 8;
constexpr int kLinearizableField = 10;
// Field number of AnswerPartRequest and SumRowsRequest.
constexpr int kLookupField = 1;

constexpr int kFilterField = 5;
constexpr int kFilterBeginField = 1;
constexpr int kFilterEndField = 2;
constexpr int kFilterLastField = 3;

// How many parts a lookup asks a node for at a time, once the node has answered one: a few, so that
// it always has one to begin with. If the lookup takes many bytes, one: its parts take long, and
// their answers take much room.
constexpr std::size_t kPartsAtATime = 4;
constexpr std::size_t kManyBytes = std::size_t{256} << 10;

// The round that asks for parts as of a revision that the router knows. Only later rounds begin
// with a BeginLookup.
constexpr int kKnownRound = 0;
// The last round after which the next one begins without a pause.
constexpr int kRoundsAtOnce = 1;
// In later rounds than this, all parts are asked for at once, so that each node keeps the revision
// from the start.
constexpr int kRoundsInTurns = 2;

}  // namespace

std::shared_ptr<RangedLookup> RangedLookup::Make(const RouterParts& parts, RoutedRequest request,
                                                 std::string store, Done done) {
  return std::shared_ptr<RangedLookup>(
      new RangedLookup(parts, std::move(request), std::move(store), std::move(done)));
}

RangedLookup::RangedLookup(const RouterParts& parts, RoutedRequest request, std::string store,
                           Done done)
    : parts_(parts),
      reader_(parts.part_bytes),
      request_(std::move(request)),
      store_(std::move(store)),
      give_up_(SteadyNow() + std::min(RoutedCall::kTryMax, request_.deadline - absl::Now())),
      done_(std::move(done)) {}

template <typename Step>
void RangedLookup::Run(Step step) {
  Done done;
  Ending ending;
  std::string group;
  std::vector<std::shared_ptr<RoutedCall>> to_start, to_cancel;
  // What ranges have answered. Freeing it takes time, so the mutex is not held.
  std::vector<Range> ranges;
  std::optional<MergedLookup> merged;
  std::vector<RowSums> sums;
  {
    absl::MutexLock lock(&mutex_);
    if (done_ == nullptr) return;
    step();
    if (ending_.has_value()) {
      DropCalls();
      to_start_.clear();
      done = std::exchange(done_, nullptr);
      ending = *std::exchange(ending_, std::nullopt);
      ranges.swap(ranges_);
      merged = std::exchange(merged_, std::nullopt);
      sums.swap(sums_);
    }
    group = group_;
    to_start.swap(to_start_);
    to_cancel.swap(to_cancel_);
  }
  // These can call this lookup, so the mutex is not held.
  for (const auto& call : to_cancel) call->Cancel();
  for (const auto& call : to_start) call->StartIn(group);
  if (done != nullptr) done(std::move(ending.status), ending.response);
}

template <typename Step>
void RangedLookup::RunIn(int round, Step step) {
  Run([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (round == round_) step();
  });
}

void RangedLookup::Start() {
  parts_.tenants.FindGroup(store_,
                           [self = shared_from_this()](const absl::StatusOr<std::string>& group) {
                             self->Run([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
                               if (!group.ok()) return self->Finish(group.status());
                               self->group_ = *group;
                               self->Begin();
                             });
                           });
}

void RangedLookup::Cancel() {
  is_cancelled_ = true;
  Run([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Finish(MakeError(reasons::kCancelled, "The caller is gone"));
  });
}

void RangedLookup::Finish(absl::Status status, const grpc::ByteBuffer& response) {
  if (!ending_.has_value()) ending_ = {std::move(status), response};
}

std::shared_ptr<const RangesAt> RangedLookup::KnownRanges() const {
  grpc::ByteBuffer bytes = request_.bytes;
  if (NumberField(bytes, {kLinearizableField}) != 0) return nullptr;
  if (parts_.limited_identities.Has(request_.caller.identity, SteadyNow())) return nullptr;
  std::shared_ptr<const RangesAt> known = parts_.ranged_stores.Steady(store_);
  if (known == nullptr || known->revision < NumberField(bytes, {kMinRevisionField})) return nullptr;
  const std::optional<std::uint64_t> seen = parts_.revisions.Needed(store_);
  return seen.has_value() && *seen <= known->revision ? known : nullptr;
}

void RangedLookup::Begin() {
  ranges_.clear();
  merged_.reset();
  sums_.clear();
  turns_.Clear();
  if (round_ == kKnownRound) {
    known_ = KnownRanges();
    if (known_ != nullptr) return AskForParts(*known_);
    ++round_;
  }
  grpc::ByteBuffer bytes = request_.bytes;
  cluster::v1::BeginLookupRequest begin;
  begin.set_store(store_);
  begin.set_min_revision(NumberField(bytes, {kMinRevisionField}));
  begin.set_linearizable(NumberField(bytes, {kLinearizableField}) != 0);
  if (!std::exchange(is_charged_, true)) {
    const std::uint64_t queries = std::max(NumberField(bytes, {kQueriesField, kRowsField}),
                                           NumberField(bytes, {kInputsField, kRowsField}));
    begin.set_query_count(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(queries, std::numeric_limits<std::uint32_t>::max())));
  }
  Ask(Method::kBeginLookup, BytesOf(begin), std::nullopt, &RangedLookup::OnBegun);
}

void RangedLookup::OnBegun(int round, std::size_t, grpc::ByteBuffer& response) {
  const absl::StatusOr<std::shared_ptr<const RangesAt>> told = ReadRanges(response);
  RunIn(round, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!told.ok()) return Finish(told.status());
    if ((*told)->ranges.empty()) {
      // The ranges were taken away since the router has heard of them.
      parts_.ranged_stores.Forget(store_);
    } else {
      parts_.ranged_stores.OnBegun(store_, *told);
    }
    AskForParts(**told);
  });
}

PositionRange RangedLookup::FilteredPositions(std::uint64_t row_count) const {
  grpc::ByteBuffer bytes = request_.bytes;
  PositionRange filtered{.begin = NumberField(bytes, {kFilterField, kFilterBeginField}),
                         .end = NumberField(bytes, {kFilterField, kFilterEndField})};
  if (filtered.end == 0) filtered.end = row_count;
  const std::uint64_t last = NumberField(bytes, {kFilterField, kFilterLastField});
  if (last > 0 && last < filtered.end) {
    filtered.begin = std::max(filtered.begin, filtered.end - last);
  }
  return filtered;
}

void RangedLookup::SetRanges(const RangesAt& told) {
  revision_ = told.revision;
  incarnation_ = told.incarnation;
  for (const RangesAt::Range& range : told.ranges) {
    if (!ranges_.empty()) ranges_.back().positions.end = range.begin;
    ranges_.push_back({.positions = {.begin = range.begin}, .nodes = range.nodes});
  }
  if (ranges_.empty()) ranges_.emplace_back();  // Any node answers for all rows.
}

void RangedLookup::AskForParts(const RangesAt& told) {
  SetRanges(told);
  const PositionRange filtered = FilteredPositions(told.row_count);
  std::vector<std::uint64_t> sizes;
  for (const Range& range : ranges_) {
    const std::uint64_t begin = std::max(range.positions.begin, filtered.begin);
    const std::uint64_t end = std::min(range.positions.end, filtered.end);
    sizes.push_back(end > begin ? end - begin : 0);
  }
  // A node decides by its first part whether it takes the lookup, so that is its largest one.
  std::vector<std::size_t> order(ranges_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return sizes[i]; });
  static std::atomic<std::size_t> turns{0};
  const std::size_t turn = turns.fetch_add(1, std::memory_order_relaxed);
  absl::flat_hash_map<std::string, std::uint64_t> rows_of;  // Of a node's parts.
  std::vector<std::size_t> firsts, others;  // The first parts of nodes, and the other ones.
  for (const std::size_t i : order) {
    std::vector<std::string>& nodes = ranges_[i].nodes;
    if (nodes.size() > 1) {
      std::rotate(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(turn % nodes.size()),
                  nodes.end());
      std::iter_swap(nodes.begin(), std::ranges::min_element(nodes, {}, [&](const auto& node) {
                       return rows_of.contains(node) ? rows_of.at(node) : 0;
                     }));
    }
    const auto [rows, is_first] = rows_of.try_emplace(FirstNodeOf(i), 0);
    rows->second += sizes[i];
    (is_first ? firsts : others).push_back(i);
  }
  // The node that begins the lookup charges it, so they take turns.
  begins_with_ = firsts[turn % firsts.size()];
  for (const std::size_t i : firsts) AskForPart(i, /*is_further=*/false);
  for (const std::size_t i : others) AskForPart(i, /*is_further=*/true);
}

void RangedLookup::AskForPart(std::size_t range, bool is_further) {
  LookupPart part = PartOf(range);
  part.is_further = is_further;
  cluster::v1::AnswerPartRequest request;
  *request.mutable_part() = EncodeLookupPart(part);
  const bool begins = round_ == kKnownRound && range == begins_with_;
  AskRange(begins ? Method::kAnswerFirstPart : Method::kAnswerPart, request, range,
           &RangedLookup::OnPart);
}

LookupPart RangedLookup::PartOf(std::size_t range) const {
  return {.range = ranges_[range].positions, .revision = revision_, .incarnation = incarnation_};
}

void RangedLookup::OnPart(int round, std::size_t range, grpc::ByteBuffer& response) {
  absl::StatusOr<PartReader::Decoded<PartialLookup>> part = reader_.ReadPart(response);
  RunIn(round, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!part.ok()) return Finish(part.status());
    Range& of = ranges_[range];
    const PartialLookup& answer = part->answer;
    if (answer.range != of.positions || answer.revision != revision_ ||
        answer.incarnation != incarnation_) {
      return Finish(MalformedAnswer("another part than it was asked for"));
    }
    if (round_ == kKnownRound && range == begins_with_) is_charged_ = true;
    of.part = std::move(part->answer);
    of.bytes = std::move(part->bytes);
    const bool has_all =
        std::ranges::all_of(ranges_, [](const Range& one) { return one.part.has_value(); });
    if (has_all) MergeParts();
  });
}

bool RangedLookup::continues() const { return !is_cancelled_ && absl::Now() < request_.deadline; }

void RangedLookup::MergeParts() {
  std::vector<PartialLookup> parts;
  for (Range& range : ranges_) parts.push_back(*std::exchange(range.part, std::nullopt));
  absl::StatusOr<MergedLookup> merged = MergedLookup::Merge(
      std::move(parts), parts_.message_bytes_max, [this] { return continues(); });
  if (!merged.ok()) return Finish(merged.status());
  merged_ = *std::move(merged);
  sums_.resize(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const RowSumsRequest& wanted = merged_->requests()[i];
    ranges_[i].has_sums = wanted.empty();
    if (wanted.empty()) continue;
    cluster::v1::SumRowsRequest request;
    *request.mutable_part() = EncodeLookupPart(PartOf(i));
    *request.mutable_rows() = EncodeRowSumsRequest(wanted);
    AskRange(Method::kSumRows, request, i, &RangedLookup::OnSums);
  }
  FinishIfComplete();
}

void RangedLookup::OnSums(int round, std::size_t range, grpc::ByteBuffer& response) {
  absl::StatusOr<PartReader::Decoded<RowSums>> sums = reader_.ReadSums(response);
  RunIn(round, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!sums.ok()) return Finish(sums.status());
    sums_[range] = std::move(sums->answer);
    std::ranges::move(sums->bytes, std::back_inserter(ranges_[range].bytes));
    ranges_[range].has_sums = true;
    FinishIfComplete();
  });
}

void RangedLookup::FinishIfComplete() {
  if (!std::ranges::all_of(ranges_, &Range::has_sums)) return;
  const absl::StatusOr<LookupResult> result =
      merged_->Finish(sums_, [this] { return continues(); });
  if (!result.ok()) return Finish(result.status());
  v1::LookupRequest request;
  v1::LookupResponse response;
  if (!ParseBytes(request_.bytes, request)) return Finish(MalformedMessage());
  absl::Status status = EncodeLookup(request, *result, parts_.message_bytes_max, response);
  if (!status.ok()) return Finish(std::move(status));
  parts_.revisions.Note(store_, result->revision);
  Finish(absl::OkStatus(), BytesOf(response));
}

void RangedLookup::OnKnownError(const absl::Status& status) {
  if (ReasonOf(status) == reasons::kIdentityLimit.name) {
    // Its next lookups are refused at the price of a BeginLookup, not of parts.
    parts_.limited_identities.Note(request_.caller.identity, SteadyNow());
    return Finish(status);
  }
  const bool is_tenant = ReasonOf(status) == reasons::kTenantRate.name;
  const bool has_time = absl::Now() < request_.deadline;
  // A node may also be gone, be behind, or be of a version without AnswerFirstPart.
  const bool begins_again = absl::IsAborted(status) || absl::IsCancelled(status) ||
                            absl::IsUnavailable(status) || absl::IsUnimplemented(status) ||
                            absl::IsNotFound(status) ||
                            (absl::IsDeadlineExceeded(status) && has_time);
  if (is_tenant || begins_again) parts_.ranged_stores.OnChanged(store_, *known_);
  if (begins_again) return BeginAgain();
  Finish(status);
}

void RangedLookup::OnError(std::optional<std::size_t> range, const absl::Status& status) {
  if (round_ == kKnownRound) return OnKnownError(status);
  if (ReasonOf(status) == kSnapshotGone.name) return BeginAgain();
  // The call's own time is not over: the node has waited in vain for the revision.
  const bool is_behind = absl::IsDeadlineExceeded(status) && absl::Now() < request_.deadline;
  if (!range.has_value() || (!absl::IsUnavailable(status) && !is_behind)) return Finish(status);
  const PositionRange& positions = ranges_[*range].positions;
  const std::vector<std::string>& nodes = ranges_[*range].nodes;
  const std::string end =
      positions.end == PositionRange::kOpenEnd ? "on" : absl::StrCat("to ", positions.end);
  Finish(ClusterUnavailable(absl::StrCat(
      "No node answers for the rows of store \"", store_, "\" from position ", positions.begin, " ",
      end, nodes.empty() ? "" : absl::StrCat(", which ", absl::StrJoin(nodes, ", "), " should"),
      ": ", status.message())));
}

void RangedLookup::BeginAgain() {
  DropCalls();
  if (round_++ <= kRoundsAtOnce) return Begin();
  if (SteadyNow() + RoutedCall::kLookAgain >= give_up_) {
    return Finish(ClusterUnavailable(
        absl::StrCat("The nodes that have the ranges of store \"", store_,
                     "\" have no revision in common for as long as the lookup takes")));
  }
  SetAlarm(alarm_.emplace(), absl::Now() + RoutedCall::kLookAgain,
           [self = shared_from_this()](bool is_time) {
             if (!is_time) return;
             self->Run([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { self->Begin(); });
           });
}

std::string RangedLookup::FirstNodeOf(std::size_t range) const {
  const std::vector<std::string>& nodes = ranges_[range].nodes;
  return nodes.empty() ? "" : nodes.front();
}

void RangedLookup::AskRange(Method method, const google::protobuf::MessageLite& request,
                            std::size_t range, OnAnswer on_answer) {
  const grpc::ByteBuffer bytes = WithMessage(BytesOf(request), kLookupField, request_.bytes);
  if (static_cast<std::int64_t>(bytes.Length()) > parts_.message_bytes_max) {
    return Finish(MakeError(
        reasons::kMessageTooLarge,
        absl::StrCat("The store's rows are at several nodes, and what this lookup asks one of them "
                     "would take ",
                     bytes.Length(), " bytes, of at most ", parts_.message_bytes_max,
                     "; ask for fewer queries at a time, or for fewer rows"),
        {{"limit", absl::StrCat(parts_.message_bytes_max)}}));
  }
  Ask(method, bytes, range, on_answer);
}

void RangedLookup::Ask(Method method, const grpc::ByteBuffer& bytes,
                       std::optional<std::size_t> range, OnAnswer on_answer) {
  RoutedRequest request = request_;
  request.method = std::string(SpecOf(method).path);
  request.bytes = bytes;
  auto done = [self = shared_from_this(), round = round_, range, on_answer](
                  const absl::Status& status, grpc::ByteBuffer response) {
    if (!status.ok()) {
      // This ends the lookup, or the round.
      return self->RunIn(round,
                         [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { self->OnError(range, status); });
    }
    if (range.has_value()) {
      self->RunIn(round, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { self->EndTurn(*range); });
    }
    (*self.*on_answer)(round, range.value_or(0), response);
  };
  // Only a BeginLookup is about the store: the others ask for one revision, whatever the router has
  // seen.
  std::shared_ptr<RoutedCall> call = ReplicaCall::Make(
      parts_, std::move(request), range.has_value() ? "" : store_, std::move(done),
      {.preferred = range.has_value() ? ranges_[*range].nodes : std::vector<std::string>(),
       .only_once = round_ == kKnownRound});
  calls_.push_back(call);
  if (!range.has_value() || round_ > kRoundsInTurns) return to_start_.push_back(std::move(call));
  auto first = turns_.Add(FirstNodeOf(*range), std::move(call));
  if (first.has_value()) to_start_.push_back(*std::move(first));
}

void RangedLookup::EndTurn(std::size_t range) {
  if (round_ > kRoundsInTurns) return;
  const std::size_t most = request_.bytes.Length() > kManyBytes ? 1 : kPartsAtATime;
  for (auto& call : turns_.EndTurn(FirstNodeOf(range), most)) to_start_.push_back(std::move(call));
}

void RangedLookup::DropCalls() {
  to_cancel_.insert(to_cancel_.end(), calls_.begin(), calls_.end());
  calls_.clear();
}

}  // namespace softlookup::server
