#include "client/tool/append_rows.h"

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/progress_line.h"
#include "client/output/vocabulary.h"
#include "client/tool/exit_code.h"
#include "client/tool/resume_check.h"

namespace softlookup::tool {
namespace {

using output::Counted;
using output::FromWord;

// Most bytes of a request's rows. Well under the server's default of --max-message-bytes, 64 MiB.
constexpr std::uint64_t kBatchBytesMax = 16ull << 20;
constexpr char kCorrectFirst[] = "correct the file; then ";

// Shows how many rows are acknowledged, if standard error is a terminal. Says once for each outage
// why no row is acknowledged, even if standard error is not a terminal.
class Progress {
 public:
  Progress(const Session& session, absl::Duration outage_max)
      : session_(session), outage_max_(outage_max) {}

  // Must be called before the first request is sent. The input has `row_count` rows in all. Its
  // first `rows_before` rows are not sent.
  void Begin(std::optional<std::uint64_t> row_count, std::uint64_t rows_before) {
    shown_.emplace("row", row_count, rows_before);
  }

  void Update(const AppendSummary& summary) {
    if (summary.outage.ok() == in_outage_) {
      in_outage_ = !in_outage_;
      if (in_outage_) Explain(summary.outage, summary.acknowledged_rows > 0);
    }
    shown_->Update(
        summary.acknowledged_rows,
        summary.reconnections == 0 ? "" : absl::StrCat(", reconnections: ", summary.reconnections));
  }

 private:
  void Explain(const absl::Status& failure, bool any_acknowledged) {
    shown_->Clear();
    *session_.err << (any_acknowledged ? "softlookup: nothing more is acknowledged"
                                       : "softlookup: nothing is acknowledged")
                  << ", trying again for up to " << absl::FormatDuration(outage_max_) << ": "
                  << ErrorLine(AfterAnAnswer(failure), session_.server, session_.credential_files)
                  << std::endl;
  }

  const Session& session_;
  const absl::Duration outage_max_;
  std::optional<output::WorkProgress> shown_;
  bool in_outage_ = false;
};

std::uint32_t RowsOf(const v1::AppendRequest& request) {
  return std::max(request.keys().rows(), request.inputs().rows());
}

// Counts the rows that have the id of an earlier row of the input. Keeps all ids.
class IdCounter {
 public:
  // Takes the ids of the input's next rows. Does not count the first `skipped` of them.
  void Add(const google::protobuf::RepeatedField<std::uint64_t>& ids, std::uint64_t skipped) {
    for (int i = 0; i < ids.size(); ++i) {
      const bool is_new = seen_.insert(ids[i]).second;
      if (!is_new && static_cast<std::uint64_t>(i) >= skipped) ++repeated_;
    }
  }

  std::uint64_t repeated() const { return repeated_; }

 private:
  absl::flat_hash_set<std::uint64_t> seen_;
  std::uint64_t repeated_ = 0;
};

class Sender {
 public:
  // `store` is as it was before the first row. `resume_check` is of the stream's writer.
  Sender(const AppendFlags& flags, const v1::Store& store, AppendStream stream,
         ResumeCheck resume_check, const InterruptGuard& interrupt, std::string_view resume_flags)
      : flags_(flags),
        store_(store),
        stream_(std::move(stream)),
        resume_check_(std::move(resume_check)),
        interrupt_(interrupt),
        resume_flags_(resume_flags),
        rows_to_skip_(flags.writer.empty() ? flags.skip_rows
                                           : stream_.resumed_from().last_sequence()) {
    const v1::OnConflict on_conflict = FromWord<v1::OnConflict>(flags.on_conflict);
    if (on_conflict == v1::ON_CONFLICT_REPLACE || on_conflict == v1::ON_CONFLICT_SKIP) {
      ids_.emplace();
    }
  }

  // Sends the rows after the first rows_to_skip(), up to an error of the input or a signal. Waits
  // until the rows sent are acknowledged; with a writer, only until a signal comes.
  absl::StatusOr<AppendSummary> Run(const RowBatches& rows, RowTags tags) {
    // With a writer, a signal cancels the stream. Otherwise the user could wait minutes for a
    // server that is down. No row is lost: the next run asks the server which rows it has.
    std::optional<InterruptAction> cut;
    if (!flags_.writer.empty()) cut.emplace([this] { stream_.Cancel(); });
    const absl::Status sent = Send(rows, &tags);
    absl::StatusOr<AppendSummary> summary = stream_.Finish();
    cut.reset();
    if (!summary.ok() && interrupt_.interrupted() && absl::IsCancelled(summary.status())) {
      const AppendSummary known = stream_.acknowledged();  // The server may have more.
      return AddResumeHint(absl::CancelledError(absl::StrCat(
                               "interrupted; rows acknowledged before: ", known.acknowledged_rows)),
                           known);
    }
    if (!summary.ok()) return AddFailureHint(NameRow(AfterAnAnswer(summary.status()), tags));
    if (sent.ok()) return summary;
    absl::Status counted =
        Annotate(sent, absl::StrCat("rows appended before: ", summary->acknowledged_rows));
    if (!tags.miscounted().empty() && !interrupt_.interrupted()) {
      return AddShiftHint(counted, tags.miscounted(), *summary);
    }
    if (input_ended_) return counted;  // No row is left to append.
    return AddResumeHint(counted, *summary);
  }

  std::uint64_t rows_to_skip() const { return rows_to_skip_; }
  // Rows of the input that were sent, once Run() has returned a summary.
  std::uint64_t sent_rows() const { return rows_read_ - rows_to_skip_; }

  // As AppendReport::repeated_ids, of the rows sent so far.
  std::optional<std::uint64_t> repeated_ids() const {
    if (!ids_.has_value()) return std::nullopt;
    return ids_->repeated();
  }

 private:
  // Adds to `error` how to append the rows that are not yet written. Adds nothing to a UsageError,
  // or if the store is deleted after an error. `summary` counts what is written. Without a signal,
  // `error` is about the input.
  absl::Status AddResumeHint(const absl::Status& error, const AppendSummary& summary) const {
    if (resume_flags_.empty() || ExitCodeOf(error) == ExitCode::kUsage) return error;
    return AddRest(error, interrupt_.interrupted() ? "" : kCorrectFirst, summary);
  }

  // Adds to `error`, after which the file of `tags` has a line too few or too many, how to take
  // back the rows that are written, because no one knows which lines were theirs. Adds nothing if
  // none is, or if the store is deleted after an error.
  absl::Status AddShiftHint(const absl::Status& error, std::string_view tags,
                            const AppendSummary& summary) const {
    const bool any_before = rows_to_skip_ > 0;
    if (resume_flags_.empty() || (summary.acknowledged_requests == 0 && !any_before)) return error;
    const std::string begin = any_before ? "N" : absl::StrCat(store_.row_count());
    return Annotate(error,
                    absl::StrCat("rows already sent may have the ", std::string(tags),
                                 " of others; `softlookup delete-rows ", store_.name(), " --begin ",
                                 begin, "` takes them back, with all rows behind them",
                                 any_before ? " (N: the position of the input's first row)" : "",
                                 "; correct the file; then append all its rows again",
                                 flags_.writer.empty() ? "" : ", with another --writer name"));
  }

  // Adds to `error` how to append the rows that `summary` does not count, after `first`.
  absl::Status AddRest(const absl::Status& error, const char* first,
                       const AppendSummary& summary) const {
    if (!flags_.writer.empty()) {
      return Annotate(error, absl::StrCat(first, "the same command appends the rest"));
    }
    // `rest` is the first row of the input that is not in an acknowledged request. Requests are
    // acknowledged in order.
    const std::uint64_t requests = summary.acknowledged_requests;
    const std::uint64_t rest =
        std::max(rows_to_skip_, requests < first_rows_.size() ? first_rows_[requests] : rows_read_);
    if (rest == 0) return error;
    return Annotate(
        error, absl::StrCat(first, std::string(resume_flags_), " ", rest, " appends the rest"));
  }

  // Adds to `error`, which ended the stream, how to go on. Adds nothing if the store is deleted
  // after an error or is gone.
  absl::Status AddFailureHint(const absl::Status& error) const {
    if (resume_flags_.empty() || absl::IsNotFound(error)) return error;
    const bool lost = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error);
    const absl::Status hinted = lost ? AddLossHint(error) : AddRefusalHint(error);
    const bool may_wait = flags_.writer.empty() && WriterWaits(error);
    return may_wait
               ? Annotate(hinted,
                          "an append with --writer NAME waits until the server takes rows again")
               : hinted;
  }

  // Adds to `error`, without an answer to the last requests, how to go on. The server may then have
  // rows that it has not acknowledged.
  absl::Status AddLossHint(const absl::Status& error) const {
    if (!flags_.writer.empty()) return Annotate(error, "the same command appends the rest");
    return Annotate(
        error, absl::StrCat("more rows may be in the store, as row_count of `softlookup store get` "
                            "tells; ",
                            std::string(resume_flags_), " N appends all but the first N"));
  }

  // Adds to `error`, with which the server refused a request, how to append the rows from that
  // request on. Adds nothing if the server took none before.
  absl::Status AddRefusalHint(const absl::Status& error) const {
    const AppendSummary taken = stream_.acknowledged();
    if (taken.acknowledged_requests == 0) return error;
    const bool is_of_file =
        ErrorMetadata(error).contains("row") && ErrorReason(error) != "ROW_EXISTS";
    return AddRest(error, is_of_file ? kCorrectFirst : "", taken);
  }

  absl::Status Send(const RowBatches& rows, RowTags* tags) {
    const auto batch_rows = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
        kBatchBytesMax / (rows.row_dim * sizeof(float)), 1, flags_.batch_rows));
    for (;;) {
      if (interrupt_.interrupted()) return absl::CancelledError("interrupted");
      v1::AppendRequest batch;
      CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, rows.read(batch_rows, &batch));
      // Ctrl-C also ends a program whose output this tool reads through a pipe. So the input may
      // have ended before its last row.
      if (interrupt_.interrupted()) return absl::CancelledError("interrupted");
      input_ended_ = count == 0;
      if (input_ended_) return CheckAtEnd(tags);
      CLIENT_ASSIGN_OR_RETURN(std::vector<v1::AppendRequest> requests,
                              tags->Tag(count, std::move(batch)));
      for (v1::AppendRequest& request : requests) {
        CLIENT_RETURN_IF_ERROR(Send(std::move(request)));
      }
    }
  }

  // Sends the rows of `request` that come after the first rows_to_skip_ of the input.
  absl::Status Send(v1::AppendRequest request) {
    std::uint64_t first_row = rows_read_;
    rows_read_ += RowsOf(request);
    if (ids_.has_value()) {
      ids_->Add(request.ids(), rows_to_skip_ - std::min(rows_to_skip_, first_row));
    }
    if (first_row < rows_to_skip_) {
      resume_check_.Look(request, first_row);
      if (rows_read_ >= rows_to_skip_) {
        CLIENT_RETURN_IF_ERROR(resume_check_.Check(resume_flags_));
      }
    }
    if (rows_read_ <= rows_to_skip_) return absl::OkStatus();
    // The rows to skip end inside `request`, because --skip-rows says so, or because an earlier run
    // cut the rows differently.
    if (first_row < rows_to_skip_) {
      request = WithoutFirstRows(request, static_cast<std::uint32_t>(rows_to_skip_ - first_row));
      first_row = rows_to_skip_;
    }
    request.set_acknowledge(FromWord<v1::Acknowledge>(flags_.acknowledge));
    request.set_on_conflict(FromWord<v1::OnConflict>(flags_.on_conflict));
    first_rows_.push_back(first_row);
    return stream_.Append(std::move(request));
  }

  absl::Status CheckAtEnd(RowTags* tags) const {
    CLIENT_RETURN_IF_ERROR(tags->CheckAtEnd());
    if (rows_read_ >= rows_to_skip_) return absl::OkStatus();
    if (flags_.writer.empty()) {
      return UsageError(absl::StrCat("--skip-rows is ", flags_.skip_rows, ", but the input has ",
                                     Counted(rows_read_, "row")));
    }
    return UsageError(absl::StrCat("the writer ", flags_.writer, " has sent ",
                                   Counted(rows_to_skip_, "row"), " before, but the input has ",
                                   rows_read_, "; it takes a writer of its own"));
  }

  // If `error` names a row, adds the number of that row in the input, and if its id is taken, the
  // place of the id in its file. The server counts rows from the start of their request.
  absl::Status NameRow(const absl::Status& error, const RowTags& tags) const {
    const std::map<std::string, std::string> metadata = ErrorMetadata(error);
    const auto row = metadata.find("row");
    const std::uint64_t request = stream_.acknowledged().acknowledged_requests;
    std::uint64_t offset;
    if (row == metadata.end() || !absl::SimpleAtoi(row->second, &offset) ||
        request >= first_rows_.size()) {
      return error;
    }
    const std::uint64_t input_row = first_rows_[request] + offset;
    std::string note = absl::StrCat("that is row ", input_row, " (from 0) of the input");
    const std::string id_place = tags.IdPlace(input_row);
    if (!id_place.empty() && ErrorReason(error) == "ROW_EXISTS") {
      absl::StrAppend(&note, ", ", id_place,
                      "; --on-conflict can skip such rows, or replace the old ones and their "
                      "labels");
    }
    return Annotate(error, note);
  }

  const AppendFlags& flags_;
  const v1::Store& store_;
  AppendStream stream_;
  ResumeCheck resume_check_;
  const InterruptGuard& interrupt_;
  const std::string_view resume_flags_;
  // Rows at the start of the input to skip: those of earlier runs with the writer, or --skip-rows.
  const std::uint64_t rows_to_skip_;
  std::vector<std::uint64_t> first_rows_;  // For each request sent: its first row in the input.
  std::uint64_t rows_read_ = 0;
  std::optional<IdCounter> ids_;  // Unset if the server refuses repeated ids.
  bool input_ended_ = false;
};

}  // namespace

bool WriterWaits(const absl::Status& error) {
  return absl::IsUnavailable(error) ||
         (absl::IsResourceExhausted(error) && RetryDelay(error).has_value());
}

RowBatches PairBatches(std::unique_ptr<PairReader> reader, const v1::Store& store) {
  // Shared, because std::function requires a copyable callable.
  const std::shared_ptr<PairReader> shared = std::move(reader);
  return {std::uint64_t{store.key_dim()} + store.value_dim(),
          [shared, keys = FloatMatrix(), values = FloatMatrix()](
              std::uint32_t rows_max,
              v1::AppendRequest* request) mutable -> absl::StatusOr<std::uint32_t> {
            CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count,
                                    shared->Read(rows_max, &keys, &values));
            CLIENT_RETURN_IF_ERROR(FloatMatrixView(keys).ToProto(request->mutable_keys()));
            CLIENT_RETURN_IF_ERROR(FloatMatrixView(values).ToProto(request->mutable_values()));
            return count;
          },
          shared->row_count()};
}

absl::StatusOr<RowTags> OpenTags(const AppendFlags& flags, const RowBatches& rows) {
  if (rows.row_count.has_value()) {
    CLIENT_RETURN_IF_ERROR(CheckTagCounts(flags.ids, flags.labels, *rows.row_count));
  }
  return RowTags::Open(flags.ids, flags.labels);
}

absl::StatusOr<AppendReport> AppendRows(const RowBatches& rows, RowTags tags,
                                        const AppendFlags& flags, const v1::Store& store,
                                        Client* client, const Session& session,
                                        const InterruptGuard& interrupt,
                                        std::string_view resume_flags) {
  AppendStreamOptions options;
  options.deadline = session.StreamDeadline();
  options.writer = flags.writer;
  Progress progress(session, std::min(options.outage_max, options.deadline));
  options.on_progress = [&progress](const AppendSummary& summary) { progress.Update(summary); };
  CLIENT_ASSIGN_OR_RETURN(AppendStream stream, client->OpenAppendStream(store.name(), options));
  const absl::Time start = absl::Now();
  ResumeCheck resume_check;
  if (!flags.writer.empty()) {
    resume_check = ResumeCheck(stream.resumed_from(), store,
                               std::min(options.deadline, ClientOptions().deadline), client);
  }
  Sender sender(flags, store, std::move(stream), std::move(resume_check), interrupt, resume_flags);
  AppendReport report{.skipped_rows = sender.rows_to_skip()};
  progress.Begin(rows.row_count, report.skipped_rows);
  CLIENT_ASSIGN_OR_RETURN(report.summary, sender.Run(rows, std::move(tags)));
  report.elapsed = absl::Now() - start;
  report.repeated_ids = sender.repeated_ids();
  const v1::OnConflict on_conflict = FromWord<v1::OnConflict>(flags.on_conflict);
  if (on_conflict == v1::ON_CONFLICT_SKIP) {
    report.left_out_rows = sender.sent_rows() - report.summary.acknowledged_rows;
  } else if (on_conflict == v1::ON_CONFLICT_REPLACE) {
    const absl::StatusOr<v1::Store> after = client->GetStore(store.name());
    if (after.ok()) report.replaced_rows = ReplacedRows(store, *after, report.summary);
  }
  return report;
}

}  // namespace softlookup::tool
