#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/lib/status_macros.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/json.h"
#include "client/tool/store_printer.h"
#include "client/tool/vocabulary.h"

namespace softlookup::tool {
namespace {

struct StoreFlags {
  std::string name;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  std::uint32_t heads = 1;
  std::string score;
  std::optional<double> temperature;
  std::string storage;
  std::vector<std::string> labels;    // KEY=VALUE.
  std::vector<std::string> memories;  // NAME=KIND[:DECAY].
};

// The fields that both create and update may set.
absl::Status SetCommon(const StoreFlags& flags, v1::Store* store) {
  store->set_name(flags.name);
  store->set_score(FromWord<v1::Score>(flags.score));
  if (flags.temperature.has_value()) store->set_temperature(*flags.temperature);
  for (const std::string& label : flags.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return UsageError("--label takes KEY=VALUE, not \"" + label + "\"");
    }
    (*store->mutable_labels())[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return absl::OkStatus();
}

// The kinds that a line can say: the gated ones take a matrix.
absl::StatusOr<v1::MemorySpec> ParseMemory(const std::string& text) {
  const auto refuse = [&] {
    return UsageError(
        absl::StrCat("--memory takes NAME=average, NAME=decayed-sum:DECAY or "
                     "NAME=decayed-average:DECAY, not \"",
                     text, "\""));
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return refuse();
  const std::vector<std::string> kind = absl::StrSplit(text.substr(equals + 1), ':');
  v1::MemorySpec spec;
  spec.set_name(text.substr(0, equals));
  spec.set_kind(FromWord<v1::MemoryKind>(kind.front()));
  if (spec.kind() == v1::MEMORY_KIND_AVERAGE) {
    if (kind.size() != 1) return refuse();
    return spec;
  }
  double decay;
  if ((spec.kind() != v1::MEMORY_KIND_DECAYED_SUM &&
       spec.kind() != v1::MEMORY_KIND_DECAYED_AVERAGE) ||
      kind.size() != 2 || !absl::SimpleAtod(kind[1], &decay)) {
    return refuse();
  }
  spec.set_decay(decay);
  return spec;
}

absl::Status Create(const StoreFlags& flags, const Session& session) {
  v1::Store store;
  CLIENT_RETURN_IF_ERROR(SetCommon(flags, &store));
  store.set_key_dim(flags.key_dim);
  store.set_value_dim(flags.value_dim);
  store.set_num_heads(flags.heads);
  store.set_storage_type(FromWord<v1::ElementType>(flags.storage));
  for (const std::string& memory : flags.memories) {
    CLIENT_ASSIGN_OR_RETURN(*store.add_memories(), ParseMemory(memory));
  }
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store created, client.CreateStore(store));
  PrintStore(created, session);
  return absl::OkStatus();
}

absl::Status Get(const StoreFlags& flags, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, client.GetStore(flags.name));
  PrintStore(store, session);
  return absl::OkStatus();
}

absl::Status List(const std::string& prefix, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<v1::Store> stores, client.ListStores(prefix));
  PrintStores(stores, session);
  return absl::OkStatus();
}

absl::Status Update(const StoreFlags& flags, const Session& session) {
  v1::Store store;
  CLIENT_RETURN_IF_ERROR(SetCommon(flags, &store));
  std::vector<std::string> update_mask;
  if (!flags.score.empty()) update_mask.push_back("score");
  if (flags.temperature.has_value()) update_mask.push_back("temperature");
  if (!flags.labels.empty()) update_mask.push_back("labels");
  if (update_mask.empty()) return UsageError("update needs --score, --temperature or --label");
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store updated, client.UpdateStore(store, update_mask));
  PrintStore(updated, session);
  return absl::OkStatus();
}

absl::Status Delete(const StoreFlags& flags, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_RETURN_IF_ERROR(client.DeleteStore(flags.name));
  if (session.json) {
    PrintJson({{"deleted", flags.name}}, session.out);
  } else {
    *session.out << "deleted " << flags.name << "\n";
  }
  return absl::OkStatus();
}

void AddName(CLI::App* command, StoreFlags* flags) {
  command->add_option("NAME", flags->name, "Name of the store")->required();
}

void AddCommonFlags(CLI::App* command, StoreFlags* flags) {
  command->add_option("--score", flags->score, "How a query is held against a key")
      ->check(CLI::IsMember(Words<v1::Score>()));
  command->add_option("--temperature", flags->temperature, "Logits are score / temperature");
  command->add_option("--label", flags->labels, "A label of the store; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

}  // namespace

void AddStoreCommands(CLI::App* app, Session* session) {
  CLI::App* store = app->add_subcommand("store", "Make, show, change and delete stores");
  store->require_subcommand(1);

  auto flags = std::make_shared<StoreFlags>();
  CLI::App* create = store->add_subcommand("create", "Make an empty store");
  AddName(create, flags.get());
  create->add_option("--key-dim", flags->key_dim, "Dimension of keys and queries")->required();
  create->add_option("--value-dim", flags->value_dim, "Dimension of values")->required();
  create->add_option("--heads", flags->heads, "Heads that keys and values are split into")
      ->capture_default_str();
  create->add_option("--storage", flags->storage, "How rows are kept (default float32)")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
  create
      ->add_option("--memory", flags->memories,
                   "A running memory beside the average; may be repeated. KIND is average, "
                   "decayed-sum or decayed-average, the latter with DECAY in (0, 1)")
      ->type_name("NAME=KIND[:DECAY]")
      ->allow_extra_args(false);
  AddCommonFlags(create, flags.get());
  create->callback([=] { session->run = [=] { return Create(*flags, *session); }; });

  CLI::App* get = store->add_subcommand("get", "Show a store");
  AddName(get, flags.get());
  get->callback([=] { session->run = [=] { return Get(*flags, *session); }; });

  auto prefix = std::make_shared<std::string>();
  CLI::App* list = store->add_subcommand("list", "List stores by name");
  list->add_option("--prefix", *prefix, "Only those whose name starts with it");
  list->callback([=] { session->run = [=] { return List(*prefix, *session); }; });

  CLI::App* update = store->add_subcommand("update", "Change what lookups default to");
  AddName(update, flags.get());
  AddCommonFlags(update, flags.get());
  update->get_option("--label")->description(
      "A label; together they replace all that the store has");
  update->callback([=] { session->run = [=] { return Update(*flags, *session); }; });

  CLI::App* remove = store->add_subcommand("delete", "Delete a store and its rows");
  AddName(remove, flags.get());
  remove->callback([=] { session->run = [=] { return Delete(*flags, *session); }; });
}

}  // namespace softlookup::tool
