#include "client/tool/store_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/output/vocabulary.h"
#include "client/tool/exit_code.h"
#include "client/tool/memory_flags.h"
#include "client/tool/validators.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {
namespace {

using output::FromWord;
using output::Words;

// Whether both matrices have the same shape and numbers. Their element types may differ.
bool SameMatrix(const v1::Matrix& one, const v1::Matrix& other) {
  const auto a = FloatMatrix::FromProto(one), b = FloatMatrix::FromProto(other);
  return a.ok() && b.ok() && a->rows == b->rows && a->cols == b->cols && a->data == b->data;
}

bool SameProjection(const v1::Projection& one, const v1::Projection& other) {
  return SameMatrix(one.query(), other.query()) && SameMatrix(one.key(), other.key()) &&
         SameMatrix(one.value(), other.value());
}

bool HasLabels(const v1::Store& store, const v1::Store& wanted) {
  return std::all_of(wanted.labels().begin(), wanted.labels().end(), [&](const auto& label) {
    const auto found = store.labels().find(label.first);
    return found != store.labels().end() && found->second == label.second;
  });
}

bool SameMemories(const v1::Store& one, const v1::Store& other) {
  return std::equal(one.memories().begin(), one.memories().end(), other.memories().begin(),
                    other.memories().end(), [](const auto& a, const auto& b) {
                      return a.name() == b.name() && a.kind() == b.kind() &&
                             a.decay() == b.decay() && SameMatrix(a.gate(), b.gate());
                    });
}

}  // namespace

bool StoreFlags::any() const {
  return !UpdateMask(*this).empty() || heads > 0 || !storage.empty() || !memories.empty();
}

void AddStoreUpdateFlags(CLI::App* command, StoreFlags* flags) {
  command->option_defaults()->group("Store");
  command
      ->add_option("--score", flags->score,
                   "Score of lookups that name none: how alike query and key are (scaled-dot until "
                   "it is set)")
      ->check(CLI::IsMember(Words<v1::Score>()));
  command->add_option(
      "--temperature", flags->temperature,
      "Temperature of lookups that name none: logits are score / temperature (1 until it is set)");
  command->add_option("--label", flags->labels, "A label of the store; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->option_defaults()->group("Options");
  AddProjectionFlags(command, &flags->projection);
}

void AddStoreFlags(CLI::App* command, StoreFlags* flags) {
  command->option_defaults()->group("Store");
  command
      ->add_option(
          "--heads", flags->heads,
          "Number of heads, equal parts of queries, keys and values; must divide both dimensions "
          "(default 1)")
      ->check(Positive());
  command
      ->add_option(
          "--storage", flags->storage,
          "Number type in which rows are kept; bfloat16 and int8 round them (default float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
  AddMemoryFlag(command, &flags->memories);
  AddStoreUpdateFlags(command, flags);
}

absl::Status SetStore(const StoreFlags& flags, v1::Store* store) {
  store->set_score(FromWord<v1::Score>(flags.score));
  if (flags.temperature.has_value()) store->set_temperature(*flags.temperature);
  for (const std::string& label : flags.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return UsageError(absl::StrCat("--label takes KEY=VALUE, not \"", label, "\""));
    }
    (*store->mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (flags.projection.any()) {
    CLIENT_ASSIGN_OR_RETURN(*store->mutable_projection(), ReadProjection(flags.projection, *store));
  }
  store->set_num_heads(flags.heads);
  store->set_storage_type(FromWord<v1::ElementType>(flags.storage));
  for (const std::string& memory : flags.memories) {
    CLIENT_ASSIGN_OR_RETURN(*store->add_memories(), ParseMemory(memory, store->key_dim()));
  }
  return absl::OkStatus();
}

absl::Status CheckHasSettings(const StoreFlags& flags, const v1::Store& store) {
  v1::Store wanted;
  wanted.set_key_dim(store.key_dim());
  wanted.set_value_dim(store.value_dim());
  CLIENT_RETURN_IF_ERROR(SetStore(flags, &wanted));
  const std::pair<const char*, bool> same[] = {
      {"--score", flags.score.empty() || wanted.score() == store.score()},
      {"--temperature",
       !flags.temperature.has_value() || wanted.temperature() == store.temperature()},
      {"--label", HasLabels(store, wanted)},
      {"--projection-*",
       !flags.projection.any() || SameProjection(wanted.projection(), store.projection())},
      {"--heads", flags.heads == 0 || wanted.num_heads() == store.num_heads()},
      {"--storage", flags.storage.empty() || wanted.storage_type() == store.storage_type()},
      {"--memory", flags.memories.empty() || SameMemories(wanted, store)}};
  for (const auto& [flag, is_same] : same) {
    if (is_same) continue;
    return UsageError(
        absl::StrCat(store.name(), " exists with another ", flag, "; leave it out to go on"));
  }
  return absl::OkStatus();
}

std::vector<std::string> UpdateMask(const StoreFlags& flags) {
  std::vector<std::string> mask;
  if (!flags.score.empty()) mask.push_back("score");
  if (flags.temperature.has_value()) mask.push_back("temperature");
  if (!flags.labels.empty()) mask.push_back("labels");
  if (flags.projection.any()) mask.push_back("projection");
  return mask;
}

}  // namespace softlookup::tool
