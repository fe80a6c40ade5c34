#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/append_rows.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/interrupt.h"
#include "client/tool/memory_flags.h"
#include "client/tool/pair_reader.h"
#include "client/tool/row_reader.h"
#include "client/tool/row_tags.h"
#include "client/tool/store_flags.h"
#include "client/tool/whole_store.h"

namespace softlookup::tool {
namespace {

struct ImportFlags {
  std::string store;
  PairInput input;
  StoreFlags settings;
  AppendFlags append;
  bool into_rows = false;
};

absl::Status CheckFiles(const ImportFlags& flags) {
  if ((flags.input.keys == "-") + (flags.input.values == "-") + (flags.append.ids == "-") +
          (flags.append.labels == "-") >
      1) {
    return UsageError("only one file can be standard input");
  }
  return absl::OkStatus();
}

absl::Status CheckExisting(const ImportFlags& flags, const v1::Store& store, Client* client) {
  const std::string& writer = flags.append.writer;
  absl::Status writer_status = absl::NotFoundError("");  // OK: the writer appended before.
  if (!writer.empty()) writer_status = client->GetWriter(store.name(), writer).status();
  if (!writer_status.ok() && !absl::IsNotFound(writer_status)) return writer_status;
  if (store.row_count() > 0 && !flags.into_rows && !writer_status.ok()) {
    return UsageError(absl::StrCat(store.name(), " has ", output::Counted(store.row_count(), "row"),
                                   " already; --append adds to them"));
  }
  // With a writer, the user may repeat the settings, because an earlier run may have made the store
  // with them.
  if (!writer.empty()) return CheckHasSettings(flags.settings, store);
  if (flags.settings.any()) {
    return UsageError(absl::StrCat(store.name(),
                                   " exists, so import makes no store and takes no settings of "
                                   "one, such as --score; `softlookup store update` changes them"));
  }
  return absl::OkStatus();
}

// Makes the store on the server, with the dimensions of the matrices in `first`.
absl::StatusOr<v1::Store> Create(const ImportFlags& flags, const v1::AppendRequest& first,
                                 Client* client) {
  v1::Store store;
  store.set_name(flags.store);
  store.set_key_dim(first.keys().cols());
  store.set_value_dim(first.values().cols());
  for (const auto& [path, dim] : {std::pair(&flags.input.keys, store.key_dim()),
                                  std::pair(&flags.input.values, store.value_dim())}) {
    if (dim == 0) return InputError(*path, "has no row to take the store's dimensions from");
  }
  CLIENT_RETURN_IF_ERROR(SetStore(flags.settings, &store));
  return client->CreateStore(store);
}

// Appends the rows of `second` to those of `first`.
v1::Matrix Join(v1::Matrix first, const v1::Matrix& second) {
  first.set_rows(first.rows() + second.rows());
  first.mutable_data()->append(second.data());
  return first;
}

// Puts the row of `first`, which was read from `rows`, back in front. Then `rows` has the same
// batches as if no row had been read.
void Unread(v1::AppendRequest first, RowBatches* rows) {
  rows->read = [first = std::optional(std::move(first)), rest = std::move(rows->read)](
                   std::uint32_t rows_max,
                   v1::AppendRequest* request) mutable -> absl::StatusOr<std::uint32_t> {
    if (!first.has_value()) return rest(rows_max, request);
    std::uint32_t count = 0;
    if (rows_max > 1) {
      CLIENT_ASSIGN_OR_RETURN(count, rest(rows_max - 1, request));
    }
    const v1::AppendRequest row = *std::exchange(first, std::nullopt);
    *request->mutable_keys() = Join(row.keys(), request->keys());
    *request->mutable_values() = Join(row.values(), request->values());
    return count + 1;
  };
}

// Deletes the store that import made but could not fill, so that the user can run import again.
// Returns `error` with a note on whether the deletion worked, and on how to get past an error that
// ends by itself.
absl::Status Undo(const absl::Status& error, const std::string& store, Client* client) {
  absl::Status undone = Annotate(
      error, client->DeleteStore(store).ok()
                 ? absl::StrCat(store, ", which import had made, is deleted again")
                 : absl::StrCat(store,
                                ", which import had made, may still be there: delete it, or append "
                                "the rest with --append --skip-rows N, N being row_count of "
                                "`softlookup store get`"));
  if (!WriterWaits(error)) return undone;
  return Annotate(
      undone,
      "with --writer NAME, import keeps the store, and waits until the server takes rows again");
}

absl::Status Import(const ImportFlags& flags, const Session& session) {
  CLIENT_RETURN_IF_ERROR(CheckFiles(flags));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  const absl::StatusOr<v1::Store> existing = GetWholeStore(flags.store, &client);
  v1::Store store;
  if (existing.ok()) {
    CLIENT_RETURN_IF_ERROR(CheckExisting(flags, *existing, &client));
    store = *existing;
  } else if (!absl::IsNotFound(existing.status())) {
    return existing.status();
  }
  const InterruptGuard interrupt(InterruptGuard::Reads::kFail);
  CLIENT_ASSIGN_OR_RETURN(auto pairs, OpenPairs(flags.input, store, session.err));
  RowBatches rows = PairBatches(std::move(pairs), store);
  CLIENT_ASSIGN_OR_RETURN(RowTags tags, OpenTags(flags.append, rows));
  if (!existing.ok()) {
    v1::AppendRequest first;
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, rows.read(1, &first));
    CLIENT_ASSIGN_OR_RETURN(store, Create(flags, first, &client));
    rows.row_dim = std::uint64_t{store.key_dim()} + store.value_dim();
    if (count > 0) Unread(std::move(first), &rows);
  }
  // With a writer the store stays, because the same command can resume.
  const bool stays = existing.ok() || !flags.append.writer.empty();
  const char* const resume_flags = !stays            ? ""
                                   : flags.into_rows ? "--skip-rows"
                                                     : "--append --skip-rows";
  absl::StatusOr<AppendReport> report = AppendRows(rows, std::move(tags), flags.append, store,
                                                   &client, session, interrupt, resume_flags);
  if (!report.ok() && !stays) {
    return Undo(report.status(), store.name(), &client);
  }
  CLIENT_RETURN_IF_ERROR(report.status());
  report->created = !existing.ok();
  PrintAppend(*report, flags.append, store, session);
  return absl::OkStatus();
}

}  // namespace

void AddImportCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app->add_subcommand(
      "import",
      "Make a store and fill it from files, such as those of export, or append to a store");
  command->footer(absl::StrCat(
      "FILE is as `append --help` says. If the store does not exist, import makes it. The files\n"
      "determine its dimensions, the options its other settings. If not all rows can be appended,\n"
      "import deletes the new store again, even after Ctrl-C. If the store exists, options of the\n"
      "groups Store and Projection are refused; with --writer, they must agree with the store.\n\n"
      "With --writer NAME, a partly filled store is kept. If the same command is run again, it\n"
      "appends the missing rows; see `append --help`.\n\n",
      kMemoryHelp));
  command->add_option("STORE", flags->store, "Name of the store")->required();
  command->add_option("--keys", flags->input.keys, "File of keys, one per row")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--values", flags->input.values,
                   "File of values, one per row; row i belongs to key i")
      ->type_name("FILE")
      ->required();
  AddAppendFlags(command, &flags->append);
  command
      ->add_option(
          "--format", flags->input.format,
          "Format of standard input (-); the format of a named file follows from its ending")
      ->check(CLI::IsMember(RowFormats()))
      ->capture_default_str();
  command->add_flag("--append", flags->into_rows,
                    "Allow a store that has rows already; not needed if --writer appended to it "
                    "before");
  AddStoreFlags(command, &flags->settings);
  command->callback([=] { session->run = [=] { return Import(*flags, *session); }; });
}

}  // namespace softlookup::tool
