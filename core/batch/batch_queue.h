#ifndef SOFTLOOKUP_CORE_BATCH_BATCH_QUEUE_H_
#define SOFTLOOKUP_CORE_BATCH_BATCH_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace softlookup {

// Anything that is to be done over the rows of one store.
class Scan {
 public:
  virtual ~Scan() = default;
};

// What waits to go over a store's rows.
struct WaitingScan {
  std::uint64_t store = 0;
  std::int64_t query_count = 0;
  double cost = 0;  // In multiply-adds, about.
  std::unique_ptr<Scan> scan;
};

// Scans that go over one store's rows together, in the order in which they came.
struct Batch {
  std::uint64_t store = 0;
  std::vector<std::unique_ptr<Scan>> scans;
};

struct BatchOptions {
  // Batches end before they have more queries, unless the first scan has.
  std::int64_t queries_max = 256;
  // How long a scan may wait for others to join it, if it came while its store's batch of several
  // was run: whoever that answers may soon ask again. Who asks alone never waits.
  absl::Duration wait_max = absl::Microseconds(200);
  // Scans that would wait beyond this are turned away.
  double waiting_cost_max = 1e13;
};

// Decides which scans are run next: a batch a store at a time, and of the stores the one that was
// served least of those that wait, so that scans of a large store do not hold up those of small
// ones. Knows no clock: times are told, and must not go back. Not thread-safe.
class BatchQueue {
 public:
  explicit BatchQueue(const BatchOptions& options) : options_(options) {}

  // False, and `scan` is left as it is, if too much waits already; never if `is_admitted`.
  bool Add(WaitingScan& scan, absl::Time now, bool is_admitted);
  // The batch to run now, if there is one. Its store has no other until Done.
  std::optional<Batch> Take(absl::Time now);
  void Done(std::uint64_t store);

  // When Take will have a batch, if nothing is added or done: never if nothing waits but for stores
  // that have a batch running.
  absl::Time NextTime() const;

  // Of all that waits.
  double waiting_cost() const { return waiting_cost_; }

 private:
  struct Waiting {
    WaitingScan scan;
    absl::Time ready;  // When it has waited long enough.
  };
  struct Line {
    std::deque<Waiting> scans;
    std::int64_t query_count = 0;
    bool is_running = false;
    bool is_shared = false;  // The batch that is running has more than one scan.
    double served = 0;       // The cost of its batches; at least that of whom it found waiting.
  };

  absl::Time ReadyTime(const Line& line) const;

  const BatchOptions options_;
  std::map<std::uint64_t, Line> lines_;  // By store.
  double waiting_cost_ = 0;
  double served_ = 0;  // What the store that was last chosen had been served.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BATCH_BATCH_QUEUE_H_
