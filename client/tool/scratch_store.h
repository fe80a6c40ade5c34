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

// A store that is on the server while the object lives. Its destructor deletes it.
//
// Meanwhile the first SIGINT or SIGTERM does not end the process: it makes every later call fail
// with Cancelled, so that the store is deleted on the way out. The second one ends it at once. One
// object at a time; for one thread.
class ScratchStore {
 public:
  // Makes `store` under a name of its own, PREFIX/<process>-<random>. `client` must outlive the
  // object.
  static absl::StatusOr<std::unique_ptr<ScratchStore>> Create(Client* client,
                                                              std::string_view prefix,
                                                              v1::Store store);
  ~ScratchStore();
  ScratchStore(const ScratchStore&) = delete;
  ScratchStore& operator=(const ScratchStore&) = delete;

  const std::string& name() const { return name_; }

  absl::Status Append(FloatMatrixView keys, FloatMatrixView values);
  absl::StatusOr<LookupAnswer> Lookup(FloatMatrixView queries, const LookupOptions& options);

  // What the destructor does, for who wants to know whether it worked. No call may follow.
  absl::Status Delete();

 private:
  ScratchStore(Client* client, std::string name);

  Client* const client_;
  std::string name_;  // Empty when there is nothing to delete.
  const InterruptGuard guard_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_SCRATCH_STORE_H_
