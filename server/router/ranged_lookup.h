#ifndef SOFTLOOKUP_SERVER_ROUTER_RANGED_LOOKUP_H_
#define SOFTLOOKUP_SERVER_ROUTER_RANGED_LOOKUP_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/alarm.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/method.h"
#include "server/cluster/shared_limit.h"
#include "server/router/node_turns.h"
#include "server/router/part_reader.h"
#include "server/router/ranged_stores.h"
#include "server/router/route.h"
#include "server/router/routed_call.h"
#include "softlookup/engine.h"
#include "softlookup/partial_lookup.h"

namespace softlookup::server {

// A lookup in a store that is cut into ranges. Asks one replica for the revision to answer as of
// and for the ranges as they are then; then each range for its part; and where top_k selects rows,
// the ranges that have some of them a second time (docs/decisions/0029-partial-answers.md). If the
// router knows the ranges of a store that does not change, the first step is left out, and one of
// the parts finds out whether that is still so. If a range does not keep the revision, or does not
// have the store yet, begins again. Asks a node that has many ranges for a few parts at a time.
// Thread-safe.
class RangedLookup final : public Route, public std::enable_shared_from_this<RangedLookup> {
 public:
  static std::shared_ptr<RangedLookup> Make(const RouterParts& parts, RoutedRequest request,
                                            std::string store, Done done);

  void Start() override;
  void Cancel() override;

 private:
  // A range of the store in one round.
  struct Range {
    PositionRange positions;
    std::vector<std::string> nodes;  // The one that is asked first comes first.
    std::optional<PartialLookup> part;
    std::vector<SharedLimit::Share> bytes;  // Of what the range has answered.
    bool has_sums = false;  // The range has answered in the second phase, or was not asked.
  };
  struct Ending {
    absl::Status status;
    grpc::ByteBuffer response;
  };
  // Reads the answer of `range` to a call of `round`, and takes the step that comes next. Decoding
  // takes time, so these are called without the mutex.
  using OnAnswer = void (RangedLookup::*)(int round, std::size_t range, grpc::ByteBuffer& response);

  RangedLookup(const RouterParts& parts, RoutedRequest request, std::string store, Done done);

  // Calls `step` unless the lookup is over, then done_ if that has called Finish().
  template <typename Step>
  void Run(Step step);
  // Runs `step` if the round is still this one.
  template <typename Step>
  void RunIn(int round, Step step);
  void Finish(absl::Status status, const grpc::ByteBuffer& response = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The steps of a round.
  void Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnBegun(int round, std::size_t, grpc::ByteBuffer& response) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the ranges that a first round can ask at once. Null if it must begin with a
  // BeginLookup.
  std::shared_ptr<const RangesAt> KnownRanges() const;
  void AskForParts(const RangesAt& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AskForPart(std::size_t range, bool is_further) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetRanges(const RangesAt& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnPart(int round, std::size_t range, grpc::ByteBuffer& response) ABSL_LOCKS_EXCLUDED(mutex_);
  void MergeParts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnSums(int round, std::size_t range, grpc::ByteBuffer& response) ABSL_LOCKS_EXCLUDED(mutex_);
  void FinishIfComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Begins the next round: at once after the first ones, later after a pause, within
  // RoutedCall::kTryMax.
  void BeginAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A call has failed that asked for what the router knows. What can go otherwise with newer ranges
  // and at other nodes begins again.
  void OnKnownError(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A call of this round has failed.
  void OnError(std::optional<std::size_t> range, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool continues() const;

  // Asks a replica, those of `range` first if it is one. Calls `on_answer` with its answer.
  void Ask(Method method, const grpc::ByteBuffer& bytes, std::optional<std::size_t> range,
           OnAnswer on_answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As Ask(), with `request` to `range`, which is sent with the lookup in it.
  void AskRange(Method method, const google::protobuf::MessageLite& request, std::size_t range,
                OnAnswer on_answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The node that is asked first for a range. Empty if any node has its rows.
  std::string FirstNodeOf(std::size_t range) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The node that was asked for this range has answered. Starts the next calls to it.
  void EndTurn(std::size_t range) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The positions that the lookup's filter leaves of a store's, as far as its form is right.
  PositionRange FilteredPositions(std::uint64_t row_count) const;
  // What a range has to know of the lookup.
  LookupPart PartOf(std::size_t range) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the calls of this round. Their answers do not come any more.
  void DropCalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RouterParts parts_;
  const PartReader reader_;
  const RoutedRequest request_;
  const std::string store_;
  const absl::Time give_up_;  // By the steady clock.

  std::atomic<bool> is_cancelled_{false};
  absl::Mutex mutex_;
  Done done_ ABSL_GUARDED_BY(mutex_);  // Null once the lookup is over.
  std::optional<Ending> ending_ ABSL_GUARDED_BY(mutex_);
  std::string group_ ABSL_GUARDED_BY(mutex_);
  int round_ ABSL_GUARDED_BY(mutex_) = 0;
  // What the first round asks for. Null if it begins with a BeginLookup.
  std::shared_ptr<const RangesAt> known_ ABSL_GUARDED_BY(mutex_);
  std::size_t begins_with_ ABSL_GUARDED_BY(mutex_) = 0;  // The range of the AnswerFirstPart.
  bool is_charged_ ABSL_GUARDED_BY(mutex_) = false;      // A node counts the queries.
  std::uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t incarnation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Range> ranges_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<RoutedCall>> calls_ ABSL_GUARDED_BY(mutex_);      // Of this round.
  NodeTurns<std::shared_ptr<RoutedCall>> turns_ ABSL_GUARDED_BY(mutex_);        // Of this round.
  std::vector<std::shared_ptr<RoutedCall>> to_start_ ABSL_GUARDED_BY(mutex_);   // By Run().
  std::vector<std::shared_ptr<RoutedCall>> to_cancel_ ABSL_GUARDED_BY(mutex_);  // By Run().
  std::optional<MergedLookup> merged_ ABSL_GUARDED_BY(mutex_);
  std::vector<RowSums> sums_ ABSL_GUARDED_BY(mutex_);
  std::optional<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_ROUTER_RANGED_LOOKUP_H_
