#ifndef SOFTLOOKUP_CLIENT_TOOL_ATTENTION_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_ATTENTION_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "softlookup/v1/attention.pb.h"

namespace softlookup::tool {

// How queries are scored and which weights are shown: v1::AttentionOptions on the command line.
struct AttentionFlags {
  std::string score;
  std::string mode;
  std::string weights = "top";
  std::optional<double> temperature;
  std::optional<double> min_score;
  std::optional<double> recency_decay;
  std::uint32_t top_k = 0;
  std::uint32_t top = 10;
  bool causal = false;
  std::uint64_t causal_offset = 0;
  std::optional<double> max_error;

  v1::AttentionOptions ToProto() const;
};

// `flags` must outlive `command`.
void AddAttentionFlags(CLI::App* command, AttentionFlags* flags);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_ATTENTION_FLAGS_H_
