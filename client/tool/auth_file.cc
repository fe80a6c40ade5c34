#include "client/tool/auth_file.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"

namespace softlookup::tool {
namespace {

using output::IsUtf8;
using output::Json;

constexpr std::size_t kNameBytesMax = 128;
constexpr std::size_t kTokenBytes = 32;

bool IsIdentityName(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

// Applies the server's rule for the name of a store.
bool IsStoreName(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && absl::ascii_isalnum(name.front()) &&
         !absl::StrContains(name, "..") && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '/' || c == '-';
         });
}

bool IsPattern(absl::string_view stores) {
  if (stores == "*") return true;
  absl::ConsumeSuffix(&stores, "/*");
  return IsStoreName(stores);
}

absl::Status ValidateGrant(const Grant& grant) {
  if (std::find(AuthRoles().begin(), AuthRoles().end(), grant.role) == AuthRoles().end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--role takes one of ", absl::StrJoin(AuthRoles(), ", "), ", not \"", grant.role, "\""));
  }
  if (!IsPattern(grant.stores)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stores takes a store's name, a prefix that ends in /*, or *, not \"",
                     grant.stores, "\""));
  }
  if (grant.role == "admin" && grant.stores != "*") {
    return absl::InvalidArgumentError("--role admin is for all stores: it needs --stores '*'");
  }
  return absl::OkStatus();
}

Json IdentityJson(const Identity& identity) {
  Json json = {{"name", identity.name}};
  if (!identity.token_sha256.empty()) json["token_sha256"] = identity.token_sha256;
  if (!identity.certificate_name.empty()) json["certificate_name"] = identity.certificate_name;
  json["grants"] = Json::array();
  for (const Grant& grant : identity.grants) {
    json["grants"].push_back({{"role", grant.role}, {"stores", grant.stores}});
  }
  for (const auto& [name, limit] : identity.limits) json["limits"][name] = limit;
  return json;
}

absl::StatusOr<Json> ParseFile(const std::string& text) {
  if (absl::StripAsciiWhitespace(text).empty()) return Json{{"identities", Json::array()}};
  Json file = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (file.is_discarded()) return absl::InvalidArgumentError("is not JSON");
  if (!file.is_object() || !file.contains("identities") || !file["identities"].is_array()) {
    return absl::InvalidArgumentError("is not an auth file: it has no list \"identities\"");
  }
  return file;
}

std::string TextOf(const Json& file) {
  return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool HasText(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string();
}

// Returns `identity` as IdentitiesOf() does. `where` is its place in the file.
absl::StatusOr<Json> Listed(const std::string& where, const Json& identity) {
  const auto wrong = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(where, " ", what));
  };
  if (!HasText(identity, "name")) return wrong("has no name");
  constexpr std::array<std::string_view, 5> kMembers = {"name", "token_sha256", "certificate_name",
                                                        "grants", "limits"};
  for (const auto& [member, value] : identity.items()) {
    if (std::find(kMembers.begin(), kMembers.end(), member) == kMembers.end()) {
      return wrong(absl::StrCat("has an unknown member \"", member, "\""));
    }
  }
  Json listed = {{"name", identity["name"]}, {"has_token", identity.contains("token_sha256")}};
  if (HasText(identity, "certificate_name")) {
    listed["certificate_name"] = identity["certificate_name"];
  }
  if (!identity.contains("grants") || !identity["grants"].is_array()) {
    return wrong("has no list \"grants\"");
  }
  listed["grants"] = Json::array();
  for (const Json& grant : identity["grants"]) {
    if (!HasText(grant, "role") || !HasText(grant, "stores")) {
      return wrong("has a grant without \"role\" and \"stores\"");
    }
    if (std::find(AuthRoles().begin(), AuthRoles().end(), grant["role"]) == AuthRoles().end()) {
      return wrong(absl::StrCat("has the role ", grant["role"].dump(), ", which is none of ",
                                absl::StrJoin(AuthRoles(), ", ")));
    }
    listed["grants"].push_back({{"role", grant["role"]}, {"stores", grant["stores"]}});
  }
  if (!identity.contains("limits")) return listed;
  const Json& limits = identity["limits"];
  if (!limits.is_object()) return wrong("has \"limits\" that are not an object");
  for (const auto& [name, limit] : limits.items()) {
    if (!limit.is_number()) return wrong("has a limit that is not a number");
    listed["limits"][name] = limit;
  }
  return listed;
}

bool HasMember(const Json& identity, const char* key, const std::string& value) {
  return identity.is_object() && identity.contains(key) && identity[key] == value;
}

}  // namespace

const std::vector<std::string>& AuthRoles() {
  static const auto* const roles = new std::vector<std::string>{"read", "write", "manage", "admin"};
  return *roles;
}

absl::Status ValidateIdentity(const Identity& identity) {
  if (!IsIdentityName(identity.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an identity's name has 1-128 of A-Z a-z 0-9 . _ -, unlike \"", identity.name, "\""));
  }
  if (!IsUtf8(identity.certificate_name)) {
    return absl::InvalidArgumentError("a certificate's name must be UTF-8");
  }
  if (identity.grants.empty()) return absl::InvalidArgumentError("an identity has a grant");
  for (const Grant& grant : identity.grants) CLIENT_RETURN_IF_ERROR(ValidateGrant(grant));
  return absl::OkStatus();
}

absl::StatusOr<bool> HasIdentity(const std::string& text, const std::string& name) {
  CLIENT_ASSIGN_OR_RETURN(const Json file, ParseFile(text));
  const Json& identities = file["identities"];
  return std::any_of(identities.begin(), identities.end(),
                     [&](const Json& identity) { return HasMember(identity, "name", name); });
}

absl::StatusOr<std::string> WithIdentity(const std::string& text, const Identity& identity) {
  CLIENT_ASSIGN_OR_RETURN(Json file, ParseFile(text));
  for (const Json& other : file["identities"]) {
    if (HasMember(other, "name", identity.name)) {
      return absl::AlreadyExistsError(absl::StrCat("has an identity ", identity.name, " already"));
    }
    if (!identity.certificate_name.empty() &&
        HasMember(other, "certificate_name", identity.certificate_name)) {
      return absl::AlreadyExistsError(absl::StrCat("has an identity for the certificate ",
                                                   identity.certificate_name, " already"));
    }
  }
  file["identities"].push_back(IdentityJson(identity));
  return TextOf(file);
}

absl::StatusOr<std::string> WithoutIdentity(const std::string& text, const std::string& name) {
  CLIENT_ASSIGN_OR_RETURN(Json file, ParseFile(text));
  Json kept = Json::array();
  for (const Json& identity : file["identities"]) {
    if (!HasMember(identity, "name", name)) kept.push_back(identity);
  }
  if (kept.size() == file["identities"].size()) {
    return absl::NotFoundError(absl::StrCat("has no identity ", name));
  }
  file["identities"] = std::move(kept);
  return TextOf(file);
}

bool HasAdmin(const std::string& text) {
  const absl::StatusOr<Json> file = ParseFile(text);
  if (!file.ok()) return false;
  for (const Json& identity : (*file)["identities"]) {
    if (!identity.is_object() || !identity.contains("grants")) continue;
    for (const Json& grant : identity["grants"]) {
      if (HasMember(grant, "role", "admin")) return true;
    }
  }
  return false;
}

absl::StatusOr<Json> IdentitiesOf(const std::string& text) {
  CLIENT_ASSIGN_OR_RETURN(const Json file, ParseFile(text));
  Json list = Json::array();
  for (const Json& identity : file["identities"]) {
    CLIENT_ASSIGN_OR_RETURN(Json listed,
                            Listed(absl::StrCat("identities[", list.size(), "]"), identity));
    list.push_back(std::move(listed));
  }
  return list;
}

absl::StatusOr<std::string> NewToken() {
  std::array<unsigned char, kTokenBytes> bytes;
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) {
    return absl::InternalError("OpenSSL has no random bytes");
  }
  return absl::WebSafeBase64Escape(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

bool IsToken(const std::string& text) {
  std::string bytes;
  return absl::WebSafeBase64Unescape(text, &bytes) && bytes.size() == kTokenBytes &&
         absl::WebSafeBase64Escape(bytes) == text;
}

absl::StatusOr<std::string> TokenDigest(const std::string& token) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  if (EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    return absl::InternalError("OpenSSL cannot compute a SHA-256");
  }
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

}  // namespace softlookup::tool
