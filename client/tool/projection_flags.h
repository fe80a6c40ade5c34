#ifndef SOFTLOOKUP_CLIENT_TOOL_PROJECTION_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_PROJECTION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// W_q, W_k and W_v on the command line: three files, or none.
struct ProjectionFlags {
  // FILE each.
  std::string query;
  std::string key;
  std::string value;

  bool any() const { return !query.empty() || !key.empty() || !value.empty(); }
};

// `flags` must outlive `command`.
void AddProjectionFlags(CLI::App* command, ProjectionFlags* flags);

// The projection that the three files hold; a UsageError if some of them are not named. InputErrors
// if their shapes do not chain: W_q and W_k are key_dim x input_dim, W_v is value_dim x input_dim.
// A dimension of `store` that is 0 is what the files say.
absl::StatusOr<v1::Projection> ReadProjection(const ProjectionFlags& flags, const v1::Store& store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PROJECTION_FLAGS_H_
