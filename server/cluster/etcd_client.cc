#include "server/cluster/etcd_client.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/event_order.h"
#include "server/base/queue_event.h"

namespace softlookup::server {
namespace {

namespace pb = etcdserverpb;

// The members of etcd refuse pings that come more often than every 5 s.
constexpr int kKeepaliveMilliseconds = 10'000;
constexpr int kKeepaliveTimeoutMilliseconds = 3'000;
constexpr int kReconnectMillisecondsMax = 1'000;
constexpr absl::Duration kRewatchInterval = absl::Seconds(1);
// A member that is away makes a call fail now and then, which says nothing while others answer.
constexpr absl::Duration kQuietAboutErrors = absl::Seconds(3);
// A refused write is tried again within seconds, unless nobody wants it any more.
constexpr absl::Duration kRefusalsTold = absl::Seconds(10);
// An answer of more than 4 MiB is refused.
constexpr std::int64_t kKeysPerPage = 1'000;

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& endpoint,
                                           const EtcdOptions& options) {
  grpc::ChannelArguments arguments;
  // Otherwise channels to one member share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMillisecondsMax);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(endpoint, options.credentials, arguments);
}

// Whether a member has answered that etcd does not do it: its database is full, there are too many
// requests, or this client may not write.
bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsPermissionDenied(status);
}

pb::RequestOp Read(const std::string& key, bool from_one_member) {
  pb::RequestOp op;
  op.mutable_request_range()->set_key(key);
  op.mutable_request_range()->set_serializable(from_one_member);
  return op;
}

pb::TxnRequest RequestOf(const EtcdTxn& txn) {
  pb::TxnRequest request;
  for (const EtcdCompare& compare : txn.compares) {
    pb::Compare& added = *request.add_compare();
    added.set_result(pb::Compare::EQUAL);
    added.set_key(compare.key);
    if (compare.value.has_value()) {
      added.set_target(pb::Compare::VALUE);
      added.set_value(*compare.value);
    } else {
      added.set_target(pb::Compare::VERSION);
      added.set_version(0);  // That of a key which is absent.
    }
  }
  for (const EtcdPut& put : txn.puts) {
    pb::PutRequest& added = *request.add_success()->mutable_request_put();
    added.set_key(put.key);
    added.set_value(put.value);
    added.set_lease(put.lease);
  }
  for (const std::string& key : txn.reads) {
    *request.add_success() = Read(key, txn.from_one_member);
    if (!txn.compares.empty()) *request.add_failure() = Read(key, txn.from_one_member);
  }
  return request;
}

absl::StatusOr<EtcdTxnResult> ResultOf(const pb::TxnResponse& response, std::size_t put_count,
                                       const std::vector<std::string>& reads) {
  const std::size_t skipped = response.succeeded() ? put_count : 0;
  if (static_cast<std::size_t>(response.responses_size()) != skipped + reads.size()) {
    return absl::InternalError("etcd's answer has another number of results than was asked for");
  }
  EtcdTxnResult result{.succeeded = response.succeeded(), .revision = response.header().revision()};
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const pb::RangeResponse& range =
        response.responses(static_cast<int>(skipped + i)).response_range();
    if (range.kvs_size() > 1 || (range.kvs_size() == 1 && range.kvs(0).key() != reads[i])) {
      return absl::InternalError("etcd's answer has another key than was asked for");
    }
    result.values.push_back(range.kvs_size() == 0 ? std::nullopt
                                                  : std::optional(range.kvs(0).value()));
  }
  return result;
}

// Adds a page of keys in [begin, end) to `listed`. Each key must come after the one before, so a
// listing ends whatever a member answers.
absl::Status AddPage(pb::RangeResponse& page, const std::string& end,
                     std::vector<EtcdKeyValue>& listed) {
  if (page.more() && page.kvs_size() == 0) {
    return absl::InternalError("etcd's answer says that there are more keys, but has none");
  }
  for (pb::KeyValue& kv : *page.mutable_kvs()) {
    if (kv.key() >= end || (!listed.empty() && kv.key() <= listed.back().key)) {
      return absl::InternalError("etcd's answer has a key out of its place");
    }
    if (listed.size() == Etcd::kListedKeysMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("etcd: there are more than ", Etcd::kListedKeysMax, " keys"));
    }
    listed.push_back(
        {.key = std::move(*kv.mutable_key()), .value = std::move(*kv.mutable_value())});
  }
  return absl::OkStatus();
}

}  // namespace

struct EtcdClient::Listing {
  std::string begin;
  std::string end;
  Callback<std::vector<EtcdKeyValue>> done;
  std::vector<EtcdKeyValue> listed;
  std::int64_t revision = 0;     // That of the first page. 0: there was no page.
  bool has_begun_again = false;  // Because etcd no longer had that revision.
};

struct EtcdClient::Member {
  Member(const std::string& endpoint, const EtcdOptions& options)
      : kv(OpenChannel(endpoint, options)), leases(OpenChannel(endpoint, options)) {}

  pb::KV::Stub kv;
  // Leases and the watch have a connection of their own, so that transactions do not hold them up.
  struct LeasesAndWatch {
    explicit LeasesAndWatch(const std::shared_ptr<grpc::Channel>& channel)
        : lease(channel), watch(channel) {}
    pb::Lease::Stub lease;
    pb::Watch::Stub watch;
  } leases;
};

// A stream on which one lease is kept alive once. Deletes itself.
class EtcdClient::KeepAliveStream final
    : public grpc::ClientBidiReactor<pb::LeaseKeepAliveRequest, pb::LeaseKeepAliveResponse> {
 public:
  using Done = absl::AnyInvocable<void(const grpc::Status&, const pb::LeaseKeepAliveResponse&)>;

  KeepAliveStream(std::int64_t lease, std::shared_ptr<CallSet> calls, Done done)
      : calls_(std::move(calls)), life_(calls_), done_(std::move(done)) {
    request_.set_id(lease);
  }

  grpc::ClientContext& context() { return context_; }
  void Start(pb::Lease::Stub& stub) {
    calls_->Add(context_);
    BeforeEvent(this);
    stub.async()->LeaseKeepAlive(&context_, this);
    StartRead(&response_);
    StartWrite(&request_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    InEvent(this);
    has_answer_ = ok;
    BeforeEvent(this);
    // There is nothing more to say. The member would keep the stream.
    context_.TryCancel();
  }
  void OnDone(const grpc::Status& status) override {
    InEvent(this);
    done_(has_answer_ ? grpc::Status::OK : status, response_);
    calls_->Remove(context_);
    delete this;
  }

  const std::shared_ptr<CallSet> calls_;
  const CallSet::Life life_;
  Done done_;
  grpc::ClientContext context_;
  pb::LeaseKeepAliveRequest request_;
  pb::LeaseKeepAliveResponse response_;
  bool has_answer_ = false;
};

// A stream that hears of the changes of a range of keys. Deletes itself.
class EtcdClient::WatchStream final
    : public grpc::ClientBidiReactor<pb::WatchRequest, pb::WatchResponse> {
 public:
  // `on_change` and `on_end` are called on gRPC's threads.
  WatchStream(const std::string& begin, const std::string& end, std::shared_ptr<CallSet> calls,
              OnEtcdChange on_change, absl::AnyInvocable<void()> on_end)
      : calls_(std::move(calls)),
        life_(calls_),
        on_change_(std::move(on_change)),
        on_end_(std::move(on_end)) {
    request_.mutable_create_request()->set_key(begin);
    request_.mutable_create_request()->set_range_end(end);
  }

  grpc::ClientContext& context() { return context_; }
  void Start(pb::Watch::Stub& stub) {
    calls_->Add(context_);
    BeforeEvent(this);
    stub.async()->Watch(&context_, this);
    StartRead(&response_);
    StartWrite(&request_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    InEvent(this);
    if (!ok) return;
    if (response_.canceled()) return context_.TryCancel();
    if (response_.created() || response_.events_size() > 0) {
      on_change_(response_.header().revision());
    }
    BeforeEvent(this);
    StartRead(&response_);
  }
  void OnDone(const grpc::Status&) override {
    InEvent(this);
    on_end_();
    calls_->Remove(context_);
    delete this;
  }

  const std::shared_ptr<CallSet> calls_;
  const CallSet::Life life_;
  OnEtcdChange on_change_;
  absl::AnyInvocable<void()> on_end_;
  grpc::ClientContext context_;
  pb::WatchRequest request_;
  pb::WatchResponse response_;
};

EtcdClient::EtcdClient(EtcdOptions options, Post post)
    : options_(std::move(options)), post_(std::move(post)), calls_(std::make_shared<CallSet>()) {
  for (const std::string& endpoint : options_.endpoints) {
    members_.push_back(std::make_unique<Member>(endpoint, options_));
  }
}

EtcdClient::~EtcdClient() {
  alive_.reset();
  calls_->CancelAll();
}

void EtcdClient::Run(EtcdTxn txn, Callback<EtcdTxnResult> done) {
  Call<pb::TxnRequest, pb::TxnResponse, EtcdTxnResult>(
      RequestOf(txn), [this](auto&&... arguments) { return member().kv.AsyncTxn(arguments...); },
      [put_count = txn.puts.size(), reads = txn.reads](const pb::TxnResponse& response) {
        return ResultOf(response, put_count, reads);
      },
      txn.puts.empty() ? std::move(done) : NotingWrite(std::move(done)));
}

void EtcdClient::List(std::string begin, std::string end,
                      Callback<std::vector<EtcdKeyValue>> done) {
  ListNextPage(std::make_unique<Listing>(
      Listing{.begin = std::move(begin), .end = std::move(end), .done = std::move(done)}));
}

void EtcdClient::ListNextPage(std::unique_ptr<Listing> listing) {
  pb::RangeRequest request;
  // After a key comes the same with a zero byte.
  request.set_key(listing->listed.empty() ? listing->begin : listing->listed.back().key + '\0');
  request.set_range_end(listing->end);
  request.set_limit(kKeysPerPage);
  request.set_revision(listing->revision);
  Call<pb::RangeRequest, pb::RangeResponse, pb::RangeResponse>(
      request, [this](auto&&... arguments) { return member().kv.AsyncRange(arguments...); },
      [](const pb::RangeResponse& response) { return response; },
      [this, listing = std::move(listing)](absl::StatusOr<pb::RangeResponse> page) mutable {
        OnPage(std::move(listing), std::move(page));
      });
}

void EtcdClient::OnPage(std::unique_ptr<Listing> listing, absl::StatusOr<pb::RangeResponse> page) {
  if (absl::IsOutOfRange(page.status()) && !listing->has_begun_again) {
    listing->has_begun_again = true;
    listing->revision = 0;
    listing->listed.clear();
    return ListNextPage(std::move(listing));
  }
  absl::Status status = page.status();
  // A member that has too many requests says nothing about the number of keys.
  if (absl::IsResourceExhausted(status)) status = absl::UnavailableError(status.message());
  if (status.ok()) status = AddPage(*page, listing->end, listing->listed);
  if (!status.ok()) return listing->done(std::move(status));
  if (!page->more()) return listing->done(std::move(listing->listed));
  if (listing->revision == 0) listing->revision = page->header().revision();
  ListNextPage(std::move(listing));
}

void EtcdClient::GrantLease(absl::Duration ttl, Callback<std::int64_t> done) {
  pb::LeaseGrantRequest request;
  request.set_ttl(absl::ToInt64Seconds(absl::Ceil(ttl, absl::Seconds(1))));
  Call<pb::LeaseGrantRequest, pb::LeaseGrantResponse, std::int64_t>(
      request,
      [this](auto&&... arguments) { return member().leases.lease.AsyncLeaseGrant(arguments...); },
      [](const pb::LeaseGrantResponse& response) -> absl::StatusOr<std::int64_t> {
        if (!response.error().empty() || response.id() == 0) {
          return absl::UnavailableError(absl::StrCat("etcd gives no lease: ", response.error()));
        }
        return response.id();
      },
      NotingWrite(std::move(done)));
}

void EtcdClient::KeepAlive(std::int64_t lease, Callback<bool> done) {
  auto* const stream = new KeepAliveStream(
      lease, calls_,
      [this, lease, post = PosterIfAlive(), done = std::move(done)](
          const grpc::Status& status, const pb::LeaseKeepAliveResponse& response) mutable {
        post([this, lease, status, response, done = std::move(done)]() mutable {
          const absl::Status checked = Check(status, response.header());
          if (!checked.ok()) return done(checked);
          done(response.id() == lease && response.ttl() > 0);
        });
      });
  Prepare(stream->context(), options_.call_timeout);
  // Another member each time. A member that is cut off answers as if the lease were alive.
  stream->Start(members_[next_keep_alive_++ % members_.size()]->leases.lease);
}

void EtcdClient::RevokeLease(std::int64_t lease) {
  pb::LeaseRevokeRequest request;
  request.set_id(lease);
  Call<pb::LeaseRevokeRequest, pb::LeaseRevokeResponse, bool>(
      request,
      [this](auto&&... arguments) { return member().leases.lease.AsyncLeaseRevoke(arguments...); },
      [](const pb::LeaseRevokeResponse&) -> absl::StatusOr<bool> { return true; },
      [](const absl::StatusOr<bool>&) {}, AtEnd::kFinish);
}

void EtcdClient::Watch(std::string begin, std::string end, OnEtcdChange on_change) {
  watched_begin_ = std::move(begin);
  watched_end_ = std::move(end);
  on_change_ = std::move(on_change);
  Tick();
}

void EtcdClient::Tick() {
  if (watching_ || on_change_ == nullptr || absl::Now() < next_watch_) return;
  watching_ = true;
  next_watch_ = absl::Now() + kRewatchInterval;
  auto* const stream = new WatchStream(
      watched_begin_, watched_end_, calls_,
      [this, post = PosterIfAlive()](std::int64_t revision) {
        post([this, revision] { on_change_(revision); });
      },
      [this, post = PosterIfAlive()] { post([this] { OnWatchEnd(); }); });
  Prepare(stream->context(), absl::InfiniteDuration());
  watched_ = next_;
  stream->Start(member().leases.watch);
}

void EtcdClient::OnWatchEnd() {
  watching_ = false;
  LeaveMember(watched_);
}

EtcdClient::Member& EtcdClient::member() { return *members_[next_ % members_.size()]; }

void EtcdClient::LeaveMember(std::size_t asked) {
  if (next_ == asked) ++next_;
}

void EtcdClient::Prepare(grpc::ClientContext& context, absl::Duration timeout) const {
  if (timeout != absl::InfiniteDuration()) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  // A member that hears of no leader refuses the call, instead of keeping it.
  context.AddMetadata("hasleader", "true");
}

template <typename Request, typename Response, typename Result, typename Start>
void EtcdClient::Call(const Request& request, Start start,
                      absl::AnyInvocable<absl::StatusOr<Result>(const Response&)> read,
                      Callback<Result> done, AtEnd at_end) {
  // Deletes itself at its event.
  struct Running final : QueueEvent {
    explicit Running(std::shared_ptr<CallSet> set) : calls(std::move(set)), life(calls) {}

    void OnEvent(bool) override {
      const std::unique_ptr<Running> ended(this);
      calls->Remove(context);
      on_end(status, response);
    }

    const std::shared_ptr<CallSet> calls;
    const CallSet::Life life;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader;
    Response response;
    grpc::Status status;
    absl::AnyInvocable<void(const grpc::Status&, Response&)> on_end;
  };
  auto* const running = new Running(calls_);
  running->on_end = [this, asked = next_, post = PosterIfAlive(), read = std::move(read),
                     done = std::move(done)](const grpc::Status& status,
                                             Response& response) mutable {
    post([this, status, asked, response = std::move(response), read = std::move(read),
          done = std::move(done)]() mutable {
      const absl::Status checked = Check(status, response.header());
      if (!checked.ok()) LeaveMember(asked);
      done(checked.ok() ? read(response) : absl::StatusOr<Result>(checked));
    });
  };
  Prepare(running->context, options_.call_timeout);
  calls_->Add(running->context, at_end);
  running->reader = start(&running->context, request, queue_.ForOneCall());
  // Once Finish() is called, the event can come and delete `running`.
  auto* const reader = running->reader.get();
  reader->Finish(&running->response, &running->status, running->tag());
}

void EtcdClient::Failures::Note(const absl::Status& status) {
  if (status.ok()) {
    since = absl::InfiniteFuture();
  } else {
    latest = absl::Now();
    since = std::min(since, latest);
    last = status;
  }
}

std::string EtcdClient::trouble() const {
  const absl::Time now = absl::Now();
  const bool no_calls = now >= of_calls_.since + kQuietAboutErrors;
  const bool no_writes = of_writes_.latest >= of_writes_.since + kQuietAboutErrors &&
                         now < of_writes_.latest + kRefusalsTold;
  if (no_calls && !IsRefusal(of_calls_.last)) {
    return absl::StrCat("etcd does not answer: ", of_calls_.last.message());
  }
  if (no_calls || no_writes) {
    return absl::StrCat("etcd takes no writes: ",
                        (no_writes ? of_writes_ : of_calls_).last.message());
  }
  return "";
}

template <typename Result>
EtcdClient::Callback<Result> EtcdClient::NotingWrite(Callback<Result> done) {
  return [this, done = std::move(done)](absl::StatusOr<Result> result) mutable {
    // Other errors say nothing about writes.
    if (result.ok() || IsRefusal(result.status())) of_writes_.Note(result.status());
    done(std::move(result));
  };
}

absl::Status EtcdClient::Check(const grpc::Status& status, const pb::ResponseHeader& header) {
  absl::Status checked = StatusOf(status, header);
  // That a lease has ended, or that a revision was compacted, is an answer, too.
  const bool is_answer = absl::IsNotFound(checked) || absl::IsOutOfRange(checked);
  of_calls_.Note(is_answer ? absl::OkStatus() : checked);
  return checked;
}

absl::Status EtcdClient::StatusOf(const grpc::Status& status, const pb::ResponseHeader& header) {
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat("etcd: ", status.error_message()));
  }
  if (cluster_id_ == 0) cluster_id_ = header.cluster_id();
  if (header.cluster_id() == cluster_id_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "etcd: a member of another cluster has answered; the endpoints name members of two clusters");
}

}  // namespace softlookup::server
