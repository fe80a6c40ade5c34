#ifndef SOFTLOOKUP_SERVER_RPC_STORE_METHODS_H_
#define SOFTLOOKUP_SERVER_RPC_STORE_METHODS_H_

#include "absl/status/status.h"
#include "server/rpc/call.h"
#include "softlookup/engine.h"
#include "softlookup/v1/soft_lookup.pb.h"

namespace softlookup::server {

// The methods whose response is complete when their function returns. Each checks the caller's
// rights, decodes the request, calls the engine and encodes the response. They may wait for the
// disk. Thread-safe.

absl::Status CreateStore(Engine& engine, Call& call, const v1::CreateStoreRequest& request,
                         v1::Store& response);
absl::Status GetStore(Engine& engine, Call& call, const v1::GetStoreRequest& request,
                      v1::Store& response);
// Lists only stores that the caller may read.
absl::Status ListStores(Engine& engine, Call& call, const v1::ListStoresRequest& request,
                        v1::ListStoresResponse& response);
absl::Status UpdateStore(Engine& engine, Call& call, const v1::UpdateStoreRequest& request,
                         v1::Store& response);
absl::Status RenameStore(Engine& engine, Call& call, const v1::RenameStoreRequest& request,
                         v1::RenameStoreResponse& response);
absl::Status DeleteStore(Engine& engine, Call& call, const v1::DeleteStoreRequest& request,
                         v1::DeleteStoreResponse& response);
absl::Status DeleteRows(Engine& engine, Call& call, const v1::DeleteRowsRequest& request,
                        v1::DeleteRowsResponse& response);
absl::Status GetWriter(Engine& engine, Call& call, const v1::GetWriterRequest& request,
                       v1::Writer& response);
absl::Status GetMemory(Engine& engine, Call& call, const v1::GetMemoryRequest& request,
                       v1::Memory& response);

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_STORE_METHODS_H_
