#ifndef SOFTLOOKUP_CLIENT_TOOL_WHOLE_STORE_H_
#define SOFTLOOKUP_CLIENT_TOOL_WHOLE_STORE_H_

#include <string>

#include "absl/status/statusor.h"
#include "softlookup/client.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// Returns the store `name`, for commands that need its dimensions. DataLoss if it is damaged; the
// error then says what to do. Also returns the errors of Client::GetStore().
absl::StatusOr<v1::Store> GetWholeStore(const std::string& name, Client* client);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_WHOLE_STORE_H_
