#ifndef SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_TRAFFIC_H_
#define SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_TRAFFIC_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tests/faults/group_faults/client.h"
#include "tests/faults/group_faults/group.h"

namespace softlookup::testing {

// Clients of a group that write and read all the time, and note what they were told.
//
// Writers append to a log, row after row, and replace rows of a bank. They send what was not
// acknowledged again, under its sequence. One more client, which has no sequences, appends batches
// of rows, each once. Readers ask each node for the bank and for lookups.
//
// The last writer, the writer of batches every second time, and one more reader go through the
// router.
class Traffic {
 public:
  static constexpr int kWriters = 3;
  static constexpr std::uint64_t kBankRows = 20;
  static constexpr std::uint32_t kBatchRows = 3;
  // Stores. Values of the log are the numbers of writers, and keys are sequences. Values of the
  // batches are the numbers of batches, from 1.
  static constexpr char kLog[] = "log";
  static constexpr char kBank[] = "bank";
  static constexpr char kBatches[] = "batches";

  // Makes the stores. `group` must outlive this.
  explicit Traffic(Group& group);
  ~Traffic() { Stop(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void Start();
  void Stop();
  // Between the two, writers begin no call. What they have begun goes on.
  void Pause() { is_paused_ = true; }
  void Resume();

  // From a call with true to one with false, the router must answer each lookup, at the latest when
  // it is sent a second time: the router lives, and so does a node that has the rows.
  void ExpectRouted(bool expected);

  // Counts since the start.
  std::uint64_t acknowledged() const;                 // Writes.
  std::uint64_t refused() const { return refused_; }  // Calls of writes that were not made.
  std::uint64_t lookups() const { return lookups_; }
  std::uint64_t failed_lookups() const { return failed_lookups_; }
  // Those through the router. A lookup has failed if it had no answer when it was sent a second
  // time, and is lost if ExpectRouted() asked for answers meanwhile.
  std::uint64_t routed_writes() const { return routed_writes_; }
  std::uint64_t routed_lookups() const { return routed_lookups_; }
  std::uint64_t failed_routed_lookups() const { return failed_routed_lookups_; }
  std::uint64_t lost_routed_lookups() const { return lost_routed_lookups_; }
  // Reads after a write that have seen it.
  std::uint64_t own_writes_seen() const { return own_writes_seen_; }
  // Returns the longest time that a call took whose write was refused, since the last call of this.
  absl::Duration TakeLongestRefusal();
  // The longest time without an acknowledged write, without that of pauses.
  absl::Duration longest_gap() const;
  // The last sequence of a writer that was sent, and the last that was acknowledged.
  std::uint64_t sent(int writer) const { return sent_[writer]; }
  std::uint64_t acknowledged(int writer) const { return acknowledged_[writer]; }
  // Outcomes of the batches, from number 1 on. Call it after Stop().
  const std::vector<Outcome>& batches() const { return batches_; }
  // What was seen that must never be.
  std::vector<std::string> violations() const;

 private:
  void Write(int index);
  void WriteBatches();
  void Read(int node);
  void ReadThroughRouter();
  // Notes that the bank has `revision` at `where`, where it had `last_revision` before.
  void NoteRevision(const std::string& where, std::uint64_t revision, std::uint64_t& last_revision);
  // Returns the revision of the bank at `where`; nullopt if it does not answer.
  std::optional<std::uint64_t> ReadBank(const std::string& where, v1::SoftLookup::Stub& stub);
  // Returns whether there was an answer.
  bool LookUp(v1::SoftLookup::Stub& stub, std::int64_t seconds);
  // Looks up the rows of batch `number`, which was made. Returns whether they are seen, and true if
  // there is no answer. `min_revision` is what the request has; 0: none.
  bool ReadOwn(v1::SoftLookup::Stub& stub, float number, const v1::AppendResponse& appended,
               std::uint64_t min_revision);
  // Appends a row as the next of a writer, again and again until it is acknowledged.
  bool Append(Client& client, const std::string& store, const std::string& writer,
              std::uint64_t sequence, float value, std::optional<std::uint64_t> id);
  void AwaitResumed() const;
  // Notes how a call of a write has ended that began at `begin`. Returns its outcome.
  Outcome NoteOutcome(absl::Time begin, const grpc::Status& status);
  void NoteViolation(std::string what);

  Group& group_;
  std::vector<std::thread> threads_;
  std::atomic<bool> must_stop_ = false;
  std::atomic<bool> is_paused_ = false;
  std::atomic<std::uint64_t> refused_ = 0, lookups_ = 0, failed_lookups_ = 0, own_writes_seen_ = 0;
  std::atomic<std::uint64_t> acknowledged_batches_ = 0;
  std::atomic<std::uint64_t> routed_writes_ = 0, routed_lookups_ = 0, failed_routed_lookups_ = 0,
                             lost_routed_lookups_ = 0;
  std::atomic<std::uint64_t> expectations_ =
      0;  // Calls of ExpectRouted(). Odd: answers are expected.
  std::array<std::atomic<std::uint64_t>, kWriters> sent_{}, acknowledged_{};
  std::vector<Outcome> batches_;  // The thread's of WriteBatches().

  mutable absl::Mutex mutex_;
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
  absl::Time last_acknowledged_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Duration longest_gap_ ABSL_GUARDED_BY(mutex_);
  absl::Duration longest_refusal_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_GROUP_FAULTS_TRAFFIC_H_
