#ifndef SOFTLOOKUP_CLIENT_TOOL_VALIDATORS_H_
#define SOFTLOOKUP_CLIENT_TOOL_VALIDATORS_H_

#include <CLI/CLI.hpp>
#include <string>

namespace softlookup::tool {

// Validators for CLI::Option::check().

// Accepts a number over 0.
CLI::Validator Positive();

// Accepts a number from `least` to `most`. Unlike CLI::Range, refuses "nan".
CLI::Validator InRange(double least, double most);

// Accepts UTF-8, which labels must be.
CLI::Validator Utf8();

// Accepts a file name that ends in `ending`, such as ".npy", in any case.
CLI::Validator NameEndsIn(const std::string& ending);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_VALIDATORS_H_
