#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/engine/load_stores.h"
#include "core/storage/commit_log.h"
#include "softlookup/engine.h"

namespace softlookup {

absl::Status Engine::Verify(const std::string& directory, LoadObserver& observer) {
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::unique_ptr<const CommitLog> log,
                              OpenCommitLogToRead(directory));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::vector<NamedStore> stores, StoresIn(*log));
  absl::Status damage;
  for (const NamedStore& store : stores) {
    // Holds only one store at a time, because all stores of a directory together can exceed this
    // machine's RAM.
    const LoadedStore loaded = LoadStore(store, *log, /*executor=*/nullptr);
    Notify(observer, loaded);
    damage.Update(loaded.store.status());
  }
  const absl::Status checksums = log->VerifyChecksums();
  if (!checksums.ok()) observer.OnDamage(checksums);
  damage.Update(checksums);
  return damage;
}

}  // namespace softlookup
