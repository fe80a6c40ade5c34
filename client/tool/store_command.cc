#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/memory_flags.h"
#include "client/tool/store_flags.h"
#include "client/tool/store_printer.h"
#include "client/tool/whole_store.h"
#include "client/tool/word_store.h"
#include "softlookup/error_details.h"

namespace softlookup::tool {
namespace {

struct CreateFlags {
  std::string name;
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;
  bool words = false;
  StoreFlags settings;
};

struct UpdateFlags {
  std::string name;
  StoreFlags settings;
  bool no_projection = false;
};

struct RenameFlags {
  std::string name;
  std::string new_name;
  bool replace = false;
};

struct CompactFlags {
  std::string name;
  bool end_memories = false;
};

absl::Status Create(const CreateFlags& flags, const Session& session) {
  v1::Store store;
  store.set_name(flags.name);
  store.set_key_dim(flags.key_dim);
  store.set_value_dim(flags.value_dim);
  CLIENT_RETURN_IF_ERROR(SetStore(flags.settings, &store));
  if (flags.words) CLIENT_RETURN_IF_ERROR(MarkAsWordStore(&store));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  const absl::StatusOr<v1::Store> created = client.CreateStore(store);
  if (absl::IsAlreadyExists(created.status())) {
    return Annotate(
        created.status(),
        "`softlookup store get` shows it, and `softlookup store update` changes settings");
  }
  CLIENT_RETURN_IF_ERROR(created.status());
  PrintStore(*created, session);
  return absl::OkStatus();
}

absl::Status Get(const std::string& name, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, client.GetStore(name));
  PrintStore(store, session);
  return absl::OkStatus();
}

absl::Status List(const std::string& prefix, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<v1::Store> stores, client.ListStores(prefix));
  PrintStores(stores, session);
  return absl::OkStatus();
}

absl::Status Update(const UpdateFlags& flags, const Session& session) {
  std::vector<std::string> mask = UpdateMask(flags.settings);
  if (flags.no_projection) mask.push_back("projection");  // `store` has none, so this removes it.
  if (mask.empty()) {
    return UsageError(
        "update needs --score, --temperature, --label, the three --projection-... or "
        "--no-projection");
  }
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  v1::Store store;
  store.set_name(flags.name);
  if (flags.settings.projection.any()) {  // SetStore() checks it against the store's dimensions.
    CLIENT_ASSIGN_OR_RETURN(const v1::Store current, GetWholeStore(flags.name, &client));
    store.set_key_dim(current.key_dim());
    store.set_value_dim(current.value_dim());
  }
  CLIENT_RETURN_IF_ERROR(SetStore(flags.settings, &store));
  CLIENT_ASSIGN_OR_RETURN(const v1::Store updated, client.UpdateStore(store, mask));
  PrintStore(updated, session);
  return absl::OkStatus();
}

absl::Status Rename(const RenameFlags& flags, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  const absl::StatusOr<v1::RenameStoreResponse> renamed =
      client.RenameStore(flags.name, flags.new_name, {.replace = flags.replace});
  if (absl::IsAlreadyExists(renamed.status())) {
    return Annotate(renamed.status(), "--replace deletes it in the same step");
  }
  CLIENT_RETURN_IF_ERROR(renamed.status());
  PrintRenamed(flags.name, *renamed, session);
  return absl::OkStatus();
}

absl::Status Compact(const CompactFlags& flags, const Session& session) {
  // No deadline by default: the time grows with the size of the store.
  CallOptions call;
  if (!session.timeout_s.has_value()) call.deadline = absl::InfiniteDuration();
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store before, client.GetStore(flags.name));
  const absl::StatusOr<v1::CompactStoreResponse> compacted =
      client.CompactStore(flags.name, {.end_memories = flags.end_memories}, call);
  CLIENT_RETURN_IF_ERROR(AfterAnAnswer(compacted.status()));
  PrintCompacted(before, *compacted, session);
  return absl::OkStatus();
}

absl::Status Delete(const std::string& name, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_RETURN_IF_ERROR(client.DeleteStore(name));
  if (session.json) {
    output::PrintJson({{"deleted", name}}, session.out);
  } else {
    *session.out << "deleted " << cli::TerminalText(name) << "\n";
  }
  return absl::OkStatus();
}

void AddName(CLI::App* command, std::string* name) {
  command->add_option("NAME", *name, "Name of the store")->required();
}

}  // namespace

void AddStoreCommands(CLI::App* app, Session* session) {
  CLI::App* store = app->add_subcommand("store", "Make, show, change, compact and delete stores");
  store->require_subcommand(1);

  auto create_flags = std::make_shared<CreateFlags>();
  CLI::App* create = store->add_subcommand("create", "Make an empty store");
  AddName(create, &create_flags->name);
  create->add_option("--key-dim", create_flags->key_dim, "Dimension of keys and queries")
      ->required();
  create->add_option("--value-dim", create_flags->value_dim, "Dimension of values")->required();
  create->add_flag(
      "--words", create_flags->words,
      "Mark the store for `append --words`, which makes rows of random vectors, for experiments");
  AddStoreFlags(create, &create_flags->settings);
  create->footer(kMemoryHelp);
  create->callback([=] { session->run = [=] { return Create(*create_flags, *session); }; });

  auto name = std::make_shared<std::string>();
  CLI::App* get = store->add_subcommand("get", "Show the settings and the size of a store");
  AddName(get, name.get());
  get->callback([=] { session->run = [=] { return Get(*name, *session); }; });

  auto prefix = std::make_shared<std::string>();
  CLI::App* list = store->add_subcommand("list", "List stores by name")->alias("ls");
  list->add_option("--prefix", *prefix,
                   "List only stores whose name starts with this (default: all)");
  list->callback([=] { session->run = [=] { return List(*prefix, *session); }; });

  auto update_flags = std::make_shared<UpdateFlags>();
  CLI::App* update = store->add_subcommand(
      "update", "Change a store's default score and temperature, its labels and its projection");
  AddName(update, &update_flags->name);
  AddStoreUpdateFlags(update, &update_flags->settings);
  update->get_option("--label")->description(
      "A label; the labels given replace all labels that the store has; may be repeated");
  CLI::Option* no_projection = update
                                   ->add_flag("--no-projection", update_flags->no_projection,
                                              "Remove the store's projection")
                                   ->group("Projection");
  for (const char* flag : {"--projection-query", "--projection-key", "--projection-value"}) {
    no_projection->excludes(update->get_option(flag));
  }
  update->callback([=] { session->run = [=] { return Update(*update_flags, *session); }; });

  auto rename_flags = std::make_shared<RenameFlags>();
  CLI::App* rename =
      store->add_subcommand("rename", "Rename a store; --replace puts it in the place of another")
          ->alias("mv");
  AddName(rename, &rename_flags->name);
  rename->add_option("NEW_NAME", rename_flags->new_name, "New name of the store")->required();
  rename->add_flag("--replace", rename_flags->replace,
                   "Delete a store that has the new name, in the same step");
  rename->callback([=] { session->run = [=] { return Rename(*rename_flags, *session); }; });

  auto compact_flags = std::make_shared<CompactFlags>();
  CLI::App* compact =
      store->add_subcommand("compact", "Drop a store's deleted rows from RAM and disk, for good");
  AddName(compact, &compact_flags->name);
  compact->add_flag(
      "--end-memories", compact_flags->end_memories,
      "Drop rows although that ends memories as of positions in their blocks; without it, "
      "none are dropped");
  compact->callback([=] { session->run = [=] { return Compact(*compact_flags, *session); }; });

  CLI::App* remove = store->add_subcommand("delete", "Delete a store and its rows")->alias("rm");
  AddName(remove, name.get());
  remove->callback([=] { session->run = [=] { return Delete(*name, *session); }; });
}

}  // namespace softlookup::tool
