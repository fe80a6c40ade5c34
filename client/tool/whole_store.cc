#include "client/tool/whole_store.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"

namespace softlookup::tool {

absl::StatusOr<v1::Store> GetWholeStore(const std::string& name, Client* client) {
  CLIENT_ASSIGN_OR_RETURN(v1::Store store, client->GetStore(name));
  if (store.damage().empty()) return store;
  return absl::DataLossError(absl::StrCat("store \"", name, "\" is damaged: ", store.damage(),
                                          "; restore a backup, or `softlookup store delete` it"));
}

}  // namespace softlookup::tool
