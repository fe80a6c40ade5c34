#ifndef SOFTLOOKUP_TESTS_FAULTS_JOURNAL_H_
#define SOFTLOOKUP_TESTS_FAULTS_JOURNAL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "softlookup/engine.h"

namespace softlookup::testing {

// What was asked of a store and what came of it, kept outside: numbered appends, whose rows tell
// which append they are of. Submit and Check belong to one thread.
class Journal {
 public:
  explicit Journal(std::string store) : store_(std::move(store)) {}

  absl::Status CreateStore(Engine& engine) const;

  // Appends without waiting for the answer.
  void Submit(Engine& engine, bool durable);
  // Waits for the answers to all appends, and returns the last one's.
  absl::Status AwaitAll();

  // What a store that is opened again may lack, besides appends that were refused.
  enum class MayLack { kNothing, kAppliedSuffix };
  // Holds the store against the journal: appends whole, in order and once, nothing acknowledged
  // missing but what may be, and the same memories and answers as an engine that never stopped has.
  // Then takes what is there for all that there is. Failures are the running test's.
  void Check(Engine& engine, MayLack may_lack);
  // Appends that were refused are not there, as the engine has not been opened again.
  void CheckRefusedAreMissing(Engine& engine);

  std::uint64_t acknowledged_count() const;

 private:
  enum class Outcome { kWaiting, kDurable, kApplied, kRefused };

  std::vector<std::uint64_t> AppendsIn(Engine& engine) const;

  const std::string store_;
  std::uint64_t next_ = 0;
  mutable absl::Mutex mutex_;
  std::map<std::uint64_t, Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
  absl::Status last_answer_ ABSL_GUARDED_BY(mutex_);
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_JOURNAL_H_
