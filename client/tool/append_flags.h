#ifndef SOFTLOOKUP_CLIENT_TOOL_APPEND_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_APPEND_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace softlookup::tool {

// How `append` and `import` send rows.
struct AppendFlags {
  std::string ids;     // Path, or "-" for standard input.
  std::string labels;  // Path, or "-" for standard input.
  std::string on_conflict;
  std::uint32_t batch_rows = 4096;
  std::string acknowledge;
  std::string writer;           // Empty: a repeated command appends all rows again.
  std::uint64_t skip_rows = 0;  // Rows at the input's start that are not sent. 0 with a writer.
};

// `flags` must outlive `command`.
void AddAppendFlags(CLI::App* command, AppendFlags* flags);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_APPEND_FLAGS_H_
