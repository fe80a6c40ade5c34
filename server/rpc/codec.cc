#include "server/rpc/codec.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace softlookup::server {
namespace {

static_assert(std::endian::native == std::endian::little, "The wire is little-endian");

absl::Status InvalidMatrix(const std::string& field, absl::string_view message) {
  return MakeError(reasons::kInvalidMatrix, absl::StrCat(field, ": ", message), {{"field", field}});
}

template <typename T>
T ElementAt(const std::string& data, std::int64_t index) {
  T element;
  std::memcpy(&element, data.data() + index * sizeof(T), sizeof(T));
  return element;
}

// The bytes of one element of `data`, or 0 for a type that no matrix has.
std::int64_t ElementBytes(v1::ElementType type) {
  switch (type) {
    case v1::ELEMENT_TYPE_UNSPECIFIED:
    case v1::ELEMENT_TYPE_FLOAT32:
      return 4;
    case v1::ELEMENT_TYPE_FLOAT64:
      return 8;
    case v1::ELEMENT_TYPE_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

void SetFloat32(const std::vector<float>& floats, std::int64_t rows, std::int64_t cols,
                bool as_numbers, v1::Matrix& matrix) {
  matrix.set_rows(static_cast<std::uint32_t>(rows));
  matrix.set_cols(static_cast<std::uint32_t>(cols));
  matrix.set_element_type(v1::ELEMENT_TYPE_FLOAT32);
  if (as_numbers) {
    matrix.mutable_values()->Add(floats.begin(), floats.end());
  } else {
    matrix.set_data(floats.data(), floats.size() * sizeof(float));
  }
}

void SetFloat64Row(const std::vector<double>& row, v1::Matrix& matrix) {
  matrix.set_rows(1);
  matrix.set_cols(static_cast<std::uint32_t>(row.size()));
  matrix.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  matrix.set_data(row.data(), row.size() * sizeof(double));
}

// Unknown enum values arrive as numbers.
template <typename Enum>
absl::StatusOr<Enum> DecodeEnum(const std::string& field, int value, Enum largest) {
  if (value < 0 || value > static_cast<int>(largest)) {
    return InvalidOption(field, absl::StrCat("there is no value ", value));
  }
  return static_cast<Enum>(value);
}

absl::StatusOr<AttentionOptions> DecodeOptions(const v1::AttentionOptions& options) {
  AttentionOptions decoded;
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      decoded.score, DecodeEnum("options.score", options.score(), Score::kSquaredEuclidean));
  if (options.has_temperature()) decoded.temperature = options.temperature();
  SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.mode,
                              DecodeEnum("options.mode", options.mode(), Mode::kLinear));
  decoded.top_k = options.top_k();
  if (options.has_min_score()) decoded.min_score = options.min_score();
  if (options.has_recency_decay()) decoded.recency_decay = options.recency_decay();
  decoded.causal = options.causal();
  decoded.causal_offset = options.causal_offset();
  SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.weights,
                              DecodeEnum("options.weights", options.weights(), WeightsMode::kAll));
  decoded.top_weights = options.top_weights();
  return decoded;
}

absl::StatusOr<MemorySpec> DecodeMemorySpec(const std::string& field, const v1::MemorySpec& spec) {
  MemorySpec decoded{.name = spec.name(), .decay = spec.decay()};
  SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.kind, DecodeEnum(absl::StrCat(field, ".kind"), spec.kind(),
                                                       MemoryKind::kGatedAverage));
  if (spec.has_gate()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const DecodedMatrix gate,
                                DecodeMatrix(absl::StrCat(field, ".gate"), spec.gate()));
    const MatrixView view = gate.view();
    if (view.rows != 1) {
      return InvalidMatrix(absl::StrCat(field, ".gate"),
                           absl::StrCat("must have 1 row, not ", view.rows));
    }
    decoded.gate.assign(view.data, view.data + view.cols);
  }
  return decoded;
}

// Keeps its own copy: a store outlives the request.
absl::StatusOr<std::shared_ptr<const Projection>> DecodeProjection(
    const std::string& field, const v1::Projection& projection) {
  auto decoded = std::make_shared<Projection>();
  decoded->input_dim = projection.query().cols();
  const auto decode = [&](const char* part, const v1::Matrix& matrix,
                          std::vector<float>& weights) -> absl::Status {
    const std::string name = absl::StrCat(field, ".", part);
    SOFTLOOKUP_ASSIGN_OR_RETURN(const DecodedMatrix map, DecodeMatrix(name, matrix));
    const MatrixView view = map.view();
    if (view.cols != decoded->input_dim) {
      return MakeError(reasons::kShapeMismatch,
                       absl::StrCat(name, ": ", view.cols, " columns, but ", field, ".query has ",
                                    decoded->input_dim),
                       {{"field", name}});
    }
    weights.assign(view.data, view.data + view.rows * view.cols);
    return absl::OkStatus();
  };
  SOFTLOOKUP_RETURN_IF_ERROR(decode("query", projection.query(), decoded->query));
  SOFTLOOKUP_RETURN_IF_ERROR(decode("key", projection.key(), decoded->key));
  SOFTLOOKUP_RETURN_IF_ERROR(decode("value", projection.value(), decoded->value));
  return decoded;
}

void EncodeProjection(const Projection& projection, v1::Projection& message) {
  const auto encode = [&](const std::vector<float>& weights, v1::Matrix& matrix) {
    // A store that is about to be refused may have no inputs.
    const auto count = static_cast<std::int64_t>(weights.size());
    SetFloat32(weights, count == 0 ? 0 : count / projection.input_dim, projection.input_dim,
               /*as_numbers=*/false, matrix);
  };
  encode(projection.query, *message.mutable_query());
  encode(projection.key, *message.mutable_key());
  encode(projection.value, *message.mutable_value());
}

// INVALID_ARGUMENT if a request has both `inputs` and what is made of them.
absl::Status CheckNotBoth(bool has_inputs, bool has_other, const std::string& other) {
  if (!has_inputs || !has_other) return absl::OkStatus();
  return InvalidMatrix("inputs", absl::StrCat("and ", other, " are both set; set one of them"));
}

absl::Status CheckBytes(std::size_t bytes, std::int64_t bytes_max, const ErrorReason& reason,
                        absl::string_view what) {
  if (bytes <= static_cast<std::size_t>(bytes_max)) return absl::OkStatus();
  return MakeError(reason, absl::StrCat(what, " ", bytes, " bytes; the limit is ", bytes_max),
                   {{"bytes", absl::StrCat(bytes)}, {"limit", absl::StrCat(bytes_max)}});
}

// What the responses of Lookup and Attend share.
template <typename Response>
void EncodeAnswer(const LookupResult& result, bool as_numbers, Response& response) {
  SetFloat32(result.values, result.query_count, result.value_dim, as_numbers,
             *response.mutable_values());
  for (const QueryStats& stats : result.stats) {
    v1::QueryStats* message = response.add_stats();
    message->set_log_sum_exp(stats.log_sum_exp);
    message->set_max_logit(stats.max_logit);
    message->set_counted_rows(stats.counted_rows);
    message->set_entropy(stats.entropy);
    message->set_empty(stats.counted_rows == 0);
  }
  for (const QueryWeights& weights : result.weights) {
    v1::QueryWeights* message = response.add_weights();
    const int count = static_cast<int>(weights.rows.size());
    message->mutable_positions()->Reserve(count);
    message->mutable_weights()->Reserve(count);
    message->mutable_scores()->Reserve(count);
    bool any_id = false;
    for (const WeightedRow& row : weights.rows) {
      message->add_positions(row.position);
      message->add_weights(row.weight);
      message->add_scores(row.score);
      any_id = any_id || row.id.has_value();
    }
    // Parallel to the positions, or not there at all.
    for (const WeightedRow& row : weights.rows) {
      if (any_id) message->add_ids(row.id.value_or(0));
    }
    message->set_remaining_weight(weights.remaining_weight);
  }
}

}  // namespace

MatrixView DecodedMatrix::view() const {
  return {.data = in_message_ != nullptr ? in_message_ : converted_.data(),
          .rows = rows_,
          .cols = cols_};
}

absl::StatusOr<DecodedMatrix> DecodeMatrix(const std::string& field, const v1::Matrix& matrix) {
  DecodedMatrix decoded;
  decoded.rows_ = matrix.rows();
  decoded.cols_ = matrix.cols();
  // Below 2^64: both factors are below 2^32.
  const std::uint64_t count = std::uint64_t{matrix.rows()} * matrix.cols();
  const std::string& data = matrix.data();
  if (!data.empty() && matrix.values_size() > 0) {
    return InvalidMatrix(field, "data and values are both set; set one of them");
  }
  if (matrix.values_size() > 0) {
    if (static_cast<std::uint64_t>(matrix.values_size()) != count) {
      return InvalidMatrix(
          field, absl::StrCat("values has ", matrix.values_size(), " numbers, but ", matrix.rows(),
                              " x ", matrix.cols(), " are ", count));
    }
    decoded.in_message_ = matrix.values().data();
    return decoded;
  }
  const std::int64_t element_bytes = ElementBytes(matrix.element_type());
  if (element_bytes == 0) {
    return InvalidMatrix(field, "element_type: a matrix is FLOAT32, FLOAT64 or BFLOAT16");
  }
  if (data.empty() && count > 0) {
    return InvalidMatrix(field, absl::StrCat("neither data nor values is set, but it is ",
                                             matrix.rows(), " x ", matrix.cols()));
  }
  // Compared by division, since count * element_bytes may not fit.
  if (data.size() % element_bytes != 0 || data.size() / element_bytes != count) {
    return InvalidMatrix(
        field, absl::StrCat("data has ", data.size(), " bytes, but ", matrix.rows(), " x ",
                            matrix.cols(), " elements of ", element_bytes, " bytes are needed"));
  }
  if (element_bytes == 4) {
    if (reinterpret_cast<std::uintptr_t>(data.data()) % alignof(float) == 0) {
      decoded.in_message_ = reinterpret_cast<const float*>(data.data());
    } else {
      decoded.converted_.resize(count);
      std::memcpy(decoded.converted_.data(), data.data(), data.size());
    }
    return decoded;
  }
  decoded.converted_.resize(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (element_bytes == 2) {
      decoded.converted_[i] =
          std::bit_cast<float>(static_cast<std::uint32_t>(ElementAt<std::uint16_t>(data, i)) << 16);
      continue;
    }
    const double element = ElementAt<double>(data, i);
    decoded.converted_[i] = static_cast<float>(element);
    if (std::isfinite(element) && !std::isfinite(decoded.converted_[i])) {
      return MakeError(
          reasons::kNonFiniteValue,
          absl::StrCat(field, ": row ", i / matrix.cols(), ", column ", i % matrix.cols(), " is ",
                       element, ", beyond the range of float32"),
          {{"field", field},
           {"row", absl::StrCat(i / matrix.cols())},
           {"column", absl::StrCat(i % matrix.cols())}});
    }
  }
  return decoded;
}

absl::StatusOr<StoreConfig> DecodeStore(const v1::Store& store) {
  StoreConfig config{.name = store.name(),
                     .key_dim = store.key_dim(),
                     .value_dim = store.value_dim(),
                     .num_heads = store.num_heads() == 0 ? 1 : store.num_heads()};
  SOFTLOOKUP_ASSIGN_OR_RETURN(const Score score,
                              DecodeEnum("store.score", store.score(), Score::kSquaredEuclidean));
  if (score != Score::kUnspecified) config.score = score;
  if (store.storage_type() != v1::ELEMENT_TYPE_UNSPECIFIED) {
    if (store.storage_type() < 0 || store.storage_type() > 255) {
      return InvalidOption("store.storage_type",
                           absl::StrCat("there is no value ", store.storage_type()));
    }
    // Whether rows can be kept so is checked with the rest.
    config.storage_type = static_cast<StorageType>(store.storage_type());
  }
  if (store.has_temperature()) config.temperature = store.temperature();
  for (int i = 0; i < store.memories_size(); ++i) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        config.memories.emplace_back(),
        DecodeMemorySpec(absl::StrCat("store.memories[", i, "]"), store.memories(i)));
  }
  if (store.has_projection()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(config.projection,
                                DecodeProjection("store.projection", store.projection()));
  }
  config.labels.insert(store.labels().begin(), store.labels().end());
  return config;
}

absl::StatusOr<StoreUpdate> DecodeUpdate(const v1::UpdateStoreRequest& request) {
  if (request.update_mask().paths_size() == 0) {
    return InvalidOption("update_mask",
                         "names no field; name score, temperature, labels or projection");
  }
  const v1::Store& store = request.store();
  StoreUpdate update;
  for (const std::string& path : request.update_mask().paths()) {
    if (path == "score") {
      SOFTLOOKUP_ASSIGN_OR_RETURN(
          update.score, DecodeEnum("store.score", store.score(), Score::kSquaredEuclidean));
    } else if (path == "temperature") {
      update.temperature = store.has_temperature() ? store.temperature() : 1;
    } else if (path == "labels") {
      update.labels.emplace(store.labels().begin(), store.labels().end());
    } else if (path == "projection") {
      update.projection.emplace();
      if (store.has_projection()) {
        SOFTLOOKUP_ASSIGN_OR_RETURN(*update.projection,
                                    DecodeProjection("store.projection", store.projection()));
      }
    } else {
      return InvalidOption("update_mask", absl::StrCat("\"", path,
                                                       "\" cannot change; score, temperature, "
                                                       "labels and projection can"));
    }
  }
  return update;
}

v1::Store EncodeStore(const StoreInfo& info) {
  v1::Store store;
  const StoreConfig& config = info.config;
  store.set_name(config.name);
  store.set_key_dim(static_cast<std::uint32_t>(config.key_dim));
  store.set_value_dim(static_cast<std::uint32_t>(config.value_dim));
  store.set_num_heads(static_cast<std::uint32_t>(config.num_heads));
  store.set_score(static_cast<v1::Score>(config.score));
  store.set_temperature(config.temperature);
  store.set_storage_type(static_cast<v1::ElementType>(config.storage_type));
  for (const MemorySpec& spec : config.memories) {
    v1::MemorySpec* message = store.add_memories();
    message->set_name(spec.name);
    message->set_kind(static_cast<v1::MemoryKind>(spec.kind));
    message->set_decay(spec.decay);
    if (!spec.gate.empty()) {
      SetFloat32(spec.gate, 1, static_cast<std::int64_t>(spec.gate.size()), false,
                 *message->mutable_gate());
    }
  }
  if (config.projection != nullptr) {
    EncodeProjection(*config.projection, *store.mutable_projection());
  }
  store.mutable_labels()->insert(config.labels.begin(), config.labels.end());
  store.set_revision(info.revision);
  store.set_row_count(info.row_count);
  store.set_live_row_count(info.live_row_count);
  store.set_byte_size(info.byte_size);
  const absl::Duration since_epoch = info.create_time - absl::UnixEpoch();
  store.mutable_create_time()->set_seconds(absl::ToInt64Seconds(since_epoch));
  store.mutable_create_time()->set_nanos(
      static_cast<std::int32_t>(absl::ToInt64Nanoseconds(since_epoch % absl::Seconds(1))));
  return store;
}

absl::StatusOr<RowFilter> DecodeFilter(const v1::RowFilter& filter) {
  RowFilter decoded;
  if (filter.has_begin()) decoded.begin = filter.begin();
  if (filter.has_end()) decoded.end = filter.end();
  if (filter.has_last()) decoded.last = filter.last();
  decoded.any_labels.assign(filter.any_labels().begin(), filter.any_labels().end());
  decoded.no_labels.assign(filter.no_labels().begin(), filter.no_labels().end());
  decoded.ids.assign(filter.ids().begin(), filter.ids().end());
  decoded.exclude_ids.assign(filter.exclude_ids().begin(), filter.exclude_ids().end());
  return decoded;
}

absl::StatusOr<RowFields> DecodeReadMask(const google::protobuf::FieldMask& mask) {
  if (mask.paths_size() == 0) return RowFields();
  RowFields fields{false, false, false, false, false};
  for (const std::string& path : mask.paths()) {
    bool* const field = path == "position" ? &fields.position
                        : path == "id"     ? &fields.id
                        : path == "labels" ? &fields.labels
                        : path == "key"    ? &fields.key
                        : path == "value"  ? &fields.value
                                           : nullptr;
    if (field == nullptr) {
      return InvalidOption("read_mask", absl::StrCat("a row has no field \"", path,
                                                     "\"; it has position, id, labels, key and "
                                                     "value"));
    }
    *field = true;
  }
  return fields;
}

void EncodeRow(const Row& row, const RowFields& fields, v1::Row& message) {
  if (fields.position) message.set_position(row.position);
  if (fields.id && row.id) message.set_id(*row.id);
  if (fields.labels) message.mutable_labels()->Add(row.labels.begin(), row.labels.end());
  const auto encode = [](const std::vector<float>& components, v1::Matrix& matrix) {
    SetFloat32(components, 1, static_cast<std::int64_t>(components.size()), /*as_numbers=*/false,
               matrix);
  };
  if (fields.key) encode(row.key, *message.mutable_key());
  if (fields.value) encode(row.value, *message.mutable_value());
}

absl::Status DecodeAppend(const v1::AppendRequest& request, const std::string& store,
                          DecodedAppend& decoded) {
  SOFTLOOKUP_RETURN_IF_ERROR(
      DecodeEnum("acknowledge", request.acknowledge(), v1::ACKNOWLEDGE_APPLIED).status());
  SOFTLOOKUP_RETURN_IF_ERROR(CheckNotBoth(
      request.has_inputs(), request.has_keys() || request.has_values(), "keys or values"));
  AppendRequest& append = decoded.request;
  append.store = request.store().empty() ? store : request.store();
  if (request.has_inputs()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.inputs, DecodeMatrix("inputs", request.inputs()));
    append.inputs = decoded.inputs.view();
  } else {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.keys, DecodeMatrix("keys", request.keys()));
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.values, DecodeMatrix("values", request.values()));
    append.keys = decoded.keys.view();
    append.values = decoded.values.view();
  }
  append.ids = absl::MakeConstSpan(request.ids().data(), request.ids_size());
  SOFTLOOKUP_ASSIGN_OR_RETURN(append.on_conflict,
                              DecodeEnum("on_conflict", request.on_conflict(), OnConflict::kSkip));
  for (const v1::RowLabels& labels : request.row_labels()) {
    decoded.row_labels.emplace_back(labels.labels().begin(), labels.labels().end());
  }
  append.row_labels = decoded.row_labels;
  append.writer = request.writer();
  append.sequence = request.sequence();
  append.durable = request.acknowledge() != v1::ACKNOWLEDGE_APPLIED;
  append.return_memories.assign(request.return_memories().begin(), request.return_memories().end());
  return absl::OkStatus();
}

void EncodeAppend(std::uint64_t sequence, const AppendResult& result,
                  v1::AppendResponse& response) {
  response.set_first_position(result.first_position);
  response.set_appended_count(static_cast<std::uint32_t>(result.appended_count));
  response.set_row_count(result.row_count);
  response.set_revision(result.revision);
  response.set_sequence(sequence);
  response.set_duplicate(result.duplicate);
  for (const MemoryState& memory : result.memories) {
    EncodeMemory(memory, *response.add_memories());
  }
}

absl::Status DecodeLookup(const v1::LookupRequest& request, const std::string& store,
                          DecodedLookup& decoded) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckNotBoth(request.has_inputs(), request.has_queries(), "queries"));
  LookupRequest& lookup = decoded.request;
  lookup.store = request.store().empty() ? store : request.store();
  if (request.has_inputs()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.inputs, DecodeMatrix("inputs", request.inputs()));
    lookup.inputs = decoded.inputs.view();
  } else {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.queries, DecodeMatrix("queries", request.queries()));
    lookup.queries = decoded.queries.view();
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(lookup.options, DecodeOptions(request.options()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(lookup.filter, DecodeFilter(request.filter()));
  SOFTLOOKUP_ASSIGN_OR_RETURN(lookup.source,
                              DecodeEnum("source", request.source(), Source::kRowsAndMemory));
  lookup.memory = request.memory();
  lookup.min_revision = request.min_revision();
  return absl::OkStatus();
}

absl::Status EncodeLookup(const v1::LookupRequest& request, const LookupResult& result,
                          std::int64_t bytes_max, v1::LookupResponse& response) {
  const v1::Matrix& asked = request.has_inputs() ? request.inputs() : request.queries();
  EncodeAnswer(result, asked.values_size() > 0, response);
  response.set_revision(result.revision);
  response.set_row_count(result.row_count);
  response.set_tag(request.tag());
  return CheckAnswerBytes(response, bytes_max);
}

absl::Status DecodeAttend(const v1::AttendRequest& request, DecodedAttend& decoded) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckNotBoth(
      request.has_inputs(),
      request.has_keys() || request.has_values() || (request.self() && request.has_queries()),
      request.self() ? "queries, keys or values" : "keys or values"));
  AttendRequest& attend = decoded.request;
  if (request.has_inputs()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.inputs, DecodeMatrix("inputs", request.inputs()));
    attend.inputs = decoded.inputs.view();
  } else {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.keys, DecodeMatrix("keys", request.keys()));
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.values, DecodeMatrix("values", request.values()));
    attend.keys = decoded.keys.view();
    attend.values = decoded.values.view();
  }
  if (!request.self()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.queries, DecodeMatrix("queries", request.queries()));
    attend.queries = decoded.queries.view();
  }
  if (request.has_projection()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(attend.projection,
                                DecodeProjection("projection", request.projection()));
  }
  attend.self = request.self();
  attend.num_heads = request.num_heads() == 0 ? 1 : request.num_heads();
  SOFTLOOKUP_ASSIGN_OR_RETURN(attend.options, DecodeOptions(request.options()));
  return absl::OkStatus();
}

absl::Status EncodeAttend(const v1::AttendRequest& request, const LookupResult& result,
                          std::int64_t bytes_max, v1::AttendResponse& response) {
  const v1::Matrix& asked = request.self() ? request.inputs() : request.queries();
  EncodeAnswer(result, asked.values_size() > 0, response);
  return CheckAnswerBytes(response, bytes_max);
}

void EncodeMemory(const MemoryState& memory, v1::Memory& message) {
  message.set_name(memory.name);
  SetFloat64Row(memory.memory.key, *message.mutable_key());
  SetFloat64Row(memory.memory.value, *message.mutable_value());
  message.set_begin(memory.begin);
  message.set_end(memory.end);
  message.set_weight(memory.memory.weight);
  message.set_revision(memory.revision);
}

absl::Status CheckMessageBytes(std::int64_t bytes, std::int64_t bytes_max) {
  return CheckBytes(static_cast<std::size_t>(bytes), bytes_max, reasons::kMessageTooLarge,
                    "The message has");
}

absl::Status CheckAnswerBytes(const google::protobuf::MessageLite& answer, std::int64_t bytes_max) {
  return CheckBytes(answer.ByteSizeLong(), bytes_max, reasons::kAnswerTooLarge,
                    "The answer would need");
}

absl::Status CheckStoreBytes(const StoreConfig& config, std::int64_t bytes_max) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  v1::ListStoresResponse list;
  *list.add_stores() =
      EncodeStore({.config = config,
                   .revision = kMax,
                   .row_count = kMax,
                   .live_row_count = kMax,
                   .byte_size = kMax,
                   .create_time = absl::FromUnixNanos(std::numeric_limits<std::int64_t>::max())});
  list.set_next_page_token(config.name);
  return CheckBytes(list.ByteSizeLong(), bytes_max, reasons::kAnswerTooLarge,
                    "store: to tell what it is takes");
}

}  // namespace softlookup::server
