#include "server/rpc/codec.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/store_codec.h"

namespace softlookup::server {
namespace {

absl::StatusOr<AttentionOptions> DecodeOptions(const v1::AttentionOptions& options) {
  AttentionOptions decoded;
  SOFTLOOKUP_ASSIGN_OR_RETURN(decoded.score,
                              DecodeEnum("options.score", options.score(), kScoreMax));
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
  if (options.has_max_error()) decoded.max_error = options.max_error();
  return decoded;
}

// INVALID_ARGUMENT if a request has both `inputs` and matrices that would be made from them.
// `other` names these matrices.
absl::Status CheckNotBoth(bool has_inputs, bool has_other, const std::string& other) {
  if (!has_inputs || !has_other) return absl::OkStatus();
  return InvalidMatrix("inputs", absl::StrCat("and ", other, " are both set; set one of them"));
}

// Encodes the fields that the responses of Lookup and Attend share.
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
    message->set_error_bound(stats.error_bound);
    message->set_summed_rows(stats.summed_rows);
  }
  for (const QueryWeights& weights : result.weights) {
    v1::QueryWeights* message = response.add_weights();
    const int count = static_cast<int>(weights.rows.size());
    message->mutable_positions()->Reserve(count);
    message->mutable_weights()->Reserve(count);
    message->mutable_scores()->Reserve(count);
    bool any_id = false, all_ids = true;
    for (const WeightedRow& row : weights.rows) {
      message->add_positions(row.position);
      message->add_weights(row.weight);
      message->add_scores(row.score);
      any_id = any_id || row.id.has_value();
      all_ids = all_ids && row.id.has_value();
    }
    // If any row has an id, `ids` has an element for every row: 0 for a row without an id. If some
    // rows have an id and others have none, `has_ids` says which have one.
    for (const WeightedRow& row : weights.rows) {
      if (any_id) message->add_ids(row.id.value_or(0));
      if (any_id && !all_ids) message->add_has_ids(row.id.has_value());
    }
    message->set_remaining_weight(weights.remaining_weight);
  }
}

}  // namespace

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
  lookup.linearizable = request.linearizable();
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

}  // namespace softlookup::server
