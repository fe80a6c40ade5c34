#include "server/rpc/store_codec.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/matrix_codec.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/status.h"

namespace softlookup::server {
namespace {

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

void EncodeProjection(const Projection& projection, v1::Projection& message) {
  const auto encode = [&](const std::vector<float>& weights, v1::Matrix& matrix) {
    // `input_dim` may be 0 in a config that the engine will refuse later. `weights` is then empty.
    const auto count = static_cast<std::int64_t>(weights.size());
    SetFloat32(weights, count == 0 ? 0 : count / projection.input_dim, projection.input_dim,
               /*as_numbers=*/false, matrix);
  };
  encode(projection.query, *message.mutable_query());
  encode(projection.key, *message.mutable_key());
  encode(projection.value, *message.mutable_value());
}

void EncodeTime(absl::Time time, google::protobuf::Timestamp& message) {
  const absl::Duration since_epoch = time - absl::UnixEpoch();
  message.set_seconds(absl::ToInt64Seconds(since_epoch));
  message.set_nanos(
      static_cast<std::int32_t>(absl::ToInt64Nanoseconds(since_epoch % absl::Seconds(1))));
}

}  // namespace

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

absl::StatusOr<StoreConfig> DecodeStore(const v1::Store& store) {
  StoreConfig config{.name = store.name(),
                     .key_dim = store.key_dim(),
                     .value_dim = store.value_dim(),
                     .num_heads = store.num_heads() == 0 ? 1 : store.num_heads()};
  SOFTLOOKUP_ASSIGN_OR_RETURN(const Score score,
                              DecodeEnum("store.score", store.score(), kScoreMax));
  if (score != Score::kUnspecified) config.score = score;
  if (store.storage_type() != v1::ELEMENT_TYPE_UNSPECIFIED) {
    if (store.storage_type() < 0 || store.storage_type() > 255) {
      return InvalidOption("store.storage_type",
                           absl::StrCat("there is no value ", store.storage_type()));
    }
    // A StorageType has one byte. The engine checks whether rows can be kept in this type.
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
      SOFTLOOKUP_ASSIGN_OR_RETURN(update.score,
                                  DecodeEnum("store.score", store.score(), kScoreMax));
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
  store.set_damage(WireText(info.damage));
  // The configuration could not be read, so all other fields are unknown.
  if (!info.damage.empty() && config.key_dim == 0) return store;
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
  EncodeTime(info.create_time, *store.mutable_create_time());
  return store;
}

void LeaveNumbersOut(v1::Store& store) {
  for (v1::MemorySpec& memory : *store.mutable_memories()) {
    if (memory.has_gate()) memory.mutable_gate()->clear_data();
  }
  if (!store.has_projection()) return;
  v1::Projection& projection = *store.mutable_projection();
  for (v1::Matrix* matrix :
       {projection.mutable_query(), projection.mutable_key(), projection.mutable_value()}) {
    matrix->clear_data();
  }
}

void EncodeCompaction(const CompactionResult& compaction, v1::CompactStoreResponse& response) {
  *response.mutable_store() = EncodeStore(compaction.store);
  LeaveNumbersOut(*response.mutable_store());
  response.set_dropped_rows(compaction.dropped_rows);
  response.set_compacted_blocks(compaction.block_count);
}

void EncodeStoreRenamed(const StoreRenamed& renamed, v1::RenameStoreResponse& response) {
  *response.mutable_store() = EncodeStore(renamed.store);
  LeaveNumbersOut(*response.mutable_store());
  if (!renamed.replaced) return;
  v1::ReplacedStore& replaced = *response.mutable_replaced();
  replaced.set_revision(renamed.replaced->revision);
  replaced.set_row_count(renamed.replaced->row_count);
  replaced.set_live_row_count(renamed.replaced->live_row_count);
  EncodeTime(renamed.replaced->create_time, *replaced.mutable_create_time());
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
