#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/backup_files.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/restore.h"
#include "client/tool/store_printer.h"
#include "softlookup/error_details.h"

namespace softlookup::tool {
namespace {

using admin::v1::Backup;
using admin::v1::BackupManifest;
using cli::TerminalText;
using output::Align;
using output::Counted;
using output::Json;
using output::PrintJson;
using output::Table;

constexpr char kSizesOnly[] =
    "note: an older version made this backup, without checksums; only the files' sizes were "
    "checked\n";

struct RestoreFlags {
  std::string backup_directory;
  std::string data_directory;
};

using Names = google::protobuf::RepeatedPtrField<std::string>;

// Returns the names in one text, shortened if there are many.
std::string NamesText(const Names& names) {
  constexpr int kNamesMax = 10;
  const int count = std::min(names.size(), kNamesMax);
  std::string text = absl::StrJoin(names.begin(), names.begin() + count, ", ");
  if (names.size() > count) absl::StrAppend(&text, " and ", names.size() - count, " more");
  return text;
}

// Says on standard error which stores of a backup are damaged, if any are.
void NoteDamagedStores(const Names& names, const Session& session) {
  if (names.empty()) return;
  *session.err << "note: when this backup was made, the server could not load "
               << (names.size() == 1 ? "this store" : "these stores")
               << ", and the backup has the damage: " << TerminalText(NamesText(names))
               << "; an older backup may have " << (names.size() == 1 ? "it" : "them")
               << " whole\n";
}

std::string CreateTime(const Backup& backup) {
  const absl::Time time = absl::FromUnixSeconds(backup.create_time().seconds()) +
                          absl::Nanoseconds(backup.create_time().nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

Json NamesJson(const Names& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(name);
  return list;
}

Json BackupJson(const Backup& backup) {
  return {{"name", backup.name()},
          {"create_time", CreateTime(backup)},
          {"byte_size", backup.byte_size()},
          {"damaged_stores", NamesJson(backup.damaged_stores())}};
}

absl::Status Create(const std::string& name, const Session& session) {
  // No deadline by default: the time grows with the size of the stores.
  CallOptions call;
  if (!session.timeout_s.has_value()) call.deadline = absl::InfiniteDuration();
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const Backup backup, client.CreateBackup(name, call));
  if (!backup.damaged_stores().empty()) {
    *session.err << "warning: the server cannot load "
                 << (backup.damaged_stores_size() == 1 ? "this store" : "these stores")
                 << ", and the backup has the damage: "
                 << TerminalText(NamesText(backup.damaged_stores()))
                 << "; keep an older backup that has "
                 << (backup.damaged_stores_size() == 1 ? "it" : "them") << " whole\n";
  }
  if (session.json) {
    PrintJson(BackupJson(backup), session.out);
  } else {
    *session.out << "made backup " << TerminalText(backup.name()) << " of "
                 << Counted(backup.byte_size(), "byte") << "\n";
  }
  return absl::OkStatus();
}

absl::Status List(const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<Backup> backups, client.ListBackups());
  if (session.json) {
    Json list = Json::array();
    for (const Backup& backup : backups) list.push_back(BackupJson(backup));
    PrintJson({{"backups", std::move(list)}}, session.out);
    return absl::OkStatus();
  }
  const bool shows_damage = std::any_of(backups.begin(), backups.end(), [](const Backup& backup) {
    return !backup.damaged_stores().empty();
  });
  std::vector<Table::Column> columns = {{"name"}, {"created"}, {"size", Align::kRight}};
  if (shows_damage) columns.push_back({"damaged stores"});
  Table table(std::move(columns));
  for (const Backup& backup : backups) {
    std::vector<std::string> cells = {backup.name(), CreateTime(backup),
                                      output::BytesText(backup.byte_size())};
    if (shows_damage) cells.push_back(NamesText(backup.damaged_stores()));
    table.AddRow(std::move(cells));
  }
  session.Print(&table);
  return absl::OkStatus();
}

absl::Status Verify(const std::string& directory, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(const BackupManifest manifest, ReadBackupManifest(directory));
  const int bad_files = CountBadFiles(directory, manifest, [&](const absl::Status& bad) {
    *session.err << TerminalText(std::string(bad.message())) << "\n";
  });
  if (bad_files > 0) {
    return InputError(
        directory,
        absl::StrCat("is damaged: ", bad_files, " of its ", Counted(manifest.files_size(), "file"),
                     bad_files == 1 ? " is not as it was" : " are not as they were", " backed up"));
  }
  if (HasSizesOnly(manifest)) *session.err << kSizesOnly;
  NoteDamagedStores(manifest.damaged_stores(), session);
  if (session.json) {
    PrintJson({{"whole", true},
               {"files", manifest.files_size()},
               {"byte_size", ByteSizeOf(manifest)},
               {"checksums", !HasSizesOnly(manifest)},
               {"damaged_stores", NamesJson(manifest.damaged_stores())}},
              session.out);
  } else {
    *session.out << "whole: " << Counted(manifest.files_size(), "file") << " of "
                 << Counted(ByteSizeOf(manifest), "byte") << "\n";
  }
  return absl::OkStatus();
}

absl::Status Restore(const RestoreFlags& flags, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(const Restored restored,
                          RestoreBackup(flags.backup_directory, flags.data_directory));
  if (restored.sizes_only) *session.err << kSizesOnly;
  NoteDamagedStores(restored.damaged_stores, session);
  if (session.json) {
    PrintJson({{"data_directory", restored.data_directory},
               {"files", restored.files},
               {"byte_size", restored.bytes},
               {"damaged_stores", NamesJson(restored.damaged_stores)}},
              session.out);
  } else {
    *session.out << "restored " << Counted(restored.files, "file") << " of "
                 << Counted(restored.bytes, "byte")
                 << "; serve them with softlookup-server --data-dir "
                 << TerminalText(restored.data_directory) << "\n";
  }
  return absl::OkStatus();
}

absl::Status RestoreStore(const admin::v1::RestoreStoreRequest& request, const Session& session) {
  // No deadline by default: the time grows with the size of the backup.
  CallOptions call;
  if (!session.timeout_s.has_value()) call.deadline = absl::InfiniteDuration();
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  const absl::StatusOr<v1::Store> restored = client.RestoreStore(request, call);
  const std::string reason = ErrorReason(restored.status());
  if (reason == "STORE_EXISTS") {
    return Annotate(restored.status(), "--as gives the restored store another name");
  }
  if (reason == "STORE_NOT_FOUND") {
    // Without its details, the error gets no hint at the server's stores: it is about the backup's.
    return absl::NotFoundError(restored.status().message());
  }
  CLIENT_RETURN_IF_ERROR(restored.status());
  PrintRestored(request.backup(), request.store(), *restored, session);
  return absl::OkStatus();
}

}  // namespace

void AddBackupCommands(CLI::App* app, Session* session) {
  CLI::App* backup = app->add_subcommand("backup", "Make, list, check and restore backups");
  backup->require_subcommand(1);

  auto name = std::make_shared<std::string>();
  CLI::App* create =
      backup->add_subcommand("create", "Have the server make a backup of all stores");
  create->footer(
      "The backup becomes the directory NAME in the server's --backup-dir. Appends and lookups go\n"
      "on meanwhile. Every append acknowledged before the command is in the backup. The command\n"
      "waits until the backup is made, but at most --timeout if that is given. It warns of stores\n"
      "that the server could not load: the backup has them with their damage.");
  create->add_option("NAME", *name,
                     "Name of the backup: 1 to 64 of A-Z a-z 0-9 . _ - (default: the time in UTC)");
  create->callback([=] { session->run = [=] { return Create(*name, *session); }; });

  CLI::App* list = backup->add_subcommand("list", "List the server's backups, oldest first");
  list->callback([=] { session->run = [=] { return List(*session); }; });

  auto verified = std::make_shared<std::string>();
  CLI::App* verify =
      backup->add_subcommand("verify", "Check that a backup is whole; needs no server");
  verify->footer(
      "Reads all files that the manifest of the backup lists, on this machine, and checks their\n"
      "sizes and checksums. Says which stores the server could not load when it made the backup.");
  verify->add_option("BACKUP_DIRECTORY", *verified, "The backup, which is only read")->required();
  verify->callback([=] { session->run = [=] { return Verify(*verified, *session); }; });

  auto request = std::make_shared<admin::v1::RestoreStoreRequest>();
  CLI::App* restore_store = backup->add_subcommand(
      "restore-store", "Have the server take one store from a backup, beside its other stores");
  restore_store->footer(
      "The server checks all files of the backup, loads the store, and copies it to its disk.\n"
      "Other calls go on meanwhile. The store comes back whole: positions, ids, labels, deleted\n"
      "rows, writers, memories, revision. Nobody sees it before it is whole. Ctrl-C ends the\n"
      "work, and leaves nothing behind. The command waits until all is done, but at most\n"
      "--timeout if that is given.");
  restore_store
      ->add_option("BACKUP", *request->mutable_backup(),
                   "Name of the backup, as `backup list` shows it")
      ->required();
  restore_store
      ->add_option("STORE", *request->mutable_store(), "Name that the store had in the backup")
      ->required();
  restore_store->add_option("--as", *request->mutable_name(),
                            "Name that the store gets (default: the name that it had)");
  auto keeps_ranges = std::make_shared<bool>(false);
  restore_store->add_flag(
      "--keep-ranges", *keeps_ranges,
      "The store keeps its ranges, with their nodes, which must be of the group");
  restore_store->callback([=] {
    request->set_keep_ranges(*keeps_ranges);
    session->run = [=] { return RestoreStore(*request, *session); };
  });

  auto flags = std::make_shared<RestoreFlags>();
  CLI::App* restore =
      backup->add_subcommand("restore", "Copy a backup to a new data directory; needs no server");
  restore->footer(
      "Copies files on this machine. To serve the copy afterwards, run\n"
      "  softlookup-server --data-dir DATA_DIRECTORY");
  restore->add_option("BACKUP_DIRECTORY", flags->backup_directory, "The backup, which is only read")
      ->required();
  restore
      ->add_option("DATA_DIRECTORY", flags->data_directory,
                   "Directory to restore to; it must be missing or empty")
      ->required();
  restore->callback([=] { session->run = [=] { return Restore(*flags, *session); }; });
}

}  // namespace softlookup::tool
