#ifndef SOFTLOOKUP_CLIENT_TOOL_VALIDATORS_H_
#define SOFTLOOKUP_CLIENT_TOOL_VALIDATORS_H_

#include <CLI/CLI.hpp>

namespace softlookup::tool {

// What options may hold, for CLI::Option::check().

// A number over 0.
CLI::Validator Positive();

// Text that a label can be.
CLI::Validator Utf8();

// A name that ends in .npy, as the commands that read such a file know it.
CLI::Validator NpyName();

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_VALIDATORS_H_
