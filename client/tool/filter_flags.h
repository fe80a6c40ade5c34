#ifndef SOFTLOOKUP_CLIENT_TOOL_FILTER_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_FILTER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "softlookup/v1/row.pb.h"

namespace softlookup::tool {

// Which rows a command is about: a v1::RowFilter on the command line.
struct FilterFlags {
  std::optional<std::uint64_t> begin;
  std::optional<std::uint64_t> end;
  std::optional<std::uint64_t> last;
  std::vector<std::string> any_labels;
  std::vector<std::string> no_labels;
  std::vector<std::uint64_t> ids;
  std::vector<std::uint64_t> exclude_ids;

  v1::RowFilter ToProto() const;
  // Whether the command line sets any of these. True even if the options let all rows pass, such as
  // --begin 0.
  bool any() const { return ToProto().ByteSizeLong() > 0; }

  // Returns the line to print for people if no row of `store` passes: that none has the labels,
  // or without --label, the ids. Empty without both.
  std::string NoRowNote(const std::string& store) const;
};

// `flags` must outlive `command`.
void AddFilterFlags(CLI::App* command, FilterFlags* flags);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_FILTER_FLAGS_H_
