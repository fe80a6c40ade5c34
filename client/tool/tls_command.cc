#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/tool/certificate_authority.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/whole_file.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::Json;
using output::PrintJson;

struct InitFlags {
  std::string directory;
  std::vector<std::string> hosts;
  bool if_missing = false;
};

constexpr std::array<const char*, 3> kPairs = {"ca", "server", "client"};

constexpr char kOtherCertificate[] =
    "the authority there can make another certificate: docs/security.md, Change a certificate";

std::string CertificatePath(const std::string& directory, const char* pair) {
  return absl::StrCat(directory, "/", pair, ".pem");
}

std::string KeyPath(const std::string& directory, const char* pair) {
  return absl::StrCat(directory, "/", pair, "-key.pem");
}

struct NewFile {
  std::string path;
  std::string bytes;
  mode_t mode;
};

absl::StatusOr<std::vector<NewFile>> MakeFiles(const InitFlags& flags) {
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  hosts.insert(hosts.end(), flags.hosts.begin(), flags.hosts.end());
  CLIENT_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::Create());
  CLIENT_ASSIGN_OR_RETURN(const PemPair server, authority.IssueServer(hosts));
  CLIENT_ASSIGN_OR_RETURN(const PemPair client, authority.IssueClient("client"));
  const std::array<const PemPair*, kPairs.size()> pairs = {&authority.pem(), &server, &client};
  std::vector<NewFile> files;
  for (std::size_t i = 0; i < kPairs.size(); ++i) {
    files.push_back(
        {CertificatePath(flags.directory, kPairs[i]), pairs[i]->certificate, kReadableByAll});
    files.push_back({KeyPath(flags.directory, kPairs[i]), pairs[i]->key, kOwnerOnly});
  }
  return files;
}

// Whether all files exist, which --if-missing asks. InputError if only some exist, because a new
// authority would not fit the existing files.
absl::StatusOr<bool> AllPresent(const InitFlags& flags) {
  std::vector<std::string> missing;
  for (const char* pair : kPairs) {
    for (const std::string& path :
         {CertificatePath(flags.directory, pair), KeyPath(flags.directory, pair)}) {
      struct stat ignored;
      if (stat(path.c_str(), &ignored) != 0) missing.push_back(path);
    }
  }
  if (!missing.empty() && missing.size() < 2 * kPairs.size()) {
    return InputError(
        flags.directory,
        absl::StrCat("has only some of its files; missing: ", absl::StrJoin(missing, ", "),
                     "; nothing was changed. Restore these, or remove the others"));
  }
  return missing.empty();
}

// AlreadyExists if one of the files exists. The check comes before the first file is written, so
// that a refusal leaves no files behind.
absl::Status CheckAbsent(const std::vector<NewFile>& files) {
  for (const NewFile& file : files) {
    struct stat ignored;
    if (lstat(file.path.c_str(), &ignored) == 0) {
      return absl::AlreadyExistsError(
          absl::StrCat(file.path, " exists and is not overwritten; ", kOtherCertificate,
                       "; another directory gets a new authority, which clients of this one do "
                       "not trust; --if-missing changes nothing"));
    }
  }
  return absl::OkStatus();
}

// Writes all files. On failure, removes the files that it wrote, so that CheckAbsent() does not
// refuse the next run.
absl::Status CreateFiles(const std::vector<NewFile>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    absl::Status created = CreateFile(files[i].path, files[i].bytes, files[i].mode);
    if (created.ok()) continue;
    for (std::size_t made = 0; made < i; ++made) unlink(files[made].path.c_str());
    return created;
  }
  return absl::OkStatus();
}

void PrintMade(const InitFlags& flags, const std::vector<NewFile>& files, const Session& session) {
  if (session.json) {
    Json paths = Json::array();
    for (const NewFile& file : files) paths.push_back(file.path);
    return PrintJson({{"directory", flags.directory}, {"files", std::move(paths)}}, session.out);
  }
  for (const NewFile& file : files) *session.out << "made " << TerminalText(file.path) << "\n";
  const std::string directory = TerminalText(flags.directory);
  *session.out << absl::StrCat(
      "\nServe with TLS, for clients with a certificate of this authority:\n"
      "  softlookup-server --tls-certificate ",
      directory, "/server.pem --tls-key ", directory, "/server-key.pem --tls-client-ca ", directory,
      "/ca.pem\n"
      "Ask:\n"
      "  softlookup --tls-ca ",
      directory, "/ca.pem --tls-certificate ", directory, "/client.pem --tls-key ", directory,
      "/client-key.pem health\n"
      "Keep ca-key.pem away from both: it can issue certificates for anyone.\n");
}

// The hosts of --host that the server's certificate in the directory does not name. Empty if that
// certificate cannot be read.
std::vector<std::string> UnnamedHosts(const InitFlags& flags) {
  std::string pem;
  const absl::Status read =
      ReadFile(CertificatePath(flags.directory, "server"),
               [&](std::string_view part) { pem.append(part.data(), part.size()); });
  std::vector<std::string> unnamed;
  if (!read.ok()) return unnamed;
  for (const std::string& host : flags.hosts) {
    if (!NamesHost(pem, host)) unnamed.push_back(host);
  }
  return unnamed;
}

absl::Status ReportPresent(const InitFlags& flags, const Session& session) {
  if (session.json) {
    PrintJson({{"directory", flags.directory}, {"files", Json::array()}}, session.out);
  }
  *session.err << TerminalText(flags.directory)
               << " has all of its files already; nothing was changed\n";
  const std::vector<std::string> unnamed = UnnamedHosts(flags);
  if (!unnamed.empty()) {
    *session.err << "softlookup: " << TerminalText(CertificatePath(flags.directory, "server"))
                 << " does not name " << absl::StrJoin(unnamed, ", ") << "; " << kOtherCertificate
                 << "\n";
  }
  return absl::OkStatus();
}

absl::Status Init(const InitFlags& flags, const Session& session) {
  for (const std::string& host : flags.hosts) {
    if (!IsHost(host)) {
      return UsageError(
          absl::StrCat("--host takes a DNS name or an IP address, not \"", host, "\""));
    }
  }
  if (flags.if_missing) {
    CLIENT_ASSIGN_OR_RETURN(const bool all_present, AllPresent(flags));
    if (all_present) return ReportPresent(flags, session);
  }
  CLIENT_ASSIGN_OR_RETURN(const std::vector<NewFile> files, MakeFiles(flags));
  CLIENT_RETURN_IF_ERROR(EnsureDirectory(flags.directory));
  CLIENT_RETURN_IF_ERROR(CheckAbsent(files));
  CLIENT_RETURN_IF_ERROR(CreateFiles(files));
  PrintMade(flags, files, session);
  return absl::OkStatus();
}

}  // namespace

void AddTlsCommands(CLI::App* app, Session* session) {
  CLI::App* tls = app->add_subcommand("tls", "Make certificates for a first try of TLS");
  tls->require_subcommand(1);

  auto flags = std::make_shared<InitFlags>();
  CLI::App* init = tls->add_subcommand(
      "init", "Make an authority, a server's pair and a client's pair; needs no server");
  init->footer(absl::StrCat(
      "Writes ca.pem, server.pem, client.pem, and for each a -key.pem that only its owner may\n"
      "read. No file is overwritten. The server's certificate names localhost, 127.0.0.1, ::1\n"
      "and every --host. The client's names \"client\". Both are valid for ",
      kLeafDays,
      " days, the\nauthority for ten years.\n"
      "--if-missing changes nothing if all six files exist, and fails if only some do. It then\n"
      "says which --host the server's certificate there does not name.\n"
      "Each run makes a new authority. Another certificate of an authority that clients trust is\n"
      "made as docs/security.md says, under Change a certificate."));
  init->add_option("DIR", flags->directory,
                   "Directory for the files; made with mode 0700 if it is missing")
      ->required();
  init->add_option("--host", flags->hosts,
                   "Another DNS name or IP address for the server's certificate; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  init->add_flag(
      "--if-missing", flags->if_missing,
      "If all six files exist, change nothing and succeed; without this flag, that is an error");
  init->callback([=] { session->run = [=] { return Init(*flags, *session); }; });
}

}  // namespace softlookup::tool
