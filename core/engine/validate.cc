#include "core/engine/validate.h"

#include <bit>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/attention/options.h"
#include "core/base/cost.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "softlookup/store_ranges.h"

namespace softlookup {
namespace {

absl::Status CheckLabels(const std::map<std::string, std::string>& labels) {
  if (static_cast<std::int64_t>(labels.size()) > kStoreLabelCountMax) {
    return InvalidOption("store.labels", absl::StrCat("at most ", kStoreLabelCountMax,
                                                      " labels, not ", labels.size()));
  }
  for (const auto& [key, value] : labels) {
    if (key.empty() || static_cast<std::int64_t>(key.size()) > kStoreLabelKeyBytesMax ||
        static_cast<std::int64_t>(value.size()) > kStoreLabelValueBytesMax) {
      return InvalidOption(
          "store.labels", absl::StrCat("a key has 1-", kStoreLabelKeyBytesMax,
                                       " bytes and a value at most ", kStoreLabelValueBytesMax,
                                       "; wrong at \"", absl::CHexEscape(key.substr(0, 32)), "\""));
    }
  }
  return absl::OkStatus();
}

// `field` names the spec, such as store.memories[0].
absl::Status CheckMemorySpec(const std::string& field, const MemorySpec& spec,
                             std::int64_t key_dim) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName(absl::StrCat(field, ".name"), spec.name));
  const bool decays =
      spec.kind == MemoryKind::kDecayedSum || spec.kind == MemoryKind::kDecayedAverage;
  const bool gated = spec.kind == MemoryKind::kGated || spec.kind == MemoryKind::kGatedAverage;
  if (spec.kind == MemoryKind::kUnspecified) {
    return InvalidOption(absl::StrCat(field, ".kind"), "must be set");
  }
  // A damaged configuration record can hold any number as the kind.
  if (spec.kind < MemoryKind::kAverage || spec.kind > MemoryKind::kGatedAverage) {
    return InvalidOption(absl::StrCat(field, ".kind"), "must be a kind of memory");
  }
  if (decays ? !(spec.decay > 0 && spec.decay < 1) : spec.decay != 0) {
    return InvalidOption(absl::StrCat(field, ".decay"),
                         decays ? absl::StrCat("must be in (0, 1), not ", spec.decay)
                                : std::string("only the decayed kinds have one"));
  }
  const std::int64_t gate_size = static_cast<std::int64_t>(spec.gate.size());
  if (gate_size != (gated ? key_dim + 1 : 0)) {
    return InvalidOption(absl::StrCat(field, ".gate"),
                         gated
                             ? absl::StrCat("must be 1 x ", key_dim + 1,
                                            " (the bias and key_dim), not ", gate_size, " numbers")
                             : std::string("only the gated kinds have one"));
  }
  return CheckFinite(absl::StrCat(field, ".gate"),
                     {.data = spec.gate.data(), .rows = gated ? 1 : 0, .cols = gate_size});
}

absl::Status CheckMemories(const StoreConfig& config) {
  if (static_cast<std::int64_t>(config.memories.size()) > kMemoryCountMax) {
    return InvalidOption("store.memories", absl::StrCat("at most ", kMemoryCountMax,
                                                        " memories, not ", config.memories.size()));
  }
  absl::flat_hash_set<absl::string_view> names = {kAverageMemory};
  for (std::size_t i = 0; i < config.memories.size(); ++i) {
    const std::string field = absl::StrCat("store.memories[", i, "]");
    SOFTLOOKUP_RETURN_IF_ERROR(CheckMemorySpec(field, config.memories[i], config.key_dim));
    if (!names.insert(config.memories[i].name).second) {
      return InvalidOption(absl::StrCat(field, ".name"),
                           absl::StrCat("\"", config.memories[i].name, "\" is taken"));
    }
  }
  return absl::OkStatus();
}

// Checks that `score` is in [least, kScoreMax].
absl::Status CheckScore(Score score, Score least) {
  if (score >= least && score <= kScoreMax) return absl::OkStatus();
  return InvalidOption("store.score", "must be a score");
}

absl::Status CheckDim(absl::string_view field, std::int64_t dim, std::int64_t num_heads) {
  if (dim < 1 || dim > kDimMax) {
    return InvalidOption(field, absl::StrCat("must be in [1, ", kDimMax, "], not ", dim));
  }
  if (dim % num_heads != 0) {
    return InvalidOption(field, absl::StrCat(dim, " is not divisible by num_heads, ", num_heads));
  }
  return absl::OkStatus();
}

absl::Status CheckCols(absl::string_view field, const MatrixView& matrix,
                       absl::string_view dim_name, std::int64_t dim) {
  if (matrix.cols == dim) return absl::OkStatus();
  return MakeError(reasons::kShapeMismatch,
                   absl::StrCat(field, ": ", matrix.cols, matrix.cols == 1 ? " column" : " columns",
                                ", but the store's ", dim_name, " is ", dim),
                   {{"field", std::string(field)}});
}

absl::Status CheckRowsMax(absl::string_view field, std::int64_t rows, std::int64_t rows_max) {
  if (rows <= rows_max) return absl::OkStatus();
  return MakeError(reasons::kLimitExceeded,
                   absl::StrCat(field, ": ", rows, " rows are over the limit of ", rows_max),
                   {{"field", std::string(field)}, {"limit", absl::StrCat(rows_max)}});
}

// The exponent bits of a float32. All are set in infinities and NaNs, and in no other number.
constexpr std::uint32_t kNonFiniteExponent = 0x7f800000;

bool IsNonFinite(float component) {
  return (std::bit_cast<std::uint32_t>(component) & kNonFiniteExponent) == kNonFiniteExponent;
}

absl::Status ShapeMismatch(absl::string_view field, absl::string_view message) {
  return MakeError(reasons::kShapeMismatch, absl::StrCat(field, ": ", message),
                   {{"field", std::string(field)}});
}

absl::Status CheckSameRows(const MatrixView& keys, const MatrixView& values) {
  if (keys.rows == values.rows) return absl::OkStatus();
  return ShapeMismatch("values", absl::StrCat(values.rows, " rows, but keys has ", keys.rows));
}

// Checks that `projection` is not null, takes `inputs`, and makes at most `bytes_max` bytes of
// them. Each input becomes `output_dim` floats, so few bytes can become many.
absl::Status CheckInputs(const MatrixView& inputs, const Projection* projection,
                         std::int64_t output_dim, std::int64_t bytes_max) {
  if (projection == nullptr) {
    return MakeError(reasons::kNoProjection, "inputs: the store has no projection",
                     {{"field", "inputs"}});
  }
  if (inputs.cols != projection->input_dim) {
    return ShapeMismatch("inputs", absl::StrCat(inputs.cols, " columns, but the projection takes ",
                                                projection->input_dim));
  }
  const std::int64_t bytes = inputs.rows * output_dim * static_cast<std::int64_t>(sizeof(float));
  if (bytes <= bytes_max) return absl::OkStatus();
  return MakeError(
      reasons::kLimitExceeded,
      absl::StrCat("inputs: the projections of ", inputs.rows, " rows have ", bytes,
                   " bytes; the limit is ", bytes_max),
      {{"field", "inputs"}, {"bytes", absl::StrCat(bytes)}, {"limit", absl::StrCat(bytes_max)}});
}

// Checks that the projection's `query` and `key` are [key_dim, input_dim] and its `value` is
// [value_dim, input_dim], all finite. `field` names the projection.
absl::Status CheckProjection(const std::string& field, const Projection& projection,
                             std::int64_t key_dim, std::int64_t value_dim) {
  const std::int64_t input_dim = projection.input_dim;
  if (input_dim < 1 || input_dim > kDimMax) {
    return ShapeMismatch(absl::StrCat(field, ".query"),
                         absl::StrCat("an input has 1-", kDimMax, " dimensions, not ", input_dim));
  }
  const auto check = [&](const char* part, const std::vector<float>& weights, std::int64_t rows) {
    const std::string name = absl::StrCat(field, ".", part);
    return static_cast<std::int64_t>(weights.size()) == rows * input_dim
               ? CheckFinite(name, {.data = weights.data(), .rows = rows, .cols = input_dim})
               : ShapeMismatch(name, absl::StrCat("must be ", rows, " x ", input_dim));
  };
  SOFTLOOKUP_RETURN_IF_ERROR(check("query", projection.query, key_dim));
  SOFTLOOKUP_RETURN_IF_ERROR(check("key", projection.key, key_dim));
  return check("value", projection.value, value_dim);
}

absl::Status CheckIds(absl::Span<const std::uint64_t> ids, std::int64_t row_count) {
  if (ids.empty()) return absl::OkStatus();
  if (static_cast<std::int64_t>(ids.size()) != row_count) {
    return ShapeMismatch("ids", absl::StrCat(ids.size(), " ids, but ", row_count, " rows"));
  }
  absl::flat_hash_set<std::uint64_t> seen;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (seen.insert(ids[row]).second) continue;
    return MakeError(reasons::kInvalidOption,
                     absl::StrCat("ids: row ", row, ": the id ", ids[row], " stands twice"),
                     {{"field", "ids"}, {"row", absl::StrCat(row)}});
  }
  return absl::OkStatus();
}

absl::Status CheckRowLabels(absl::Span<const std::vector<std::string>> row_labels,
                            std::int64_t row_count) {
  if (row_labels.empty()) return absl::OkStatus();
  if (static_cast<std::int64_t>(row_labels.size()) != row_count) {
    return ShapeMismatch("row_labels",
                         absl::StrCat(row_labels.size(), " of them, but ", row_count, " rows"));
  }
  for (std::size_t row = 0; row < row_labels.size(); ++row) {
    bool valid = static_cast<std::int64_t>(row_labels[row].size()) <= kRowLabelCountMax;
    for (const std::string& label : row_labels[row]) {
      valid =
          valid && !label.empty() && static_cast<std::int64_t>(label.size()) <= kRowLabelBytesMax;
    }
    if (valid) continue;
    return MakeError(
        reasons::kLimitExceeded,
        absl::StrCat("row_labels: row ", row, ": a row has at most ", kRowLabelCountMax,
                     " labels, each of 1-", kRowLabelBytesMax, " bytes"),
        {{"field", "row_labels"}, {"row", absl::StrCat(row)}});
  }
  return absl::OkStatus();
}

// Returns LIMIT_EXCEEDED if more memories are asked for than the store has, and ANSWER_TOO_LARGE
// if they have more than `bytes_max` bytes together.
absl::Status CheckReturnedMemories(const AppendRequest& request, const StoreConfig& config,
                                   std::int64_t bytes_max) {
  // No caller needs a memory twice, so more names than memories are refused.
  const std::size_t count_max = config.memories.size() + 1;
  if (request.return_memories.size() > count_max) {
    return MakeError(reasons::kLimitExceeded,
                     absl::StrCat("return_memories: ", request.return_memories.size(),
                                  " names, but the store keeps ", count_max, " memories"),
                     {{"field", "return_memories"}, {"limit", absl::StrCat(count_max)}});
  }
  const std::int64_t bytes = static_cast<std::int64_t>(request.return_memories.size()) * 8 *
                             (config.key_dim + config.value_dim);
  if (bytes <= bytes_max) return absl::OkStatus();
  return MakeError(reasons::kAnswerTooLarge,
                   absl::StrCat("return_memories: the answer would need at least ", bytes,
                                " bytes; the limit is ", bytes_max),
                   {{"field", "return_memories"},
                    {"bytes", absl::StrCat(bytes)},
                    {"limit", absl::StrCat(bytes_max)}});
}

}  // namespace

absl::Status CheckStoreName(absl::string_view field, absl::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '/' ||
           c == '-';
  };
  bool valid = !name.empty() && static_cast<std::int64_t>(name.size()) <= kNameLengthMax &&
               absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
               !absl::StrContains(name, "..");
  for (const char c : name) valid = valid && allowed(c);
  if (valid) return absl::OkStatus();
  return MakeError(
      reasons::kInvalidName,
      absl::StrCat(field, ": a store's name has 1-", kNameLengthMax,
                   " characters, letters, digits, \".\", \"_\", \"/\" and \"-\", starts with a "
                   "letter or digit and has no \"..\"; not \"",
                   absl::CHexEscape(name.substr(0, kNameLengthMax)), "\""),
      {{"field", std::string(field)}});
}

absl::Status CheckStoreRename(const StoreRename& rename) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("store", rename.name));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("new_name", rename.new_name));
  if (rename.name == rename.new_name) {
    return InvalidOption("new_name", "is the name that the store has already");
  }
  return absl::OkStatus();
}

absl::Status CheckStoreConfig(const StoreConfig& config) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckStoreName("store.name", config.name));
  if (config.num_heads < 1) return InvalidOption("store.num_heads", "must be at least 1");
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDim("store.key_dim", config.key_dim, config.num_heads));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDim("store.value_dim", config.value_dim, config.num_heads));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckScore(config.score, Score::kDot));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckTemperature("store.temperature", config.temperature));
  switch (config.storage_type) {
    case StorageType::kFloat32:
    case StorageType::kBfloat16:
    case StorageType::kInt8:
      break;
    default:
      return InvalidOption("store.storage_type", "must be FLOAT32, BFLOAT16 or INT8");
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMemories(config));
  if (config.projection != nullptr) {
    SOFTLOOKUP_RETURN_IF_ERROR(
        CheckProjection("store.projection", *config.projection, config.key_dim, config.value_dim));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckLabels(config.labels));
  return CheckStoreRanges("store.ranges", config.ranges, config);
}

absl::Status CheckStoreUpdate(const StoreUpdate& update, const StoreConfig& config) {
  if (update.projection && *update.projection != nullptr) {
    SOFTLOOKUP_RETURN_IF_ERROR(
        CheckProjection("store.projection", **update.projection, config.key_dim, config.value_dim));
  }
  if (update.score) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckScore(*update.score, Score::kUnspecified));
  }
  if (update.temperature) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckTemperature("store.temperature", *update.temperature));
  }
  return update.labels ? CheckLabels(*update.labels) : absl::OkStatus();
}

absl::Status CheckFinite(absl::string_view field, const MatrixView& matrix) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const float* components = matrix.row(row);
    int non_finite = 0;
    for (std::int64_t i = 0; i < matrix.cols; ++i) non_finite += IsNonFinite(components[i]);
    if (non_finite == 0) continue;
    std::int64_t col = 0;
    while (!IsNonFinite(components[col])) ++col;
    return MakeError(
        reasons::kNonFiniteValue,
        absl::StrCat(field, ": row ", row, ", column ", col, " is ",
                     std::isnan(components[col]) ? "NaN" : "infinite"),
        {{"field", std::string(field)}, {"row", absl::StrCat(row)}, {"column", absl::StrCat(col)}});
  }
  return absl::OkStatus();
}

absl::Status CheckWriterName(absl::string_view writer) {
  if (writer.empty() || static_cast<std::int64_t>(writer.size()) > kWriterBytesMax) {
    return InvalidOption("writer", absl::StrCat("must have 1 to ", kWriterBytesMax, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckAppend(const AppendRequest& request, const StoreConfig& config,
                         const Limits& limits) {
  const char* field = request.inputs ? "inputs" : "keys";
  const MatrixView& rows = request.inputs ? *request.inputs : request.keys;
  if (rows.rows < 1) return ShapeMismatch(field, "an append has at least one row");
  if (request.inputs) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckRowsMax(field, rows.rows, limits.rows_per_append_max));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckInputs(rows, config.projection.get(),
                                           config.key_dim + config.value_dim,
                                           limits.message_bytes_max));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite(field, rows));
  } else {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckSameRows(request.keys, request.values));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckRowsMax(field, rows.rows, limits.rows_per_append_max));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckCols("keys", request.keys, "key_dim", config.key_dim));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckCols("values", request.values, "value_dim", config.value_dim));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite("keys", request.keys));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite("values", request.values));
  }
  if (!request.writer.empty() || request.sequence != 0) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckWriterName(request.writer));
    if (request.sequence == 0) {
      return InvalidOption("sequence", "must be at least 1 where there is a writer");
    }
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckIds(request.ids, rows.rows));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRowLabels(request.row_labels, rows.rows));
  return CheckReturnedMemories(request, config, limits.message_bytes_max);
}

absl::Status CheckLookupExceptProjection(const LookupRequest& request, const StoreConfig& config,
                                         const Limits& limits) {
  const char* field = request.inputs ? "inputs" : "queries";
  const MatrixView& queries = request.inputs ? *request.inputs : request.queries;
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRowsMax(field, queries.rows, limits.queries_per_lookup_max));
  if (!request.inputs) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckCols(field, queries, "key_dim", config.key_dim));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite(field, queries));
  return ResolveOptions(request.options, config.score, config.temperature, limits).status();
}

absl::Status CheckLookup(const LookupRequest& request, const StoreConfig& config,
                         const Limits& limits) {
  if (request.inputs) {
    SOFTLOOKUP_RETURN_IF_ERROR(
        CheckRowsMax("inputs", request.inputs->rows, limits.queries_per_lookup_max));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckInputs(*request.inputs, config.projection.get(), config.key_dim,
                                           limits.message_bytes_max));
  }
  return CheckLookupExceptProjection(request, config, limits);
}

absl::StatusOr<double> CheckAttend(const AttendRequest& request, const Limits& limits) {
  if (request.num_heads < 1) return InvalidOption("num_heads", "must be at least 1");
  if (request.self && !request.inputs) return ShapeMismatch("self", "needs inputs");
  const Projection* projection = request.projection.get();
  const char* field = request.inputs ? "inputs" : "keys";
  const MatrixView& rows = request.inputs ? *request.inputs : request.keys;
  std::int64_t key_dim = rows.cols, value_dim = request.inputs ? rows.cols : request.values.cols;
  double cost = 0;
  if (rows.rows < 1) return ShapeMismatch(field, "there is nothing to attend to");
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRowsMax(field, rows.rows, limits.rows_per_append_max));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite(field, rows));
  if (!request.inputs) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckSameRows(request.keys, request.values));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite("values", request.values));
  } else if (projection != nullptr) {
    if (projection->input_dim < 1) return ShapeMismatch("projection.key", "has no columns");
    key_dim = static_cast<std::int64_t>(projection->key.size()) / projection->input_dim;
    value_dim = static_cast<std::int64_t>(projection->value.size()) / projection->input_dim;
    SOFTLOOKUP_RETURN_IF_ERROR(CheckProjection("projection", *projection, key_dim, value_dim));
    SOFTLOOKUP_RETURN_IF_ERROR(CheckInputs(
        rows, projection, key_dim * (request.self ? 2 : 1) + value_dim, limits.message_bytes_max));
    cost += ProjectionCost(
        static_cast<std::int64_t>(2 * projection->key.size() + projection->value.size()),
        rows.rows);
  } else if (!request.self) {
    return MakeError(reasons::kNoProjection, "inputs: need a projection, or self",
                     {{"field", "inputs"}});
  }
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDim("key_dim", key_dim, request.num_heads));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckDim("value_dim", value_dim, request.num_heads));
  const std::int64_t query_count = request.self ? rows.rows : request.queries.rows;
  SOFTLOOKUP_RETURN_IF_ERROR(CheckRowsMax(request.self ? "inputs" : "queries", query_count,
                                          limits.queries_per_lookup_max));
  if (!request.self) {
    if (request.queries.cols != key_dim) {
      return ShapeMismatch(
          "queries", absl::StrCat(request.queries.cols, " columns, but the keys have ", key_dim));
    }
    SOFTLOOKUP_RETURN_IF_ERROR(CheckFinite("queries", request.queries));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(
      ResolveOptions(request.options, Score::kScaledDot, 1, limits).status());
  // The rows are packed into panels, which is one pass over them, and then scanned.
  const std::int64_t dims = key_dim + value_dim;
  const auto row_count = static_cast<std::uint64_t>(rows.rows);
  return cost + PassOverRowsCost(row_count, dims) +
         AttentionCost({.query_count = query_count,
                        .num_heads = request.num_heads,
                        .row_count = row_count,
                        .dims = dims,
                        .ranks_rows = true});
}

}  // namespace softlookup
