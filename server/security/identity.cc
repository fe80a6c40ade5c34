#include "server/security/identity.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"

namespace softlookup::server {
namespace {

constexpr std::array<absl::string_view, 4> kRoleNames = {"read", "write", "manage", "admin"};

}  // namespace

absl::string_view NameOf(Role role) { return kRoleNames[static_cast<std::size_t>(role) - 1]; }

std::optional<Role> RoleOfName(absl::string_view name) {
  const auto found = std::find(kRoleNames.begin(), kRoleNames.end(), name);
  if (found == kRoleNames.end()) return std::nullopt;
  return static_cast<Role>(found - kRoleNames.begin() + 1);
}

std::optional<StorePattern> StorePattern::Parse(absl::string_view text) {
  if (text == "*") return StorePattern("", /*is_name=*/false);
  const bool is_name = !absl::EndsWith(text, "/*");
  if (!is_name) text.remove_suffix(1);
  // The length is not checked: a name that is too long matches no store.
  if (text.empty() || text == "/" || absl::StrContains(text, "*")) return std::nullopt;
  return StorePattern(std::string(text), is_name);
}

bool StorePattern::Matches(absl::string_view store) const {
  return is_name_ ? store == prefix_ : absl::StartsWith(store, prefix_);
}

bool Identity::May(Role role, absl::string_view store) const {
  return std::any_of(grants.begin(), grants.end(), [&](const Grant& grant) {
    return grant.role >= role && grant.stores.Matches(store);
  });
}

bool Identity::MaySomewhere(Role role) const {
  return std::any_of(grants.begin(), grants.end(),
                     [&](const Grant& grant) { return grant.role >= role; });
}

bool Identity::MayEverywhere(Role role) const {
  return std::any_of(grants.begin(), grants.end(), [&](const Grant& grant) {
    return grant.role >= role && grant.stores.is_all();
  });
}

}  // namespace softlookup::server
