#ifndef SOFTLOOKUP_SERVER_CLUSTER_ETCD_CLIENT_H_
#define SOFTLOOKUP_SERVER_CLUSTER_ETCD_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/cluster/call_queue.h"
#include "server/cluster/call_set.h"
#include "server/cluster/etcd/etcd.grpc.pb.h"
#include "softlookup/etcd.h"

namespace softlookup::server {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // HOST:PORT of the members; at least one.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  absl::Duration call_timeout = absl::Seconds(2);
};

// A client of an etcd of version 3.4 or later. The functions of Etcd must be called on one thread,
// on which `post` has tasks run one after another.
//
// Calls go to one member until one of them fails there; the next call goes to the next member. The
// one that has failed is not sent again: the caller knows whether it may be. A lease is kept alive
// at another member each time. Leases and watches have connections of their own, so that large
// transactions do not hold them up. Each call asks for a member that hears of a leader.
class EtcdClient final : public Etcd {
 public:
  // Called on any thread, also on several at once.
  using Post = absl::AnyInvocable<void(absl::AnyInvocable<void()>) const>;

  EtcdClient(EtcdOptions options, Post post);
  // Ends all calls, but lets those of RevokeLease() finish, and waits until gRPC is done with them.
  // No callback runs afterwards. Must be called on the thread of the tasks, or when it runs no
  // task.
  ~EtcdClient() override;

  void Run(EtcdTxn txn, Callback<EtcdTxnResult> done) override;
  void List(std::string begin, std::string end, Callback<std::vector<EtcdKeyValue>> done) override;
  void GrantLease(absl::Duration ttl, Callback<std::int64_t> done) override;
  void KeepAlive(std::int64_t lease, Callback<bool> done) override;
  void RevokeLease(std::int64_t lease) override;

  // Calls `on_change` after each change of a key in [begin, end), and each time when the watch was
  // begun anew, since changes before were missed. A watch can be silent for long, so the caller
  // must also look from time to time. Only one range can be watched.
  void Watch(std::string begin, std::string end, OnEtcdChange on_change);
  // Begins the watch anew if it has ended. Call it several times a second.
  void Tick();
  // Says that etcd does not answer, if no call was answered for some seconds. Says that it takes no
  // writes, if it has refused each one for some seconds, and the last one just now. Both say why.
  // Empty otherwise.
  std::string trouble() const;

 private:
  using AtEnd = CallSet::AtEnd;
  class KeepAliveStream;
  class WatchStream;
  struct Listing;
  struct Member;

  // The failures since something went well for the last time.
  struct Failures {
    absl::Time since = absl::InfiniteFuture();
    absl::Time latest = absl::InfinitePast();
    absl::Status last;

    void Note(const absl::Status& status);
  };

  void OnWatchEnd();
  // The member that the next call goes to.
  Member& member();
  // Asks for the next page of a List(). The pages show the revision of the first one.
  void ListNextPage(std::unique_ptr<Listing> listing);
  void OnPage(std::unique_ptr<Listing> listing, absl::StatusOr<etcdserverpb::RangeResponse> page);
  // A call has failed that was made when next_ was `asked`. Calls that fail together at a member
  // that is stuck must not go round all others, back to it.
  void LeaveMember(std::size_t asked);
  // Sets the deadline of a call, and what all calls have.
  void Prepare(grpc::ClientContext& context, absl::Duration timeout) const;
  // Makes a call of `start`, with a request, and passes `done` what `read` makes of the answer, or
  // an error. `start` is passed the context, the request and the queue, and returns gRPC's reader.
  template <typename Request, typename Response, typename Result, typename Start>
  void Call(const Request& request, Start start,
            absl::AnyInvocable<absl::StatusOr<Result>(const Response&)> read, Callback<Result> done,
            AtEnd at_end = AtEnd::kCancel);
  // Returns a function that gRPC's threads may call while a call is in progress. It has a task run
  // on the caller's thread, unless this is gone by then.
  auto PosterIfAlive() {
    return [this, alive = std::weak_ptr(alive_)](absl::AnyInvocable<void()> task) {
      post_([alive, task = std::move(task)]() mutable {
        if (!alive.expired()) task();
      });
    };
  }
  // Returns an error for a status that is not OK, and for a header of another cluster.
  absl::Status Check(const grpc::Status& status, const etcdserverpb::ResponseHeader& header);
  absl::Status StatusOf(const grpc::Status& status, const etcdserverpb::ResponseHeader& header);
  // Returns a callback that notes whether etcd has taken a write, then calls `done`.
  template <typename Result>
  Callback<Result> NotingWrite(Callback<Result> done);

  const EtcdOptions options_;
  const Post post_;
  std::vector<std::unique_ptr<Member>> members_;
  // These count on, and name members modulo their number.
  std::size_t next_ = 0;             // Where the next call goes.
  std::size_t next_keep_alive_ = 0;  // Where a lease is kept alive next.
  std::size_t watched_ = 0;          // next_ when the watch was begun.
  std::uint64_t cluster_id_ = 0;     // Of the first answer.
  Failures of_calls_;
  // An etcd whose database is full refuses writes, and answers most other calls.
  Failures of_writes_;
  // Calls in progress, which the destructor ends.
  const std::shared_ptr<CallSet> calls_;
  CallQueue queue_;  // Of those of Call(). The streams' events come on threads of gRPC.

  std::string watched_begin_, watched_end_;
  OnEtcdChange on_change_;
  bool watching_ = false;
  absl::Time next_watch_ = absl::InfinitePast();
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_CLUSTER_ETCD_CLIENT_H_
