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

// The settings of a store on the command line, but for its name and its dimensions.
struct StoreFlags {
  // What can change later.
  std::string score;
  std::optional<double> temperature;
  std::vector<std::string> labels;  // KEY=VALUE.
  ProjectionFlags projection;

  // What cannot.
  std::uint32_t heads = 0;  // 0: not named.
  std::string storage;
  std::vector<std::string> memories;  // NAME=KIND[:DECAY].

  // Whether the command line sets any.
  bool any() const;
};

// All of them, or only those that can change. `flags` must outlive `command`.
void AddStoreFlags(CLI::App* command, StoreFlags* flags);
void AddStoreUpdateFlags(CLI::App* command, StoreFlags* flags);

// Sets in `store`, which has its dimensions, what the command line sets.
absl::Status SetStore(const StoreFlags& flags, v1::Store* store);

// The fields of v1::Store that the command line changes.
std::vector<std::string> UpdateMask(const StoreFlags& flags);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_STORE_FLAGS_H_
