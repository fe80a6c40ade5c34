#include "server/security/auth_rules.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace softlookup::server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kIdentityNameBytesMax = 128;
constexpr std::size_t kIdentitiesMax = 100'000;
// 2^53: a double holds all whole numbers up to it exactly.
constexpr double kNumberMax = 9007199254740992.0;

absl::Status Wrong(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

// Parses JSON. Refuses an object that has a member twice: the library would keep only the last of
// the two.
absl::StatusOr<Json> ParseJson(const std::string& text) {
  std::vector<std::set<std::string>> members;
  std::string repeated;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) members.emplace_back();
    if (event == Json::parse_event_t::object_end) members.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto name = parsed.get<std::string>();
      if (!members.back().insert(name).second) repeated = name;
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    // The library's text begins with its own name for the error, in brackets. That name is left
    // out.
    const absl::string_view what = error.what();
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", what.substr(what.find("] ") + 2)));
  }
  if (!repeated.empty()) return Wrong(repeated, "stands twice in one object");
  return json;
}

absl::Status CheckMembers(absl::string_view where, const Json& object,
                          std::initializer_list<absl::string_view> known) {
  if (!object.is_object()) return Wrong(where, "must be an object");
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Wrong(where, absl::StrCat("has an unknown member \"", name, "\""));
    }
  }
  return absl::OkStatus();
}

// Returns the member `name` of `object`, which must be a string that is not empty.
absl::StatusOr<std::string> TextOf(absl::string_view where, const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string() || member->get<std::string>().empty()) {
    return Wrong(absl::StrCat(where, ".", name), "must be a string that is not empty");
  }
  return member->get<std::string>();
}

absl::StatusOr<std::string> ParseName(absl::string_view where, const Json& object) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(std::string name, TextOf(where, object, "name"));
  const bool is_valid =
      name.size() <= kIdentityNameBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
               c == '-';
      });
  if (!is_valid) {
    return Wrong(absl::StrCat(where, ".name"), absl::StrCat("must be 1 to ", kIdentityNameBytesMax,
                                                            " characters of [A-Za-z0-9._-]"));
  }
  return name;
}

absl::StatusOr<Grant> ParseGrant(absl::string_view where, const Json& json) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMembers(where, json, {"role", "stores"}));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::string role_name, TextOf(where, json, "role"));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::string stores, TextOf(where, json, "stores"));
  const std::optional<Role> role = RoleOfName(role_name);
  if (!role) {
    return Wrong(absl::StrCat(where, ".role"), "must be read, write, manage or admin");
  }
  const std::optional<StorePattern> pattern = StorePattern::Parse(stores);
  if (!pattern) {
    return Wrong(absl::StrCat(where, ".stores"),
                 "must be a store's name, a prefix that ends in /*, or *");
  }
  if (*role == Role::kAdmin && !pattern->is_all()) {
    return Wrong(absl::StrCat(where, ".stores"), "must be * for the role admin");
  }
  return Grant{*role, *pattern};
}

absl::Status ParseLimits(absl::string_view where, const Json& json, IdentityLimits& limits) {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMembers(
      where, json,
      {"requests_per_second", "rows_per_second", "bytes_in_flight", "stores", "store_bytes"}));
  const auto parse = [&](const char* name, auto& limit) -> absl::Status {
    const auto member = json.find(name);
    if (member == json.end()) return absl::OkStatus();
    const double number = member->is_number() ? member->get<double>() : -1;
    if (!(number > 0) || number > kNumberMax) {
      return Wrong(absl::StrCat(where, ".", name), "must be a number above 0");
    }
    const bool is_whole = number == std::floor(number);
    if (!is_whole && std::is_integral_v<std::remove_reference_t<decltype(limit)>>) {
      return Wrong(absl::StrCat(where, ".", name), "must be a whole number");
    }
    limit = static_cast<std::remove_reference_t<decltype(limit)>>(number);
    return absl::OkStatus();
  };
  SOFTLOOKUP_RETURN_IF_ERROR(parse("requests_per_second", limits.requests_per_second));
  SOFTLOOKUP_RETURN_IF_ERROR(parse("rows_per_second", limits.rows_per_second));
  SOFTLOOKUP_RETURN_IF_ERROR(parse("bytes_in_flight", limits.bytes_in_flight));
  SOFTLOOKUP_RETURN_IF_ERROR(parse("stores", limits.stores));
  return parse("store_bytes", limits.store_bytes);
}

absl::StatusOr<Sha256> ParseDigest(absl::string_view where, const Json& json) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::string hex, TextOf(where, json, "token_sha256"));
  Sha256 digest{};
  if (hex.size() != 2 * digest.size() || !std::all_of(hex.begin(), hex.end(), [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      })) {
    return Wrong(absl::StrCat(where, ".token_sha256"), "must be 64 hexadecimal digits");
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

}  // namespace

Sha256 Sha256Of(absl::string_view text) {
  Sha256 digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

absl::StatusOr<std::shared_ptr<const AuthRules>> AuthRules::Parse(const std::string& text) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  SOFTLOOKUP_RETURN_IF_ERROR(CheckMembers("the file", json, {"identities"}));
  const auto list = json.find("identities");
  if (list == json.end() || !list->is_array()) return Wrong("identities", "must be a list");
  if (list->size() > kIdentitiesMax) {
    return Wrong("identities", absl::StrCat("has more than ", kIdentitiesMax, " members"));
  }
  auto rules = std::make_shared<AuthRules>();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = absl::StrCat("identities[", i, "]");
    const Json& member = (*list)[i];
    SOFTLOOKUP_RETURN_IF_ERROR(CheckMembers(
        where, member, {"name", "token_sha256", "certificate_name", "grants", "limits"}));
    auto identity = std::make_shared<Identity>();
    SOFTLOOKUP_ASSIGN_OR_RETURN(identity->name, ParseName(where, member));
    if (!rules->by_name_.emplace(identity->name, identity).second) {
      return Wrong(absl::StrCat(where, ".name"), "is another identity's, too");
    }
    const auto grants = member.find("grants");
    if (grants == member.end() || !grants->is_array()) {
      return Wrong(absl::StrCat(where, ".grants"), "must be a list");
    }
    for (std::size_t j = 0; j < grants->size(); ++j) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(
          Grant grant, ParseGrant(absl::StrCat(where, ".grants[", j, "]"), (*grants)[j]));
      identity->grants.push_back(std::move(grant));
    }
    if (const auto limits = member.find("limits"); limits != member.end()) {
      SOFTLOOKUP_RETURN_IF_ERROR(
          ParseLimits(absl::StrCat(where, ".limits"), *limits, identity->limits));
    }
    const bool has_token = member.contains("token_sha256");
    const bool has_certificate = member.contains("certificate_name");
    if (!has_token && !has_certificate) {
      return Wrong(where, "has neither a token_sha256 nor a certificate_name");
    }
    if (!has_token) rules->certificate_only_.push_back(identity->name);
    if (has_token) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(const Sha256 digest, ParseDigest(where, member));
      if (!rules->by_token_.emplace(digest, identity).second) {
        return Wrong(absl::StrCat(where, ".token_sha256"), "is another identity's, too");
      }
    }
    if (has_certificate) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(const std::string name,
                                  TextOf(where, member, "certificate_name"));
      if (!rules->by_certificate_.emplace(name, identity).second) {
        return Wrong(absl::StrCat(where, ".certificate_name"), "is another identity's, too");
      }
    }
  }
  return rules;
}

std::shared_ptr<const Identity> AuthRules::FindByName(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::shared_ptr<const Identity> AuthRules::FindByToken(const Sha256& digest) const {
  // A client cannot choose the digest of a token that it sends. So the time of this search reveals
  // nothing to the client.
  const auto found = by_token_.find(digest);
  return found == by_token_.end() ? nullptr : found->second;
}

std::shared_ptr<const Identity> AuthRules::FindByCertificate(
    const std::vector<std::string>& names) const {
  std::shared_ptr<const Identity> identity;
  for (const std::string& name : names) {
    const auto found = by_certificate_.find(name);
    if (found == by_certificate_.end()) continue;
    if (identity != nullptr && identity != found->second) return nullptr;
    identity = found->second;
  }
  return identity;
}

}  // namespace softlookup::server
