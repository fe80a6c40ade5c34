#ifndef SOFTLOOKUP_CORE_ENGINE_LOOKUPS_H_
#define SOFTLOOKUP_CORE_ENGINE_LOOKUPS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/base/cancellation.h"
#include "core/engine/job_context.h"
#include "core/engine/lookup_counters.h"
#include "core/scheduler/scheduler.h"
#include "core/store/store.h"
#include "softlookup/engine.h"

namespace softlookup {

// Makes a job of the scheduler from each lookup request, once the store has the revision that the
// request asks for. Thread-safe.
class Lookups {
 public:
  // `context` and `scheduler` must outlive this object.
  Lookups(JobContext& context, Scheduler& scheduler) : context_(context), scheduler_(scheduler) {}

  const LookupCounters& counters() const { return counters_; }

  // Does the same as Engine::Lookup, in a store that the caller has found.
  void Start(LookupRequest request, std::shared_ptr<Store> store,
             std::shared_ptr<CancelToken> cancel, Engine::LookupCallback callback);

  // Does the same as Engine::CheckRoom.
  absl::Status CheckRoom(const Store& store, std::int64_t query_count) const;

 private:
  // Submits the lookup once the store has the request's min_revision. Does not block.
  void StartAtRevision(LookupRequest request, std::shared_ptr<Store> store,
                       std::shared_ptr<CancelToken> cancel, Engine::LookupCallback callback);

  JobContext& context_;
  LookupCounters counters_;
  Scheduler& scheduler_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_LOOKUPS_H_
