#include "server/rpc/ranges_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/status_macros.h"

namespace softlookup::server {
namespace {

static_assert(std::endian::native == std::endian::little, "The wire is little-endian");

// No number of a real answer is nearly as large. Sums of so large ones do not overflow.
constexpr double kPartNumberMax = 1e250;
// A memory stands for fewer rows.
constexpr double kMultiplicityMax = 0x1p48;

bool IsNumber(double number) { return std::abs(number) <= kPartNumberMax; }

absl::Status Invalid(absl::string_view field, absl::string_view message) {
  return MakeError(reasons::kMalformedMessage, absl::StrCat(field, ": ", message),
                   {{"field", std::string(field)}});
}

// Sets `bytes` to the numbers.
template <typename Number>
void PutNumbers(const std::vector<Number>& numbers, std::string& bytes) {
  bytes.assign(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number));
}

template <typename Number = double>
absl::StatusOr<std::vector<double>> NumbersIn(absl::string_view field, const std::string& bytes) {
  if (bytes.size() % sizeof(Number) != 0) {
    return Invalid(field, absl::StrCat(bytes.size(), " bytes are no whole numbers"));
  }
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  for (const Number number : numbers) {
    if (!IsNumber(number)) return Invalid(field, absl::StrCat(number, " is out of range"));
  }
  return std::vector<double>(numbers.begin(), numbers.end());
}

// --- Ranges

// `Message` has the fields range_begin and range_end.
template <typename Message>
void EncodeRange(const PositionRange& range, Message& message) {
  message.set_range_begin(range.begin);
  if (range.end != PositionRange::kOpenEnd) message.set_range_end(range.end);
}

template <typename Message>
PositionRange DecodeRange(const Message& message) {
  return {.begin = message.range_begin(),
          .end = message.range_end() == 0 ? PositionRange::kOpenEnd : message.range_end()};
}

// --- Shape

cluster::v1::AnswerShape EncodeShape(const AnswerShape& shape) {
  cluster::v1::AnswerShape message;
  message.set_query_count(static_cast<std::uint32_t>(shape.query_count));
  message.set_num_heads(static_cast<std::uint32_t>(shape.num_heads));
  message.set_value_dim(static_cast<std::uint32_t>(shape.value_dim));
  message.set_mode(static_cast<std::uint32_t>(shape.mode));
  message.set_weights(static_cast<std::uint32_t>(shape.weights));
  message.set_top_weights(static_cast<std::uint32_t>(shape.top_weights));
  message.set_selected_max(shape.selected_max);
  if (shape.error_max != kErrorBoundDefault) message.set_error_max(shape.error_max);
  if (shape.memory) {
    message.mutable_memory()->set_position(shape.memory->position);
    message.mutable_memory()->set_multiplicity(shape.memory->multiplicity);
  }
  return message;
}

absl::StatusOr<AnswerShape> DecodeShape(const cluster::v1::AnswerShape& message) {
  AnswerShape shape{
      .query_count = message.query_count(),
      .num_heads = message.num_heads(),
      .value_dim = message.value_dim(),
      .selected_max = message.selected_max(),
      .top_weights = message.top_weights(),
      .error_max = message.has_error_max() ? message.error_max() : kErrorBoundDefault};
  if (shape.num_heads < 1 || shape.value_dim < 1 || shape.value_dim > kDimMax ||
      shape.value_dim % shape.num_heads != 0) {
    return Invalid("shape.value_dim",
                   absl::StrCat(shape.value_dim, " in ", shape.num_heads, " heads"));
  }
  if (message.mode() < 1 || message.mode() > static_cast<std::uint32_t>(Mode::kLinear)) {
    return Invalid("shape.mode", absl::StrCat("no mode has the number ", message.mode()));
  }
  shape.mode = static_cast<Mode>(message.mode());
  if (message.weights() < 1 || message.weights() > static_cast<std::uint32_t>(WeightsMode::kAll)) {
    return Invalid("shape.weights",
                   absl::StrCat("no weights mode has the number ", message.weights()));
  }
  shape.weights = static_cast<WeightsMode>(message.weights());
  if (!(shape.error_max >= kErrorBoundDefault && shape.error_max <= 1)) {
    return Invalid("shape.error_max", absl::StrCat(shape.error_max, " is out of range"));
  }
  if (message.has_memory()) {
    shape.memory = {.position = message.memory().position(),
                    .multiplicity = message.memory().multiplicity()};
    if (!(shape.memory->multiplicity >= 1 && shape.memory->multiplicity <= kMultiplicityMax)) {
      return Invalid("shape.memory.multiplicity",
                     absl::StrCat(shape.memory->multiplicity, " is out of range"));
    }
  }
  return shape;
}

// --- Rows

void EncodeRows(const AnswerShape& shape, const std::vector<CountedRow>& rows,
                cluster::v1::CountedRows& message) {
  std::vector<double> logits, scores;
  for (const CountedRow& row : rows) {
    message.add_positions(row.position);
    logits.push_back(row.logit);
    if (shape.lists_rows()) scores.push_back(row.score);
  }
  PutNumbers(logits, *message.mutable_logits());
  PutNumbers(scores, *message.mutable_scores());
}

absl::StatusOr<std::vector<CountedRow>> DecodeRows(const AnswerShape& shape,
                                                   absl::string_view field,
                                                   const cluster::v1::CountedRows& message) {
  const auto count = static_cast<std::size_t>(message.positions_size());
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<double> logits, NumbersIn(field, message.logits()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<double> scores, NumbersIn(field, message.scores()));
  if (logits.size() != count || scores.size() != (shape.lists_rows() ? count : 0)) {
    return Invalid(field, absl::StrCat(count, " positions, ", logits.size(), " logits and ",
                                       scores.size(), " scores"));
  }
  std::vector<CountedRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = {.position = message.positions(static_cast<int>(i)),
               .logit = logits[i],
               .score = scores.empty() ? 0 : scores[i]};
  }
  return rows;
}

cluster::v1::PositionedIds EncodeIds(const std::vector<PositionedId>& ids) {
  cluster::v1::PositionedIds message;
  for (const PositionedId& id : ids) {
    message.add_positions(id.position);
    message.add_ids(id.id);
  }
  return message;
}

absl::StatusOr<std::vector<PositionedId>> DecodeIds(const cluster::v1::PositionedIds& message) {
  if (message.positions_size() != message.ids_size()) {
    return Invalid("ids", absl::StrCat(message.positions_size(), " positions and ",
                                       message.ids_size(), " ids"));
  }
  std::vector<PositionedId> ids;
  ids.reserve(static_cast<std::size_t>(message.ids_size()));
  for (int i = 0; i < message.ids_size(); ++i) {
    if (i > 0 && message.positions(i) <= message.positions(i - 1)) {
      return Invalid("ids", "positions do not ascend");
    }
    ids.push_back({.position = message.positions(i), .id = message.ids(i)});
  }
  return ids;
}

// --- Answers

// What the sum of an answer is divided by to be a mean of values.
double SumOfWeights(const AnswerShape& shape, const PartialState& state) {
  return shape.mode == Mode::kSoft ? state.weight : 1;
}

// Whether float32 is good enough for a mean. In SOFT mode that moves the answer by at most 2^-24 of
// the largest value. In HARD mode, the value is one of float32.
bool FitsFloat32(const std::vector<double>& mean) {
  double largest = 0;
  for (const double component : mean) {
    if (!(std::abs(component) < 0x1p127)) return false;  // Far from where float32 overflows.
    largest = std::max(largest, std::abs(component));
  }
  return largest == 0 || largest > 0x1p-100;  // Far from where it loses bits.
}

void EncodeSum(const AnswerShape& shape, const PartialAnswer& answer,
               cluster::v1::PartialAnswer& message) {
  // The sums of LINEAR mode can cancel when ranges are merged, so they need all bits.
  if (shape.mode != Mode::kLinear) {
    std::vector<double> mean = answer.sum;
    for (double& component : mean) component /= SumOfWeights(shape, answer.state);
    if (FitsFloat32(mean)) {
      return PutNumbers(std::vector<float>(mean.begin(), mean.end()), *message.mutable_mean());
    }
  }
  PutNumbers(answer.sum, *message.mutable_sum());
}

// `state` is that of the answer, and checked.
absl::StatusOr<std::vector<double>> DecodeSum(const AnswerShape& shape, const PartialState& state,
                                              const cluster::v1::PartialAnswer& message) {
  if (message.mean().empty()) return NumbersIn("sum", message.sum());
  if (!message.sum().empty()) return Invalid("mean", "there is a sum, too");
  if (shape.mode == Mode::kLinear) return Invalid("mean", "LINEAR mode has sums");
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::vector<double> sum, NumbersIn<float>("mean", message.mean()));
  for (double& component : sum) component *= SumOfWeights(shape, state);
  return sum;
}

cluster::v1::PartialAnswer EncodeAnswer(const AnswerShape& shape, const PartialAnswer& answer) {
  cluster::v1::PartialAnswer message;
  if (answer.state.counted_rows > 0) {
    const PartialState& state = answer.state;
    message.set_counted_rows(state.counted_rows);
    message.set_skipped_rows(state.counted_rows - state.summed_rows);
    message.set_max_logit(state.max_logit);
    message.set_max_position(state.max_position);
    message.set_weight(state.weight);
    message.set_weighted(state.weighted);
    message.set_left_out(state.left_out);
    message.set_arithmetic_error(answer.arithmetic_error);
    EncodeSum(shape, answer, message);
  }
  const RankedRows& rows = answer.rows;
  if (!rows.best.empty()) EncodeRows(shape, rows.best, *message.mutable_best());
  if (!rows.first.empty()) EncodeRows(shape, rows.first, *message.mutable_first());
  if (rows.unranked_memory) {
    EncodeRows(shape, {*rows.unranked_memory}, *message.mutable_unranked_memory());
  }
  return message;
}

// Checks a state of at least one row.
absl::Status CheckState(const AnswerShape& shape, const PartialAnswer& answer) {
  const PartialState& state = answer.state;
  if (!IsNumber(state.max_logit) || !IsNumber(state.weight) || !IsNumber(state.weighted) ||
      !(IsNumber(state.left_out) && state.left_out >= 0) ||
      !(answer.arithmetic_error >= 0 && answer.arithmetic_error <= 1)) {
    return Invalid("weight", "a number is out of range");
  }
  // The largest logit alone has the weight 1.
  if (shape.mode == Mode::kSoft && !(state.weight > 0.99 && state.weighted <= 0)) {
    return Invalid("weight", absl::StrCat(state.weight, " is no sum of softmax weights"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PartialAnswer> DecodeAnswer(const AnswerShape& shape,
                                           const cluster::v1::PartialAnswer& message) {
  PartialAnswer answer;
  if (message.skipped_rows() > message.counted_rows()) {
    return Invalid("skipped_rows", "more rows than count");
  }
  if (message.counted_rows() > 0) {
    answer.state = {.max_logit = message.max_logit(),
                    .weight = message.weight(),
                    .weighted = message.weighted(),
                    .counted_rows = message.counted_rows(),
                    .max_position = message.max_position(),
                    .summed_rows = message.counted_rows() - message.skipped_rows(),
                    .left_out = message.left_out()};
    answer.arithmetic_error = message.arithmetic_error();
    SOFTLOOKUP_RETURN_IF_ERROR(CheckState(shape, answer));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(answer.sum, DecodeSum(shape, answer.state, message));
  SOFTLOOKUP_ASSIGN_OR_RETURN(answer.rows.best, DecodeRows(shape, "best", message.best()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(answer.rows.first, DecodeRows(shape, "first", message.first()));
  if (message.has_unranked_memory()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<CountedRow> memory,
                                DecodeRows(shape, "unranked_memory", message.unranked_memory()));
    if (memory.size() != 1) return Invalid("unranked_memory", "not one row");
    answer.rows.unranked_memory = memory[0];
  }
  return answer;
}

}  // namespace

cluster::v1::LookupPart EncodeLookupPart(const LookupPart& part) {
  cluster::v1::LookupPart message;
  EncodeRange(part.range, message);
  message.set_revision(part.revision);
  message.set_incarnation(part.incarnation);
  message.set_is_further(part.is_further);
  return message;
}

LookupPart DecodeLookupPart(const cluster::v1::LookupPart& message) {
  return {.range = DecodeRange(message),
          .revision = message.revision(),
          .incarnation = message.incarnation(),
          .is_further = message.is_further()};
}

cluster::v1::PartialLookup EncodePartialLookup(const PartialLookup& lookup) {
  cluster::v1::PartialLookup message;
  *message.mutable_shape() = EncodeShape(lookup.shape);
  message.set_attended_begin(lookup.attended.begin);
  if (lookup.attended.end != lookup.row_count) message.set_attended_end(lookup.attended.end);
  message.set_incarnation(lookup.incarnation);
  message.set_revision(lookup.revision);
  message.set_row_count(lookup.row_count);
  EncodeRange(lookup.range, message);
  for (const PartialAnswer& answer : lookup.answers) {
    *message.add_answers() = EncodeAnswer(lookup.shape, answer);
  }
  if (!lookup.ids.empty()) *message.mutable_ids() = EncodeIds(lookup.ids);
  return message;
}

absl::StatusOr<PartialLookup> DecodePartialLookup(const cluster::v1::PartialLookup& message) {
  PartialLookup lookup{.attended = {.begin = message.attended_begin(),
                                    .end = message.has_attended_end() ? message.attended_end()
                                                                      : message.row_count()},
                       .incarnation = message.incarnation(),
                       .revision = message.revision(),
                       .row_count = message.row_count(),
                       .range = DecodeRange(message)};
  SOFTLOOKUP_ASSIGN_OR_RETURN(lookup.shape, DecodeShape(message.shape()));
  if (message.answers_size() != lookup.shape.head_query_count()) {
    return Invalid("answers",
                   absl::StrCat(message.answers_size(), " answers to ", lookup.shape.query_count,
                                " queries in ", lookup.shape.num_heads, " heads"));
  }
  lookup.answers.reserve(static_cast<std::size_t>(message.answers_size()));
  for (const cluster::v1::PartialAnswer& answer : message.answers()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(PartialAnswer decoded, DecodeAnswer(lookup.shape, answer));
    lookup.answers.push_back(std::move(decoded));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(lookup.ids, DecodeIds(message.ids()));
  return lookup;
}

cluster::v1::RowSumsRequest EncodeRowSumsRequest(const RowSumsRequest& request) {
  cluster::v1::RowSumsRequest message;
  for (const std::vector<WeighedRow>& rows : request.rows) {
    cluster::v1::WeighedRows& encoded = *message.add_rows();
    std::vector<double> weights;
    for (const WeighedRow& row : rows) {
      encoded.add_positions(row.position);
      weights.push_back(row.weight);
    }
    PutNumbers(weights, *encoded.mutable_weights());
  }
  for (const std::uint64_t position : request.id_positions) message.add_id_positions(position);
  return message;
}

absl::StatusOr<RowSumsRequest> DecodeRowSumsRequest(const cluster::v1::RowSumsRequest& message) {
  RowSumsRequest request;
  request.rows.reserve(static_cast<std::size_t>(message.rows_size()));
  for (const cluster::v1::WeighedRows& rows : message.rows()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<double> weights,
                                NumbersIn("rows.weights", rows.weights()));
    if (std::ssize(weights) != rows.positions_size()) {
      return Invalid("rows.weights",
                     absl::StrCat(weights.size(), " for ", rows.positions_size(), " positions"));
    }
    std::vector<WeighedRow>& decoded = request.rows.emplace_back();
    decoded.reserve(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      decoded.push_back({.position = rows.positions(static_cast<int>(i)), .weight = weights[i]});
    }
  }
  request.id_positions.assign(message.id_positions().begin(), message.id_positions().end());
  return request;
}

cluster::v1::RowSums EncodeRowSums(const RowSums& sums) {
  cluster::v1::RowSums message;
  PutNumbers(sums.sums, *message.mutable_sums());
  if (!sums.ids.empty()) *message.mutable_ids() = EncodeIds(sums.ids);
  return message;
}

absl::StatusOr<RowSums> DecodeRowSums(const cluster::v1::RowSums& message) {
  RowSums sums;
  SOFTLOOKUP_ASSIGN_OR_RETURN(sums.sums, NumbersIn("sums", message.sums()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(sums.ids, DecodeIds(message.ids()));
  return sums;
}

}  // namespace softlookup::server
