#ifndef SOFTLOOKUP_CLIENT_TOOL_STORE_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_STORE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/projection_flags.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// The settings of a store on the command line, except its name and dimensions.
struct StoreFlags {
  // Settings that can change later.
  std::string score;
  std::optional<double> temperature;
  std::vector<std::string> labels;  // KEY=VALUE.
  ProjectionFlags projection;

  // Settings that cannot change later.
  std::uint32_t heads = 0;  // 0: not set on the command line.
  std::string storage;
  std::vector<std::string> memories;  // As ParseMemory() reads them.

  // Whether the command line sets any of these.
  bool any() const;
};

// The first function adds the options for all settings, the second only for those that can change
// later. `flags` must outlive `command`.
void AddStoreFlags(CLI::App* command, StoreFlags* flags);
void AddStoreUpdateFlags(CLI::App* command, StoreFlags* flags);

// Copies the settings to `store`, whose dimensions a projection and the gates of memories must fit.
// UsageError for a malformed setting. Also returns the errors of ReadProjection() and
// ParseMemory().
absl::Status SetStore(const StoreFlags& flags, v1::Store* store);

// OK if `store` has all settings that the command line sets. Otherwise a UsageError that names one
// that it does not have. Also returns the errors of SetStore().
absl::Status CheckHasSettings(const StoreFlags& flags, const v1::Store& store);

// Returns the names of the changeable fields of v1::Store that the command line sets.
std::vector<std::string> UpdateMask(const StoreFlags& flags);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_STORE_FLAGS_H_
