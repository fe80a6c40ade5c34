#ifndef SOFTLOOKUP_CLIENT_TOOL_SCRATCH_STORE_H_
#define SOFTLOOKUP_CLIENT_TOOL_SCRATCH_STORE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/interrupt.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// A store that is on the server while the object lives. The destructor deletes the store.
//
// Meanwhile the first SIGINT or SIGTERM does not end the process. It makes every later Append() and
// Lookup() fail with Cancelled, so that the command ends and deletes the store. A second signal
// ends the process at once. Only one object may exist at a time, for one thread.
class ScratchStore {
 public:
  // Makes `store` on the server under the new name PREFIX/<process>-<random>. `client` must outlive
  // the object.
  static absl::StatusOr<std::unique_ptr<ScratchStore>> Create(Client* client,
                                                              std::string_view prefix,
                                                              v1::Store store);
  ~ScratchStore();
  ScratchStore(const ScratchStore&) = delete;
  ScratchStore& operator=(const ScratchStore&) = delete;

  const std::string& name() const { return name_; }

  absl::Status Append(FloatMatrixView keys, FloatMatrixView values);
  absl::StatusOr<LookupAnswer> Lookup(FloatMatrixView queries, const LookupOptions& options);

  // Deletes the store, as the destructor does, but returns whether that worked. Make no other call
  // after this one.
  absl::Status Delete();

 private:
  ScratchStore(Client* client, std::string name);

  Client* const client_;
  std::string name_;  // Empty if there is no store to delete.
  const InterruptGuard guard_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_SCRATCH_STORE_H_
