#ifndef SOFTLOOKUP_CLIENT_RECALL_SCRATCH_STORE_H_
#define SOFTLOOKUP_CLIENT_RECALL_SCRATCH_STORE_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "softlookup/client.h"

namespace softlookup::recall {

// A store that is on the server while the object lives. The destructor deletes the store.
//
// Once `interrupted` is set, every later Append() and Lookup() fails with Cancelled. Delete() and
// the destructor still delete the store.
class ScratchStore {
 public:
  // Makes `store` on the server under the new name PREFIX/<process>-<random>. `client` and
  // `interrupted` must outlive the object.
  static absl::StatusOr<std::unique_ptr<ScratchStore>> Create(Client* client,
                                                              std::string_view prefix,
                                                              v1::Store store,
                                                              const std::atomic<bool>& interrupted);
  ~ScratchStore();
  ScratchStore(const ScratchStore&) = delete;
  ScratchStore& operator=(const ScratchStore&) = delete;

  const std::string& name() const { return name_; }

  absl::Status Append(FloatMatrixView keys, FloatMatrixView values);
  absl::StatusOr<LookupAnswer> Lookup(FloatMatrixView queries, const LookupOptions& options);

  // Deletes the store before the destructor does, and returns the error if the deletion fails. No
  // other method may be called after this one.
  absl::Status Delete();

 private:
  ScratchStore(Client* client, std::string name, const std::atomic<bool>& interrupted);

  // Cancelled once `interrupted_` is set.
  absl::Status CheckInterrupted() const;

  Client* const client_;
  std::string name_;  // Empty if there is no store to delete.
  const std::atomic<bool>& interrupted_;
};

}  // namespace softlookup::recall

#endif  // SOFTLOOKUP_CLIENT_RECALL_SCRATCH_STORE_H_
