#ifndef SOFTLOOKUP_CORE_BATCH_BATCH_QUEUE_H_
#define SOFTLOOKUP_CORE_BATCH_BATCH_QUEUE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "core/batch/work_rate.h"

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
  // What the first scan of a batch costs besides, for all of them: reading the rows.
  double reading_cost = 0;
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
  // How long scans wait, from the first answer of their store's last batch on, for as many of those
  // whom it answers as asked again within that time after the batch before: at most so long, and
  // what reading the rows was of the batch's time, which a batch less saves. Who asks alone never
  // waits.
  absl::Duration wait_max = absl::Milliseconds(5);
  // A scan is turned away if it would be answered later than this, counted from the end of what is
  // running, and later than `stretch_max` times what it takes alone. By the rate of work of late.
  absl::Duration answer_max = absl::InfiniteDuration();
  double stretch_max = 4;
};

// Decides which scans are run next: a batch a store at a time, and of the stores the one that was
// served least of those that wait, so that scans of a large store do not hold up those of small
// ones. Knows no clock: times are told, and must not go back. Not thread-safe.
class BatchQueue {
 public:
  explicit BatchQueue(const BatchOptions& options) : options_(options) {}

  // When to come back, and `scan` is left as it is, if too much waits already: never if
  // `is_admitted`. Else nothing.
  std::optional<absl::Duration> Add(WaitingScan& scan, absl::Time now, bool is_admitted);
  // What Add would return.
  std::optional<absl::Duration> Refusal(const WaitingScan& scan) const;
  // The batch to run now, if there is one. Its store has no other until Done.
  std::optional<Batch> Take(absl::Time now);
  // So many of its scans are answered from now on; the others have been, or are given up. Before
  // Done.
  void Answers(std::uint64_t store, std::int64_t scan_count, absl::Time now);
  // The batch was run; `done_part` of its cost, unless parts of it were given up, is 1.
  void Done(std::uint64_t store, absl::Time now, double done_part);

  // Other work that waits for the same threads, in the order in which it came: as Add, but with an
  // `answer_max` of its own. Then it begins, and ends.
  std::optional<absl::Duration> AddTask(double cost, absl::Duration answer_max);
  WorkRate::Piece BeginTask(double cost, absl::Time now);
  void EndTask(const WorkRate::Piece& task, double cost, absl::Time now, double done_part) {
    rate_.End(task, cost, done_part * cost, now);
  }

  // When Take will have a batch, if nothing is added or done: never if nothing waits but for stores
  // that have a batch running.
  absl::Time NextTime() const;

  // Of all that waits, in multiply-adds.
  double waiting_cost() const;

 private:
  struct Waiting {
    WaitingScan scan;
    double cost = 0;  // What it adds to its line's.
  };
  struct Line {
    std::deque<Waiting> scans;
    std::int64_t query_count = 0;
    std::int64_t last_batch_queries = 0;  // Of the batch that the last scan will be in.
    double waiting_cost = 0;
    double running_cost = 0;
    WorkRate::Piece running;
    bool is_running = false;
    absl::Time begun;               // When the last batch began.
    double reading_part = 0;        // Of its cost, what reading the rows was.
    std::int64_t scan_queries = 0;  // Of one of its scans, about.
    // Scans that were answered last, and that have come since, until `return_until`.
    std::int64_t answered_count = 0;
    std::int64_t returned_count = 0;
    absl::Time return_until = absl::InfinitePast();
    std::int64_t awaited_count = 0;  // Until then, the next batch waits to have so many scans.
    double served = 0;  // The cost of its batches; at least that of whom it found waiting.
  };

  absl::Time ReadyTime(const Line& line) const;
  // Whether a scan would be in a batch with those of its line.
  bool JoinsLast(const Line& line, const WaitingScan& scan) const;
  // When to come back with work of `cost`, that costs `cost_alone` if nothing else waits, if it
  // must not wait for work of `cost_before`.
  std::optional<absl::Duration> Refusal(double cost_before, double cost, double cost_alone,
                                        absl::Duration answer_max) const;

  const BatchOptions options_;
  std::map<std::uint64_t, Line> lines_;  // By store.
  double tasks_cost_ = 0;                // That wait.
  WorkRate rate_;
  double served_ = 0;  // What the store that was last chosen had been served.
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BATCH_BATCH_QUEUE_H_
