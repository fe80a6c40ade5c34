#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/byte_size.h"
#include "client/cli/nearest_name.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/auth_file.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/token_file.h"
#include "client/tool/whole_file.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::Json;
using output::PrintJson;

namespace fs = std::filesystem;

struct AddFlags {
  std::string file;
  std::string name;
  bool if_missing = false;
  bool no_token = false;
  std::optional<std::string> token_out;
  std::vector<std::string> roles;
  std::vector<std::string> stores;
  std::string certificate_name;
  std::optional<std::uint64_t> requests_per_second;
  std::optional<std::uint64_t> rows_per_second;
  std::optional<std::uint64_t> bytes_in_flight;
  std::optional<std::uint64_t> stores_max;
  std::optional<std::uint64_t> store_bytes;
};

absl::StatusOr<Identity> IdentityOf(const AddFlags& flags) {
  if (flags.roles.size() != flags.stores.size()) {
    return UsageError(absl::StrCat("each --role needs a --stores, but there are ",
                                   flags.roles.size(), " and ", flags.stores.size(),
                                   "; for example --role read --stores 'acme/*'"));
  }
  Identity identity{.name = flags.name, .certificate_name = flags.certificate_name};
  for (std::size_t i = 0; i < flags.roles.size(); ++i) {
    identity.grants.push_back({flags.roles[i], flags.stores[i]});
  }
  const std::pair<const char*, std::optional<std::uint64_t>> limits[] = {
      {"requests_per_second", flags.requests_per_second},
      {"rows_per_second", flags.rows_per_second},
      {"bytes_in_flight", flags.bytes_in_flight},
      {"stores", flags.stores_max},
      {"store_bytes", flags.store_bytes}};
  for (const auto& [name, limit] : limits) {
    if (limit.has_value()) identity.limits.emplace_back(name, *limit);
  }
  const absl::Status valid = ValidateIdentity(identity);
  if (!valid.ok()) return UsageError(std::string(valid.message()));
  return identity;
}

// Puts the file's name in front of the message of `error`. InvalidArgument becomes an InputError.
absl::Status FileError(const std::string& file, const absl::Status& error) {
  if (absl::IsInvalidArgument(error)) return InputError(file, std::string(error.message()));
  return absl::Status(error.code(), absl::StrCat(file, " ", error.message()));
}

// Whether both paths name the same file, which need not exist.
bool SameFile(const std::string& one, const std::string& other) {
  const auto canonical = [](const std::string& path) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error);
    const fs::path resolved = fs::weakly_canonical(absolute, error);
    return error ? absolute : resolved;
  };
  return canonical(one) == canonical(other);
}

// Reports that --if-missing found the identity in the auth file. InputError if the file of
// --token-out does not exist.
absl::Status ReportPresent(const AddFlags& flags, const Session& session) {
  std::error_code error;
  if (flags.token_out.has_value() && !fs::exists(*flags.token_out, error)) {
    if (error) return InputError(*flags.token_out, error.message());
    return InputError(*flags.token_out,
                      absl::StrCat("is missing, and its token cannot be recovered; `softlookup "
                                   "auth remove ",
                                   flags.file, " ", flags.name, "`, then add it again"));
  }
  if (session.json) PrintJson({{"name", flags.name}, {"added", false}}, session.out);
  *session.err << TerminalText(flags.file) << " has an identity " << flags.name
               << " already; nothing was changed\n";
  return absl::OkStatus();
}

// Says of each --stores that ends in "/" that it is one store's name, and no prefix.
void WarnOfSlashes(const AddFlags& flags, const Session& session) {
  for (const std::string& stores : flags.stores) {
    if (stores.back() != '/') continue;
    *session.err << "softlookup: --stores " << stores
                 << " is the one store of that name; --stores '" << stores
                 << "*' are all stores below it\n";
  }
}

// `token` is empty for --no-token.
void ReportAdded(const AddFlags& flags, const std::string& token, const Session& session) {
  if (session.json) {
    Json json = {{"name", flags.name}, {"added", true}};
    if (flags.token_out.has_value()) {
      json["token_file"] = *flags.token_out;
    } else if (!token.empty()) {
      json["token"] = token;
    }
    return PrintJson(json, session.out);
  }
  if (token.empty()) {
    *session.err << "added " << flags.name << " to " << TerminalText(flags.file)
                 << "; it has no token: a client certificate with the name "
                 << TerminalText(flags.certificate_name) << " tells who it is\n";
    return;
  }
  if (!flags.token_out.has_value()) *session.out << token << "\n";
  *session.err << "added " << flags.name << " to " << TerminalText(flags.file) << "; its token is "
               << (flags.token_out.has_value() ? "in " + TerminalText(*flags.token_out)
                                               : "on standard output, once")
               << ": the auth file has its SHA-256 only\n";
}

absl::Status Add(const AddFlags& flags, const Session& session) {
  if (flags.token_out.has_value() && SameFile(*flags.token_out, flags.file)) {
    return UsageError("--token-out and the auth file must be two files");
  }
  if (flags.no_token && flags.certificate_name.empty()) {
    return UsageError("--no-token needs --certificate-name, or nothing would tell who it is");
  }
  CLIENT_ASSIGN_OR_RETURN(Identity identity, IdentityOf(flags));
  std::string token;
  if (!flags.no_token) {
    CLIENT_ASSIGN_OR_RETURN(token, NewToken());
    CLIENT_ASSIGN_OR_RETURN(identity.token_sha256, TokenDigest(token));
  }
  bool present = false;
  CLIENT_RETURN_IF_ERROR(EditFile(flags.file, [&](std::string text) -> absl::StatusOr<std::string> {
    const absl::StatusOr<bool> has_identity = HasIdentity(text, identity.name);
    if (!has_identity.ok()) return FileError(flags.file, has_identity.status());
    present = flags.if_missing && *has_identity;
    if (present) return text;
    absl::StatusOr<std::string> edited = WithIdentity(text, identity);
    if (!edited.ok()) return FileError(flags.file, edited.status());
    // Write the token before the auth file. If the tool ends in between, the user can run it again,
    // because WriteTokenFile() replaces a token that the auth file does not have.
    if (flags.token_out.has_value()) {
      CLIENT_RETURN_IF_ERROR(WriteTokenFile(*flags.token_out, token, text));
    }
    return edited;
  }));
  if (present) return ReportPresent(flags, session);
  ReportAdded(flags, token, session);
  WarnOfSlashes(flags, session);
  return absl::OkStatus();
}

// "write acme/*, read *", or "none".
std::string GrantsText(const Json& identity) {
  if (identity["grants"].empty()) return "none";
  return absl::StrJoin(identity["grants"], ", ", [](std::string* text, const Json& grant) {
    absl::StrAppend(text, grant["role"].get<std::string>(), " ",
                    grant["stores"].get<std::string>());
  });
}

// "token, certificate ingest.acme".
std::string CredentialsText(const Json& identity) {
  std::vector<std::string> credentials;
  if (identity["has_token"].get<bool>()) credentials.emplace_back("token");
  if (identity.contains("certificate_name")) {
    credentials.push_back(
        absl::StrCat("certificate ", identity["certificate_name"].get<std::string>()));
  }
  return absl::StrJoin(credentials, ", ");
}

// "stores 3, store_bytes 1000000", or "none".
std::string LimitsText(const Json& identity) {
  if (!identity.contains("limits") || identity["limits"].empty()) return "none";
  std::vector<std::string> limits;
  for (const auto& [name, limit] : identity["limits"].items()) {
    limits.push_back(absl::StrCat(name, " ", limit.dump()));
  }
  return absl::StrJoin(limits, ", ");
}

absl::Status ListIdentities(const std::string& file, const Session& session) {
  std::string text;
  CLIENT_RETURN_IF_ERROR(
      ReadFile(file, [&](std::string_view part) { text.append(part.data(), part.size()); }));
  const absl::StatusOr<Json> identities = IdentitiesOf(text);
  if (!identities.ok()) return FileError(file, identities.status());
  if (session.json) {
    PrintJson({{"identities", *identities}}, session.out);
    return absl::OkStatus();
  }
  output::Table table({{.title = "name"},
                       {.title = "roles"},
                       {.title = "known by", .rank = 2},
                       {.title = "limits", .rank = 1}});
  for (const Json& identity : *identities) {
    table.AddRow({identity["name"].get<std::string>(), GrantsText(identity),
                  CredentialsText(identity), LimitsText(identity)});
  }
  session.Print(&table);
  return absl::OkStatus();
}

// Returns "; did you mean NAME?" with the name in the auth file's `text` that is nearest to `name`,
// or "" if none is near.
std::string NearIdentity(const std::string& name, const std::string& text) {
  std::vector<std::string> names;
  if (const absl::StatusOr<Json> identities = IdentitiesOf(text); identities.ok()) {
    for (const Json& identity : *identities) names.push_back(identity["name"].get<std::string>());
  }
  return cli::Suggestion(name, names);
}

absl::Status RemoveIdentity(const std::string& file, const std::string& name,
                            const Session& session) {
  if (std::error_code error; !fs::exists(file, error)) {
    return InputError(file, error ? error.message() : "No such file or directory");
  }
  bool lost_admin = false;
  CLIENT_RETURN_IF_ERROR(EditFile(file, [&](std::string text) -> absl::StatusOr<std::string> {
    absl::StatusOr<std::string> edited = WithoutIdentity(text, name);
    if (!edited.ok()) {
      const absl::Status error = FileError(file, edited.status());
      const std::string near = NearIdentity(name, text);
      return near.empty() ? error : Annotate(error, near.substr(2));
    }
    lost_admin = HasAdmin(text) && !HasAdmin(*edited);
    return edited;
  }));
  if (session.json) PrintJson({{"name", name}, {"removed", true}}, session.out);
  *session.err << "removed " << TerminalText(name) << " from " << TerminalText(file) << "\n";
  if (lost_admin) {
    *session.err << "softlookup: " << TerminalText(file)
                 << " has no admin any more, so nobody can make backups: `softlookup auth add` "
                    "with --role admin --stores '*' adds one\n";
  }
  return absl::OkStatus();
}

void AddLimits(CLI::App* command, AddFlags* flags) {
  const auto add = [&](const char* name, std::optional<std::uint64_t>* limit, const char* help) {
    return command->add_option(name, *limit, help)->group("Limits (default: none)");
  };
  // What the server takes of an auth file: numbers that JSON keeps exactly.
  constexpr std::int64_t kMax = std::int64_t{1} << 53;
  const CLI::Range count(std::int64_t{1}, kMax);
  const CLI::Validator bytes = cli::ByteSize(/*min=*/1, kMax);
  add("--requests-per-second", &flags->requests_per_second, "Requests per second; more are refused")
      ->check(count);
  add("--rows-per-second", &flags->rows_per_second,
      "Rows appended plus queries asked per second; more are refused")
      ->check(count);
  add("--bytes-in-flight", &flags->bytes_in_flight,
      "Bytes of requests in progress, such as 64MiB; more are refused")
      ->transform(bytes);
  add("--max-stores", &flags->stores_max,
      "Most stores that the identity may manage, whoever made them; making more is refused")
      ->check(count);
  add("--store-bytes", &flags->store_bytes,
      "Most bytes of all stores that it may write to, such as 2GiB; appends beyond are refused")
      ->transform(bytes);
}

}  // namespace

void AddAuthCommands(CLI::App* app, Session* session) {
  CLI::App* auth = app->add_subcommand(
      "auth", "Edit or list the auth file, which tells softlookup-server --auth who may do what");
  auth->require_subcommand(1);

  auto flags = std::make_shared<AddFlags>();
  CLI::App* add = auth->add_subcommand("add", "Add an identity to an auth file; needs no server");
  add->footer(
      "Makes a new token. Prints it on standard output, or writes it to --token-out. The auth\n"
      "file gets only the token's SHA-256. With --no-token there is none: a client certificate\n"
      "with the name of --certificate-name tells who it is, if the server has --tls-client-ca.\n"
      "A missing auth file is made with mode 0600. A running server reads the changed file by\n"
      "itself within 10 seconds; until then it does not know the new token.\n"
      "--token-out makes a file with mode 0600, before the auth file changes. It replaces a\n"
      "file whose token the auth file does not have, and refuses any other existing file.\n"
      "--if-missing changes nothing if the identity NAME exists, whatever its roles. It then\n"
      "fails if the file of --token-out is missing, because a token cannot be recovered.\n"
      "Roles: read looks up and reads; write also appends and deletes rows; manage also makes,\n"
      "changes and deletes stores; admin may do everything, and needs --stores '*'.\n"
      "Example:\n"
      "  softlookup auth add auth.json ingest --role write --stores 'acme/*' \\\n"
      "    --token-out token");
  add->add_option("FILE", flags->file, "The auth file")->required();
  add->add_option("NAME", flags->name, "Name of the identity: 1 to 128 of A-Z a-z 0-9 . _ -")
      ->required();
  add->add_option(
         "--role", flags->roles,
         "What the identity may do; may be repeated: the nth --role applies to the nth --stores")
      ->required()
      ->allow_extra_args(false)
      ->check(CLI::IsMember(AuthRoles()));
  add->add_option("--stores", flags->stores,
                  "Stores that the role is for: a store's name, a prefix that ends in '/*', or "
                  "'*', in quotes")
      ->required()
      ->allow_extra_args(false)
      ->type_name("PATTERN");
  add->add_option("--certificate-name", flags->certificate_name,
                  "Name in client certificates of this identity: DNS or URI, else common name "
                  "(default: none)")
      ->type_name("NAME");
  CLI::Option* no_token =
      add->add_flag("--no-token", flags->no_token,
                    "Make no token: the client certificate alone tells who it is; needs "
                    "--certificate-name");
  add->add_flag("--if-missing", flags->if_missing,
                "If the identity NAME exists, change nothing; fail only if the --token-out file is "
                "missing");
  add->add_option("--token-out", flags->token_out, "Write the token to this file; do not print it")
      ->type_name("FILE")
      ->excludes(no_token);
  AddLimits(add, flags.get());
  add->callback([=] { session->run = [=] { return Add(*flags, *session); }; });

  auto file = std::make_shared<std::string>();
  CLI::App* list =
      auth->add_subcommand("list", "List the identities of an auth file; needs no server");
  list->footer(
      "For each identity: its roles and the stores they are for, whether a token or the name in a\n"
      "client certificate tells who it is, and its limits. Shows no token, and no hash of one.");
  list->add_option("FILE", *file, "The auth file")->required();
  list->callback([=] { session->run = [=] { return ListIdentities(*file, *session); }; });

  auto name = std::make_shared<std::string>();
  CLI::App* remove =
      auth->add_subcommand("remove", "Remove an identity from an auth file; needs no server");
  remove->footer(
      "The file keeps its owner and mode. A running server reads the changed file within 10\n"
      "seconds, or at once on SIGHUP. It then refuses the identity's token and certificate.");
  remove->add_option("FILE", *file, "The auth file")->required();
  remove->add_option("NAME", *name, "Name of the identity, as `auth list` shows it")->required();
  remove->callback([=] { session->run = [=] { return RemoveIdentity(*file, *name, *session); }; });
}

}  // namespace softlookup::tool
