#include "server/rpc/range_calls.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "server/rpc/admission.h"
#include "server/rpc/codec.h"
#include "server/rpc/lookup_wait.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/ranges/ranges.pb.h"
#include "server/rpc/ranges_codec.h"
#include "server/rpc/revision_wait.h"
#include "server/rpc/unary_call.h"
#include "softlookup/partial_lookup.h"

namespace softlookup::server {
namespace {

// A call about a lookup, which may wait for a revision.
template <typename Request, typename Response>
class RangeCall : public MessageCall<Request, Response> {
 public:
  RangeCall(std::unique_ptr<Call> call, Engine& engine)
      : MessageCall<Request, Response>(std::move(call), UnaryCall::RunOn::kNetworkThread),
        engine_(engine),
        cancel_(std::make_shared<CancelToken>(this->call().deadline())) {}
  ~RangeCall() override {
    if (wait_ != nullptr) wait_->End();
  }

  void OnCancel() override { cancel_->Cancel(); }

 protected:
  // The call may wait until the store has `revision`.
  void MayWaitFor(std::uint64_t revision) { MayWait(this->call().RevisionWaitMax(revision)); }
  // As above, for a part of a lookup.
  void MayWaitForPart(std::uint64_t revision) {
    MayWait(this->call().RevisionWaitMax(revision, kPartRevisionWait));
  }

  Engine& engine_;
  const std::shared_ptr<CancelToken> cancel_;

 private:
  void MayWait(absl::Duration wait_max) {
    wait_ = std::make_shared<LookupWait>(this->call(), cancel_);
    this->call().streams().Add(wait_);
    revision_wait_.Start(wait_max, this->call().deadline(), cancel_);
  }

  std::shared_ptr<LookupWait> wait_;  // Null if the call does not wait.
  RevisionWait revision_wait_;
};

// Waits for the revision to answer as of, and tells the ranges.
class BeginLookupCall final
    : public RangeCall<cluster::v1::BeginLookupRequest, cluster::v1::BeginLookupResponse> {
 public:
  using RangeCall::RangeCall;

 private:
  void Run() override;
};

void BeginLookupCall::Run() {
  const std::string& store = request_.store();
  const std::int64_t queries =
      std::min<std::int64_t>(request_.query_count(), engine_.limits().queries_per_lookup_max);
  absl::Status status = call().gate().Enter(store, queries);
  absl::StatusOr<StoreInfo> info = status.ok() ? engine_.GetStore(store) : status;
  if (!info.ok()) return Refuse(info.status());
  const bool waits_for_latest = request_.linearizable() && engine_.asks_for_latest();
  if (request_.min_revision() > 0 || waits_for_latest) MayWaitFor(request_.min_revision());
  // A lookup without queries, in no rows.
  LookupRequest lookup{.store = store,
                       .queries = {.cols = info->config.key_dim},
                       .min_revision = request_.min_revision(),
                       .linearizable = request_.linearizable()};
  engine_.AnswerPart(std::move(lookup), {.range = {.end = 0}}, cancel_,
                     [this](const absl::StatusOr<PartialLookup>& part) {
                       // It is another store of the name that the call has waited for.
                       if (ReasonOf(part.status()) == reasons::kShapeMismatch.name) {
                         return Refuse(MakeError(kSnapshotGone, "The store was replaced"));
                       }
                       absl::StatusOr<StoreInfo> now =
                           part.ok() ? engine_.GetStore(request_.store()) : part.status();
                       if (!now.ok()) return Refuse(now.status());
                       response_.set_revision(part->revision);
                       response_.set_incarnation(part->incarnation);
                       response_.set_row_count(part->row_count);
                       for (const StoreRange& range : now->config.ranges) {
                         cluster::v1::StoreRange& told = *response_.add_ranges();
                         told.set_begin(range.begin);
                         told.mutable_nodes()->Add(range.nodes.begin(), range.nodes.end());
                       }
                       Answer(absl::OkStatus(), response_);
                     });
}

// Answers a part of a lookup.
class AnswerPartCall final
    : public RangeCall<cluster::v1::AnswerPartRequest, cluster::v1::PartialLookup> {
 public:
  // `begins`: the lookup begins with this part.
  AnswerPartCall(std::unique_ptr<Call> call, Engine& engine, bool begins)
      : RangeCall(std::move(call), engine), begins_(begins) {}

 private:
  void Run() override;
  absl::Status Prepare();
  // Charges the lookup, unless it is going to begin anew, and is charged then.
  absl::Status Charge();

  const bool begins_;
  DecodedLookup decoded_;
  LookupReport report_;
};

absl::Status AnswerPartCall::Charge() {
  const v1::LookupRequest& lookup = request_.lookup();
  SOFTLOOKUP_ASSIGN_OR_RETURN(const StoreInfo info, engine_.GetStore(lookup.store()));
  if (info.revision > request_.part().revision()) {
    return MakeError(kSnapshotGone, absl::StrCat("The store is at revision ", info.revision));
  }
  return call().gate().TakeRequest(QueriesOf(lookup, engine_.limits()));
}

absl::Status AnswerPartCall::Prepare() {
  const v1::LookupRequest& lookup = request_.lookup();
  SOFTLOOKUP_RETURN_IF_ERROR(call().gate().Enter(lookup.store()));
  if (begins_) SOFTLOOKUP_RETURN_IF_ERROR(Charge());
  SOFTLOOKUP_RETURN_IF_ERROR(DecodeLookup(lookup, kNoStoreOfStream, decoded_));
  // Whoever has chosen the revision has waited for what that means.
  if (request_.part().revision() > 0) decoded_.request.linearizable = false;
  return absl::OkStatus();
}

void AnswerPartCall::Run() {
  if (absl::Status status = Prepare(); !status.ok()) return Refuse(status);
  LookupPart part = DecodeLookupPart(request_.part());
  part.must_be_newest = begins_;
  MayWaitForPart(part.revision);
  decoded_.request.report = &report_;
  engine_.AnswerPart(
      std::move(decoded_.request), part, cancel_,
      [this](const absl::StatusOr<PartialLookup>& part) {
        absl::Status status = part.status();
        if (status.ok()) {
          response_ = EncodePartialLookup(*part);
          status = CheckAnswerBytes(response_, engine_.limits().message_bytes_max);
        }
        AnswerAs(std::move(status), response_, [&](const absl::Status& final_status) {
          return call().reporter().AnswerLookup(final_status, {.request = request_.lookup(),
                                                               .store = request_.lookup().store(),
                                                               .report = report_});
        });
      });
}

// Answers what a part is asked in the second phase of its lookup.
class SumRowsCall final : public RangeCall<cluster::v1::SumRowsRequest, cluster::v1::RowSums> {
 public:
  using RangeCall::RangeCall;

 private:
  void Run() override;

  DecodedLookup decoded_;
};

void SumRowsCall::Run() {
  absl::Status status = call().gate().Enter(request_.lookup().store());
  if (status.ok()) status = DecodeLookup(request_.lookup(), kNoStoreOfStream, decoded_);
  absl::StatusOr<RowSumsRequest> rows =
      status.ok() ? DecodeRowSumsRequest(request_.rows()) : status;
  if (!rows.ok()) return Refuse(rows.status());
  MayWaitForPart(request_.part().revision());
  engine_.SumRowsOfPart(std::move(decoded_.request), DecodeLookupPart(request_.part()),
                        *std::move(rows), cancel_, [this](const absl::StatusOr<RowSums>& sums) {
                          if (!sums.ok()) return Refuse(sums.status());
                          response_ = EncodeRowSums(*sums);
                          Answer(CheckAnswerBytes(response_, engine_.limits().message_bytes_max),
                                 response_);
                        });
}

}  // namespace

void StartBeginLookup(std::unique_ptr<Call> call, Engine& engine) {
  (new BeginLookupCall(std::move(call), engine))->Start();
}

void StartAnswerPart(std::unique_ptr<Call> call, Engine& engine) {
  (new AnswerPartCall(std::move(call), engine, /*begins=*/false))->Start();
}

void StartAnswerFirstPart(std::unique_ptr<Call> call, Engine& engine) {
  (new AnswerPartCall(std::move(call), engine, /*begins=*/true))->Start();
}

void StartSumRows(std::unique_ptr<Call> call, Engine& engine) {
  (new SumRowsCall(std::move(call), engine))->Start();
}

}  // namespace softlookup::server
