#ifndef SOFTLOOKUP_CLIENT_TOOL_FIELD_FLAGS_H_
#define SOFTLOOKUP_CLIENT_TOOL_FIELD_FLAGS_H_

#include <string>

#include "absl/status/status.h"

namespace softlookup::tool {

// Returns the message of `error`, an error of the server, with the flag that sets the field in
// place of the field that the error names: "--top: ..." for "options.top_weights: ...". Returns the
// message as it is if the error names no field, or one without such a flag.
std::string WithFlagsForFields(const absl::Status& error);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_FIELD_FLAGS_H_
