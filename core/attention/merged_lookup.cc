#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/answer_writer.h"
#include "core/attention/top_rows.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"
#include "softlookup/partial_lookup.h"

namespace softlookup {
namespace {

absl::Status Cancelled() { return MakeError(reasons::kCancelled, "The lookup is cancelled"); }

absl::Status Misfit(const PartialLookup& part, absl::string_view what) {
  return absl::InternalError(absl::StrCat("The partial answer of the rows from ", part.range.begin,
                                          " does not fit the others: ", what));
}

// Returns the lowest position that the lookup attends to, that of its running memory included.
std::uint64_t FirstAttended(const PartialLookup& part) {
  const std::uint64_t begin = part.attended.begin;
  return part.shape.memory ? std::min(part.shape.memory->position, begin) : begin;
}

// Returns the most rows that an answer of the part can count.
std::uint64_t RowsMax(const PartialLookup& part) {
  const std::uint64_t begin = std::max(part.range.begin, part.attended.begin);
  const std::uint64_t end = std::min(part.range.end, part.attended.end);
  return (begin < end ? end - begin : 0) + (part.shape.memory ? 1 : 0);
}

bool IsOrdered(RankBy rank_by, const std::vector<CountedRow>& rows) {
  return std::ranges::adjacent_find(rows, [rank_by](const CountedRow& a, const CountedRow& b) {
           return !ComesBefore(rank_by, a, b);
         }) == rows.end();
}

// Returns true if the lookup attends to a row or memory at `position`, and this range has it.
bool IsAttended(const PartialLookup& part, std::uint64_t position) {
  const std::optional<MemoryRow>& memory = part.shape.memory;
  return part.range.Has(position) &&
         (part.attended.Has(position) || (memory && memory->position == position));
}

// Checks the lists of rows, which must have what RankedRows says.
absl::Status CheckRows(const PartialLookup& part, const RankedRows& rows) {
  const AnswerShape& shape = part.shape;
  const bool lists_top = shape.weights == WeightsMode::kTop && !shape.selects_rows();
  const auto top_weights = static_cast<std::uint64_t>(shape.top_weights);
  const std::uint64_t best_max = shape.selects_rows() ? shape.selected_max
                                 : lists_top          ? top_weights
                                 : shape.lists_rows() ? RowsMax(part)
                                                      : 0;
  const std::uint64_t first_max = lists_top && shape.mode != Mode::kLinear ? top_weights : 0;
  if (rows.best.size() > std::min(best_max, RowsMax(part)) ||
      rows.first.size() > std::min(first_max, RowsMax(part))) {
    return Misfit(part,
                  absl::StrCat("lists of ", rows.best.size(), " and ", rows.first.size(), " rows"));
  }
  const auto is_outside = [&](const CountedRow& row) { return !IsAttended(part, row.position); };
  if (std::ranges::any_of(rows.best, is_outside) || std::ranges::any_of(rows.first, is_outside)) {
    return Misfit(part, "a row of another range");
  }
  if (rows.unranked_memory &&
      (is_outside(*rows.unranked_memory) || !shape.memory ||
       rows.unranked_memory->position != shape.memory->position || !shape.lists_rows() ||
       shape.mode != Mode::kLinear || shape.selects_rows())) {
    return Misfit(part, "a memory of another range or lookup");
  }
  if (!IsOrdered(OrderOfBestRows(shape), rows.best) || !IsOrdered(RankBy::kPosition, rows.first)) {
    return Misfit(part, "rows out of order");
  }
  return absl::OkStatus();
}

absl::Status CheckAnswer(const PartialLookup& part, const PartialAnswer& answer) {
  const bool has_sum = answer.state.counted_rows > 0;
  const auto components = static_cast<std::size_t>(part.shape.head_value_dim());
  if (part.shape.selects_rows() && has_sum) return Misfit(part, "a sum before rows are selected");
  if (answer.sum.size() != (has_sum ? components : 0)) {
    return Misfit(part, absl::StrCat("a sum of ", answer.sum.size(), " components"));
  }
  if (answer.state.counted_rows > RowsMax(part)) {
    return Misfit(part, absl::StrCat(answer.state.counted_rows, " rows"));
  }
  if (part.shape.mode == Mode::kHard && has_sum && !IsAttended(part, answer.state.max_position)) {
    return Misfit(part, "a best row of another range");
  }
  return CheckRows(part, answer.rows);
}

// Returns true if `ids` are of rows in `range`, in the order of positions.
bool AreIdsOf(const PositionRange& range, const std::vector<PositionedId>& ids) {
  const auto follows = [](const PositionedId& a, const PositionedId& b) {
    return a.position >= b.position;
  };
  return ids.empty() || (range.Has(ids.front().position) && range.Has(ids.back().position) &&
                         std::ranges::adjacent_find(ids, follows) == ids.end());
}

absl::Status CheckShape(const PartialLookup& part) {
  const AnswerShape& shape = part.shape;
  const std::int64_t count = std::ssize(part.answers);
  if (shape.num_heads < 1 || shape.num_heads > shape.value_dim || shape.value_dim > kDimMax ||
      shape.value_dim % shape.num_heads != 0) {
    return Misfit(part, absl::StrCat(shape.num_heads, " heads of ", shape.value_dim));
  }
  if (shape.query_count < 0 || shape.query_count > count || shape.head_query_count() != count) {
    return Misfit(part, absl::StrCat(count, " answers to ", shape.query_count, " queries"));
  }
  // So many rows are far from every sum that counts them or their bytes.
  constexpr std::uint64_t kRowCountMax = std::uint64_t{1} << 48;
  if (part.row_count > kRowCountMax || part.attended.end > part.row_count ||
      part.attended.begin > part.attended.end) {
    return Misfit(part, absl::StrCat("rows to ", part.attended.end, " of ", part.row_count));
  }
  return absl::OkStatus();
}

// Checks what MergedLookup::Merge() asks of the parts.
absl::Status CheckParts(const std::vector<PartialLookup>& parts) {
  if (parts.empty()) return absl::InternalError("No range has answered");
  const PartialLookup& first = parts.front();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartialLookup& part = parts[i];
    if (part.revision != first.revision || part.row_count != first.row_count ||
        part.incarnation != first.incarnation) {
      return Misfit(part,
                    absl::StrCat("revision ", part.revision, " of the store ", part.incarnation,
                                 ", not ", first.revision, " of ", first.incarnation));
    }
    if (part.shape != first.shape || part.attended != first.attended) {
      return Misfit(part, "it answers another lookup");
    }
    SOFTLOOKUP_RETURN_IF_ERROR(CheckShape(part));
    if (part.range.begin > part.range.end ||
        (i > 0 && part.range.begin != parts[i - 1].range.end)) {
      return Misfit(part, "ranges are not one behind the other");
    }
    for (const PartialAnswer& answer : part.answers) {
      SOFTLOOKUP_RETURN_IF_ERROR(CheckAnswer(part, answer));
    }
    if (!AreIdsOf(part.range, part.ids)) return Misfit(part, "ids of another range");
  }
  const bool attends = FirstAttended(first) < first.attended.end;
  if (attends &&
      (first.range.begin > FirstAttended(first) || parts.back().range.end < first.attended.end)) {
    return Misfit(parts.back(), "some rows are in no range");
  }
  return absl::OkStatus();
}

}  // namespace

bool RowSumsRequest::empty() const {
  return id_positions.empty() &&
         std::ranges::all_of(rows, [](const std::vector<WeighedRow>& of) { return of.empty(); });
}

MergedLookup::MergedLookup(PartialLookup facts, std::vector<PositionRange> ranges,
                           std::int64_t bytes_max)
    : merged_(std::move(facts)),
      ranges_(std::move(ranges)),
      requests_(ranges_.size()),
      writer_(std::make_unique<AnswerWriter>(merged_.shape, bytes_max)) {}

MergedLookup::~MergedLookup() = default;
MergedLookup::MergedLookup(MergedLookup&&) noexcept = default;
MergedLookup& MergedLookup::operator=(MergedLookup&&) noexcept = default;

absl::StatusOr<MergedLookup> MergedLookup::Merge(std::vector<PartialLookup> parts,
                                                 std::int64_t bytes_max,
                                                 absl::FunctionRef<bool()> continues) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckParts(parts));
  std::vector<PositionRange> ranges;
  ranges.reserve(parts.size());
  for (const PartialLookup& part : parts) ranges.push_back(part.range);
  PartialLookup merged = std::move(parts.front());
  const AnswerShape shape = merged.shape;
  for (std::size_t q = 0; q < merged.answers.size(); ++q) {
    if (!continues()) return Cancelled();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      softlookup::Merge(shape, std::move(parts[i].answers[q]), merged.answers[q]);
    }
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    merged.ids.insert(merged.ids.end(), parts[i].ids.begin(), parts[i].ids.end());
  }
  MergedLookup lookup(std::move(merged), std::move(ranges), bytes_max);
  SOFTLOOKUP_RETURN_IF_ERROR(lookup.Rank(continues));
  return lookup;
}

absl::Status MergedLookup::Rank(absl::FunctionRef<bool()> continues) {
  const AnswerShape& shape = merged_.shape;
  for (const PartialAnswer& answer : merged_.answers) {
    writer_->CountListed(shape.selects_rows() ? answer.rows.best.size()
                                              : answer.state.counted_rows);
  }
  SOFTLOOKUP_RETURN_IF_ERROR(writer_->CheckSize());
  writer_->Begin();
  for (std::size_t q = 0; q < merged_.answers.size(); ++q) {
    PartialAnswer& answer = merged_.answers[q];
    if (shape.selects_rows()) {
      SelectedRows selected = WeighSelected(shape, std::move(answer.rows.best), continues);
      answer.state = selected.state;
      answer.rows.best = std::move(selected.rows);
      for (const WeighedRow& row : selected.weighed) {
        RowSumsRequest& request = RequestWith(row.position);
        request.rows.resize(merged_.answers.size());
        request.rows[q].push_back(row);
      }
    }
    writer_->ListWeights(q, answer.state, std::move(answer.rows), continues);
    if (!continues()) return Cancelled();
  }
  if (!shape.selects_rows()) return absl::OkStatus();
  for (const QueryWeights& weights : writer_->answer().weights) {
    for (const WeightedRow& row : weights.rows) {
      RequestWith(row.position).id_positions.push_back(row.position);
    }
  }
  for (RowSumsRequest& request : requests_) {
    if (!continues()) return Cancelled();
    std::vector<std::uint64_t>& positions = request.id_positions;
    std::ranges::sort(positions);
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  }
  return absl::OkStatus();
}

RowSumsRequest& MergedLookup::RequestWith(std::uint64_t position) {
  const auto after = std::ranges::upper_bound(ranges_, position, {}, &PositionRange::begin);
  return requests_[static_cast<std::size_t>(after - ranges_.begin() - 1)];
}

absl::Status MergedLookup::CheckSums(const std::vector<RowSums>& sums) const {
  const auto components =
      static_cast<std::size_t>(merged_.shape.query_count * merged_.shape.value_dim);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].empty()) continue;
    if (i >= sums.size() || sums[i].sums.size() != (requests_[i].rows.empty() ? 0 : components)) {
      return absl::InternalError(
          absl::StrCat("The rows from ", ranges_[i].begin, " have no sums that were asked for"));
    }
    if (!AreIdsOf(ranges_[i], sums[i].ids)) {
      return absl::InternalError(
          absl::StrCat("The rows from ", ranges_[i].begin, " have ids of other rows"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LookupResult> MergedLookup::Finish(const std::vector<RowSums>& sums,
                                                  absl::FunctionRef<bool()> continues) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckSums(sums));
  const AnswerShape& shape = merged_.shape;
  const auto head_value_dim = static_cast<std::size_t>(shape.head_value_dim());
  std::vector<double> sum(head_value_dim);
  for (std::size_t q = 0; q < merged_.answers.size(); ++q) {
    if (!continues()) return Cancelled();
    const PartialAnswer& answer = merged_.answers[q];
    if (!shape.selects_rows()) {
      writer_->WriteSums(q, answer.state, answer.sum, answer.arithmetic_error);
      continue;
    }
    std::ranges::fill(sum, 0.0);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].rows.empty() || requests_[i].rows[q].empty()) continue;
      const double* part = sums[i].sums.data() + q * head_value_dim;
      for (std::size_t c = 0; c < head_value_dim; ++c) sum[c] += part[c];
    }
    writer_->WriteSums(q, answer.state, sum, kErrorBoundDefault);
  }
  // The first phase has the ids of all listed rows, or else the second has. The parts are in the
  // order of their positions.
  std::vector<PositionedId> ids = std::move(merged_.ids);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (!requests_[i].empty()) ids.insert(ids.end(), sums[i].ids.begin(), sums[i].ids.end());
  }
  AttentionAnswer& answer = writer_->answer();
  for (QueryWeights& weights : answer.weights) {
    if (!continues()) return Cancelled();
    AddIds(ids, weights);
  }
  return LookupResult{.values = std::move(answer.values),
                      .query_count = shape.query_count,
                      .value_dim = shape.value_dim,
                      .stats = std::move(answer.stats),
                      .weights = std::move(answer.weights),
                      .revision = merged_.revision,
                      .row_count = merged_.row_count};
}

void MergedLookup::AddIds(const std::vector<PositionedId>& ids, QueryWeights& weights) {
  for (WeightedRow& row : weights.rows) {
    const auto found = std::ranges::lower_bound(ids, row.position, {}, &PositionedId::position);
    if (found != ids.end() && found->position == row.position) row.id = found->id;
  }
}

}  // namespace softlookup
