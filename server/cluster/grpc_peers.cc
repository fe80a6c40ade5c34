#include "server/cluster/grpc_peers.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/event_order.h"

namespace softlookup::server {
namespace {

constexpr absl::Duration kFetchTimeout = absl::Seconds(60);

absl::Duration StageTimeout(std::size_t bytes) {
  constexpr double kBytesPerSecond = 4e6;
  return absl::Seconds(10) + absl::Seconds(static_cast<double>(bytes) / kBytesPerSecond);
}

absl::Status NoAddress(const std::string& node) {
  return absl::UnavailableError(absl::StrCat("The address of node ", node, " is not known"));
}

// A part of each call: what gRPC needs of it, and how it ends.
class PeerCall {
 public:
  using Post = absl::AnyInvocable<void(absl::AnyInvocable<void()>)>;

  // `post` is called once, on a thread of gRPC.
  PeerCall(std::shared_ptr<CallSet> calls, std::shared_ptr<cluster::v1::PeerService::Stub> stub,
           absl::Duration timeout, Post post)
      : calls_(std::move(calls)), life_(calls_), stub_(std::move(stub)), post_(std::move(post)) {
    context_.emplace();
    context_->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    calls_->Add(*context_);
  }

  grpc::ClientContext& context() { return *context_; }
  cluster::v1::PeerService::Stub& stub() { return *stub_; }

  // Posts `task`. Must be called once, when gRPC is done with the context. The task takes the stub
  // along, so that this thread of gRPC never has the last reference to the channel (CallSet::Life).
  void End(absl::AnyInvocable<void()> task) {
    calls_->Remove(*context_);
    context_.reset();
    post_([stub = std::move(stub_), task = std::move(task)]() mutable { task(); });
  }

 private:
  const std::shared_ptr<CallSet> calls_;
  const CallSet::Life life_;
  std::shared_ptr<cluster::v1::PeerService::Stub> stub_;
  Post post_;
  std::optional<grpc::ClientContext> context_;
};

// A Stage in progress. Deletes itself.
class StageCall final : public grpc::ClientWriteReactor<cluster::v1::StageRequest> {
 public:
  StageCall(std::unique_ptr<PeerCall> call, cluster::v1::StageHeader header,
            std::shared_ptr<const std::string> bytes, absl::AnyInvocable<void(absl::Status)> done)
      : call_(std::move(call)), bytes_(std::move(bytes)), done_(std::move(done)) {
    *request_.mutable_header() = std::move(header);
  }

  void Start() {
    call_->stub().async()->Stage(&call_->context(), &response_, this);
    Write();
    StartCall();
  }

 private:
  void Write() {
    const bool is_last = written_ == bytes_->size();
    BeforeEvent(this);
    if (is_last) return StartWriteLast(&request_, grpc::WriteOptions());
    StartWrite(&request_);
  }
  void OnWriteDone(bool ok) override {
    InEvent(this);
    if (!ok || written_ == bytes_->size()) return BeforeEvent(this);  // OnDone() follows.
    const std::size_t size = std::min(kPeerChunkBytesMax, bytes_->size() - written_);
    request_.set_chunk(bytes_->data() + written_, size);
    written_ += size;
    Write();
  }
  void OnDone(const grpc::Status& status) override {
    InEvent(this);
    bytes_.reset();
    call_->End([done = std::move(done_), result = FromPeerStatus(status)]() mutable {
      done(std::move(result));
    });
    delete this;
  }

  const std::unique_ptr<PeerCall> call_;
  std::shared_ptr<const std::string> bytes_;
  absl::AnyInvocable<void(absl::Status)> done_;
  std::size_t written_ = 0;  // Bytes in the requests up to the current one.
  cluster::v1::StageRequest request_;
  cluster::v1::StageResponse response_;
};

// A Fetch in progress. Deletes itself.
class FetchCall final : public grpc::ClientReadReactor<cluster::v1::FetchResponse> {
 public:
  FetchCall(std::unique_ptr<PeerCall> call, cluster::v1::FetchRequest request,
            absl::AnyInvocable<void(absl::StatusOr<std::string>)> done)
      : call_(std::move(call)), request_(std::move(request)), done_(std::move(done)) {}

  void Start() {
    call_->stub().async()->Fetch(&call_->context(), &request_, this);
    Read();
    StartCall();
  }

 private:
  void Read() {
    BeforeEvent(this);
    StartRead(&response_);
  }
  void OnReadDone(bool ok) override {
    InEvent(this);
    if (!ok) return;
    refusal_ = Take();
    if (refusal_.ok()) return Read();
    BeforeEvent(this);
    call_->context().TryCancel();
  }
  // Takes what a response has.
  absl::Status Take() {
    if (size_.has_value() == response_.has_size()) {
      return absl::InternalError("The size of an entry is not the first response");
    }
    if (size_.has_value()) {
      const absl::Status appended = AppendChunk(response_.chunk(), *size_, bytes_);
      // It is not the caller's fault.
      return appended.ok() ? appended : absl::InternalError(appended.message());
    }
    if (response_.size() > Entry::kBytesMax) {
      return absl::InternalError(absl::StrCat("An entry cannot have ", response_.size(), " bytes"));
    }
    size_ = response_.size();
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Result(const grpc::Status& status) {
    if (!refusal_.ok()) return refusal_;
    if (!status.ok()) return FromPeerStatus(status);
    if (size_ == bytes_.size()) return std::move(bytes_);
    return absl::InternalError(
        absl::StrCat(bytes_.size(), " bytes came",
                     size_.has_value() ? absl::StrCat(" of the ", *size_, " that were announced")
                                       : " and no size"));
  }
  void OnDone(const grpc::Status& status) override {
    InEvent(this);
    call_->End(
        [done = std::move(done_), result = Result(status)]() mutable { done(std::move(result)); });
    delete this;
  }

  const std::unique_ptr<PeerCall> call_;
  const cluster::v1::FetchRequest request_;
  absl::AnyInvocable<void(absl::StatusOr<std::string>)> done_;
  cluster::v1::FetchResponse response_;
  std::optional<std::uint64_t> size_;  // Once announced.
  std::string bytes_;
  absl::Status refusal_;  // Of a response that is not as it must be.
};

}  // namespace

GrpcPeers::GrpcPeers(PeerOptions options, Post post)
    : options_(std::move(options)), post_(std::move(post)) {}

GrpcPeers::~GrpcPeers() {
  alive_.reset();
  calls_->CancelAll();
}

void GrpcPeers::SetAddress(const std::string& node, const std::string& address) {
  if (address.empty()) {
    nodes_.erase(node);
    return;
  }
  Node& known = nodes_[node];
  if (known.address == address) return;
  known.address = address;
  known.stub = std::make_shared<Stub>(OpenPeerChannel(address, options_.credentials));
}

void GrpcPeers::Stage(const std::string& node, const Entry& entry,
                      absl::AnyInvocable<void(absl::Status)> done) {
  std::shared_ptr<Stub> stub = StubOf(node);
  if (stub == nullptr) {
    return PosterIfAlive()([node, done = std::move(done)]() mutable { done(NoAddress(node)); });
  }
  const auto [place, is_new] = staging_.emplace(node, entry.epoch, entry.sequence);
  if (!is_new) {
    return PosterIfAlive()([node, sequence = entry.sequence, done = std::move(done)]() mutable {
      done(absl::UnavailableError(
          absl::StrCat("Staging entry ", sequence, " on node ", node, " is in progress")));
    });
  }
  cluster::v1::StageHeader header;
  *header.mutable_caller() = CallerOf(options_, node);
  header.set_epoch(entry.epoch);
  header.set_sequence(entry.sequence);
  header.set_previous(entry.previous);
  header.set_digest(entry.digest);
  header.set_size(entry.bytes.size());
  auto call = std::make_unique<PeerCall>(calls_, std::move(stub), StageTimeout(entry.bytes.size()),
                                         PosterIfAlive());
  auto* const stage =
      new StageCall(std::move(call), std::move(header), CopyBytes(entry),
                    [this, staged = *place, done = std::move(done)](absl::Status result) mutable {
                      staging_.erase(staged);
                      done(std::move(result));
                    });
  stage->Start();
}

void GrpcPeers::Fetch(const std::string& node, std::uint64_t sequence, const EntryDigest& digest,
                      absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) {
  std::shared_ptr<Stub> stub = StubOf(node);
  if (stub == nullptr) {
    return PosterIfAlive()([node, done = std::move(done)]() mutable { done(NoAddress(node)); });
  }
  cluster::v1::FetchRequest request;
  *request.mutable_caller() = CallerOf(options_, node);
  request.set_sequence(sequence);
  request.set_digest(digest);
  auto call = std::make_unique<PeerCall>(calls_, std::move(stub), kFetchTimeout, PosterIfAlive());
  auto* const fetch = new FetchCall(std::move(call), std::move(request), std::move(done));
  fetch->Start();
}

std::shared_ptr<GrpcPeers::Stub> GrpcPeers::StubOf(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second.stub;
}

std::shared_ptr<const std::string> GrpcPeers::CopyBytes(const Entry& entry) {
  std::shared_ptr<const std::string> bytes = last_bytes_.lock();
  if (bytes != nullptr && last_digest_ == entry.digest) return bytes;
  bytes = std::make_shared<const std::string>(entry.bytes);
  last_bytes_ = bytes;
  last_digest_ = entry.digest;
  return bytes;
}

}  // namespace softlookup::server
