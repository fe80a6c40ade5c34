#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/tool/auth_file.h"
#include "server/security/auth_rules.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

using server::AuthRules;

// What `softlookup auth add` puts into a file.
const tool::Identity kAdded = {
    .name = "added.by-fuzz_test",
    .token_sha256 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
    .certificate_name = "added.example",
    .grants = {{"write", "acme/*"}},
    .limits = {{"stores", 3}}};

server::Sha256 DigestOf(const std::string& hex) {
  server::Sha256 digest{};
  const std::string bytes = absl::HexStringToBytes(hex);
  REQUIRE(bytes.size() == digest.size());
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

// Everyone in the file is found by what they show, with what the file says they may do.
void CheckIdentities(const AuthRules& rules, const std::string& text) {
  const auto list = nlohmann::json::parse(text).at("identities");
  REQUIRE(rules.identity_count() == list.size());
  for (const auto& member : list) {
    const std::string name = member.at("name");
    REQUIRE(rules.HasIdentity(name));
    std::vector<std::shared_ptr<const server::Identity>> found;
    if (member.contains("token_sha256")) {
      found.push_back(rules.FindByToken(DigestOf(member["token_sha256"])));
    }
    if (member.contains("certificate_name")) {
      found.push_back(rules.FindByCertificate({member["certificate_name"]}));
    }
    REQUIRE(!found.empty());
    for (const auto& identity : found) {
      REQUIRE(identity != nullptr && identity->name == name);
      REQUIRE(identity->grants.size() == member.at("grants").size());
      for (const auto& grant : member["grants"]) {
        std::string store = grant.at("stores");
        const bool is_prefix = store.back() == '*';
        if (is_prefix) store.back() = 'x';
        REQUIRE(identity->May(*server::RoleOfName(std::string(grant.at("role"))), store));
      }
      REQUIRE(identity->limits.stores >= 0 && identity->limits.requests_per_second >= 0);
    }
  }
}

}  // namespace

void FuzzAuthFile(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(bytes, bytes + size);
  const auto rules = AuthRules::Parse(text);
  if (rules.ok()) {
    CheckIdentities(**rules, text);
  } else {
    REQUIRE(absl::IsInvalidArgument(rules.status()) && !rules.status().message().empty());
  }
  // The tool keeps a file that the server takes such a file, and everyone who is in it.
  const auto edited = tool::WithIdentity(text, kAdded);
  if (!rules.ok()) return;
  if ((*rules)->HasIdentity(kAdded.name) ||
      (*rules)->FindByToken(DigestOf(kAdded.token_sha256)) != nullptr ||
      (*rules)->FindByCertificate({kAdded.certificate_name}) != nullptr) {
    return;
  }
  REQUIRE(edited.ok());
  const auto edited_rules = AuthRules::Parse(*edited);
  REQUIRE(edited_rules.ok());
  REQUIRE((*edited_rules)->identity_count() == (*rules)->identity_count() + 1);
  REQUIRE((*edited_rules)->HasIdentity(kAdded.name));
  CheckIdentities(**edited_rules, *edited);
}

}  // namespace softlookup::fuzz
