#ifndef SOFTLOOKUP_SERVER_SECURITY_IDENTITY_H_
#define SOFTLOOKUP_SERVER_SECURITY_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace softlookup::server {

// What an identity may do with a store. Each role includes those before it.
enum class Role { kRead = 1, kWrite = 2, kManage = 3, kAdmin = 4 };

absl::string_view NameOf(Role role);
std::optional<Role> RoleOfName(absl::string_view name);

// A set of stores: all of them ("*"), those whose names begin with a prefix that ends in '/'
// ("acme/*"), or one ("acme/users").
class StorePattern {
 public:
  // Nullopt if `text` is none of the three.
  static std::optional<StorePattern> Parse(absl::string_view text);

  bool Matches(absl::string_view store) const;
  // The names of all stores of the set begin with this. If is_name(), this is the name of its only
  // store.
  const std::string& prefix() const { return prefix_; }
  bool is_name() const { return is_name_; }
  bool is_all() const { return !is_name_ && prefix_.empty(); }

 private:
  StorePattern(std::string prefix, bool is_name) : prefix_(std::move(prefix)), is_name_(is_name) {}

  std::string prefix_;
  bool is_name_;
};

struct Grant {
  Role role;
  StorePattern stores;
};

// Limits of an identity. 0: no limit. The first three bound its requests. The others bound the
// stores that its grants cover, whoever created them.
struct IdentityLimits {
  double requests_per_second = 0;
  double rows_per_second = 0;
  // Bytes of its requests, raw and parsed, from before each is parsed until nothing refers to it.
  std::int64_t bytes_in_flight = 0;
  // Number of stores that its grants of `manage` or more cover. Checked when it creates a store.
  std::int64_t stores = 0;
  // Bytes of the stores that its grants of `write` or more cover. Checked when it appends.
  std::int64_t store_bytes = 0;
};

struct Identity {
  std::string name;
  std::vector<Grant> grants;
  IdentityLimits limits;

  // Whether a grant gives the identity `role`, or a higher role, for `store`.
  bool May(Role role, absl::string_view store) const;
  // Whether a grant gives the identity `role`, or a higher role, for at least one store.
  bool MaySomewhere(Role role) const;
  // Whether a grant gives the identity `role`, or a higher role, for all stores.
  bool MayEverywhere(Role role) const;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_SECURITY_IDENTITY_H_
