#ifndef SOFTLOOKUP_CLIENT_TOOL_MEMORY_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_MEMORY_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "softlookup/v1/memory.pb.h"

namespace softlookup::tool {

// What --memory takes, for the footer of --help.
extern const char kMemoryHelp[];

// Adds --memory, by which a store gets running memories. `memories` must outlive `command`.
void AddMemoryFlag(CLI::App* command, std::vector<std::string>* memories);

// Reads a memory as --memory takes it: NAME=KIND for an average, NAME=KIND:DECAY for the decayed
// kinds, and NAME=KIND:FILE for the gated ones. FILE is as for OpenRows(), but not "-". It has one
// row of `key_dim` + 1 numbers, which are the gate. Errors name the memory: UsageError for a
// malformed text, InputError for the file. The range of DECAY is not checked.
absl::StatusOr<v1::MemorySpec> ParseMemory(const std::string& text, std::uint32_t key_dim);

// Whether a memory of this kind has a decay; whether it has a gate. No kind has both.
bool HasDecay(v1::MemoryKind kind);
bool HasGate(v1::MemoryKind kind);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_MEMORY_FLAGS_H_
