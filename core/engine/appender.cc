#include "core/engine/appender.h"

#include <optional>
#include <utility>
#include <vector>

#include "core/base/cost.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/engine/memories.h"
#include "core/engine/project.h"
#include "core/engine/validate.h"

namespace softlookup {
namespace {

using MayBlock = Committer::MayBlock;

// How long a caller should wait if its append was refused because too many bytes wait.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(50);

// Largest append, in bytes, that the calling thread may write. Writing a larger one takes much
// longer than handing it to the committer's thread.
constexpr std::int64_t kBytesWrittenHereMax = 64 << 10;

// QueuedJob::answer_time_max of the projection of an append's inputs. It is longer than the default
// for a lookup, because only the append's own caller waits for the projection.
constexpr absl::Duration kProjectionTimeMax = absl::Seconds(1);

}  // namespace

absl::Status WriteQueueFull() {
  return WithRetryAfter(MakeError(reasons::kQueueFull,
                                  "More bytes of appends wait to be written than the server holds"),
                        kRetryDelay);
}

// Projects the inputs of an append to its keys and values, then posts the append.
class Appender::ProjectionJob final : public Job {
 public:
  ProjectionJob(Appender& appender, std::shared_ptr<Store> store, const StoreConfig& config,
                RowsToAppend rows, const AppendRequest& request, Answer answer,
                absl::AnyInvocable<void()> on_turn)
      : appender_(appender),
        store_(std::move(store)),
        projection_(config.projection),
        key_dim_(config.key_dim),
        value_dim_(config.value_dim),
        rows_(std::move(rows)),
        inputs_(*request.inputs),
        cancel_(request.deadline),
        answer_(std::move(answer)),
        on_turn_(std::move(on_turn)) {}

  double cost() const {
    return ProjectionCost(inputs_.cols * (key_dim_ + value_dim_), inputs_.rows);
  }
  // Returns the bytes of the inputs, keys and values.
  std::int64_t bytes() const { return 4 * inputs_.rows * (inputs_.cols + key_dim_ + value_dim_); }
  // Copies the inputs, because the caller may destroy its own once Append() returns. Reserves
  // bytes() in the ByteBudget. `taken` are bytes() that were taken from Appender::projections_.
  void OwnInputs(ProjectionBudget::Taken taken) {
    taken_.emplace(std::move(taken));
    owned_inputs_.assign(inputs_.data, inputs_.data + inputs_.rows * inputs_.cols);
    inputs_.data = owned_inputs_.data();
    budgeted_.emplace(appender_.stores_.budget, bytes());
  }

  void Refuse(absl::Status status) override {
    // This append has no number yet. The appends that have one come before it and still run.
    if (rows_.chain != nullptr) EndChain(*rows_.chain, rows_.chain->append_count);
    answer_(std::move(status));
    on_turn_();
  }
  absl::Status Prepare() override {
    SOFTLOOKUP_ASSIGN_OR_RETURN(rows_.keys,
                                Project("inputs", projection_->key, key_dim_, inputs_, cancel_));
    SOFTLOOKUP_ASSIGN_OR_RETURN(
        rows_.values, Project("inputs", projection_->value, value_dim_, inputs_, cancel_));
    return absl::OkStatus();
  }
  const AttentionTask* task() const override { return nullptr; }
  const CancelToken& cancel() const override { return cancel_; }
  void Finish(absl::StatusOr<AttentionAnswer> projected, const JobTimes&) override {
    Post(projected.status(), MayBlock::kNo);
  }

  // Posts the append: its rows if `status` is OK, otherwise its refusal with `status`.
  void Post(const absl::Status& status, MayBlock may_block) {
    const std::shared_ptr<AppendChain> chain = rows_.chain;
    absl::StatusOr<RowsToAppend> rows = std::move(rows_);
    if (!status.ok()) rows = status;
    appender_.Post(std::move(store_), std::move(rows), chain, answer_, may_block);
    on_turn_();
  }

 private:
  Appender& appender_;
  std::shared_ptr<Store> store_;
  const std::shared_ptr<const Projection> projection_;
  const std::int64_t key_dim_;
  const std::int64_t value_dim_;
  RowsToAppend rows_;
  MatrixView inputs_;  // [N, input_dim]
  const CancelToken cancel_;
  const Answer answer_;
  absl::AnyInvocable<void()> on_turn_;
  std::vector<float> owned_inputs_;
  std::optional<ByteBudget::Reserved> budgeted_;
  std::optional<ProjectionBudget::Taken> taken_;  // Set if the inputs are owned.
};

void Appender::Append(const AppendRequest& request, absl::StatusOr<std::shared_ptr<Store>> store,
                      Engine::AppendCallback callback, absl::AnyInvocable<void()> on_turn) {
  const auto shared_callback = std::make_shared<Engine::AppendCallback>(std::move(callback));
  const Answer answer = [shared_callback](absl::StatusOr<AppendResult> result) {
    (*shared_callback)(std::move(result));
  };
  const MayBlock may_block = request.may_block ? MayBlock::kYes : MayBlock::kNo;
  if (!store.ok()) {
    Post(nullptr, store.status(), request.chain, answer, may_block);
    return on_turn();
  }
  const std::shared_ptr<const Snapshot> snapshot = (*store)->snapshot();
  const StoreConfig& config = snapshot->config();
  absl::StatusOr<RowsToAppend> rows = RowsOf(request, config);
  if (!rows.ok() || !request.inputs) {
    Post(*std::move(store), std::move(rows), request.chain, answer, may_block);
    return on_turn();
  }
  auto job = std::make_unique<ProjectionJob>(*this, *std::move(store), config, *std::move(rows),
                                             request, answer, std::move(on_turn));
  if (job->cost() > kInlineCostMax) return ProjectLater(std::move(job));
  const absl::Status projected = job->Prepare();
  job->Post(projected, may_block);
}

void Appender::ProjectLater(std::unique_ptr<ProjectionJob> job) {
  QueuedJob queued{.cost = job->cost(), .answer_time_max = kProjectionTimeMax};
  // A job that has no room is refused before anything is copied or counted.
  if (absl::Status room = scheduler_.CheckRoom(queued); !room.ok()) {
    return job->Refuse(std::move(room));
  }
  std::optional<ProjectionBudget::Taken> taken = projections_.Take(job->bytes());
  if (!taken) return job->Refuse(WriteQueueFull());
  job->OwnInputs(*std::move(taken));
  queued.job = std::move(job);
  scheduler_.Submit(std::move(queued), Scheduler::Admission::kBounded);
}

absl::StatusOr<RowsToAppend> Appender::RowsOf(const AppendRequest& request,
                                              const StoreConfig& config) const {
  SOFTLOOKUP_RETURN_IF_ERROR(CheckAppend(request, config, limits_));
  RowsToAppend rows{.ids = {request.ids.begin(), request.ids.end()},
                    .row_labels = {request.row_labels.begin(), request.row_labels.end()},
                    .on_conflict = request.on_conflict,
                    .writer = request.writer,
                    .sequence = request.sequence,
                    .sync = request.durable ? Sync::kYes : Sync::kNo,
                    .chain = request.chain};
  for (const std::string& name : request.return_memories) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(rows.memories.emplace_back(), FindMemory(config, name));
  }
  if (!request.inputs) {
    rows.keys.assign(request.keys.data, request.keys.data + request.keys.rows * config.key_dim);
    rows.values.assign(request.values.data,
                       request.values.data + request.values.rows * config.value_dim);
  }
  return rows;
}

void Appender::Post(std::shared_ptr<Store> store, absl::StatusOr<RowsToAppend> rows,
                    const std::shared_ptr<AppendChain>& chain, const Answer& answer,
                    MayBlock may_block) {
  const std::uint64_t number = chain == nullptr ? 0 : ++chain->append_count;
  if (rows.ok()) rows->chain_number = number;
  std::unique_ptr<Write> write =
      rows.ok() ? MakeAppend(stores_, std::move(store), *std::move(rows), answer)
                : MakeRefusedAppend(rows.status(), chain, number, answer);
  const bool is_small = write->bytes() <= kBytesWrittenHereMax;
  if (committer_.Post(std::move(write), is_small ? may_block : MayBlock::kNo)) return;
  if (chain != nullptr) EndChain(*chain, number);
  answer(WriteQueueFull());
}

}  // namespace softlookup
