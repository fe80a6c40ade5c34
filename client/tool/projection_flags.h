#ifndef SOFTLOOKUP_CLIENT_TOOL_PROJECTION_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_PROJECTION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// Names the files of W_q, W_k and W_v: all three, or none.
struct ProjectionFlags {
  // Paths; "-" is not accepted.
  std::string query;
  std::string key;
  std::string value;

  bool any() const { return !query.empty() || !key.empty() || !value.empty(); }
};

// `flags` must outlive `command`.
void AddProjectionFlags(CLI::App* command, ProjectionFlags* flags);

// Reads the projection from the three files. UsageError unless all three are named. InputError if
// the shapes do not fit: W_q and W_k are [key_dim x input_dim], W_v is [value_dim x input_dim]. A
// dimension that is 0 in `store` is taken from the files.
absl::StatusOr<v1::Projection> ReadProjection(const ProjectionFlags& flags, const v1::Store& store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PROJECTION_FLAGS_H_
