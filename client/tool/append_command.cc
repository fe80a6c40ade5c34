#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/lib/status_macros.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/json.h"
#include "client/tool/pair_reader.h"
#include "client/tool/row_reader.h"
#include "client/tool/row_tags.h"
#include "client/tool/vocabulary.h"

namespace softlookup::tool {
namespace {

constexpr std::uint32_t kBatchRowsMax = 65536;         // The server's limit.
constexpr std::uint64_t kBatchBytesMax = 16ull << 20;  // Well under a message's limit.

struct AppendFlags {
  std::string store;
  PairInput input;
  std::string inputs;  // FILE each.
  std::string ids;
  std::string labels;
  std::string on_conflict;
  std::uint32_t batch_rows = 4096;
  std::string acknowledge;
};

// Rows acknowledged so far, on a terminal only, a few times a second.
class Progress {
 public:
  void Update(std::uint64_t rows) {
    const absl::Time now = absl::Now();
    if (!terminal_ || now < next_) return;
    next_ = now + absl::Milliseconds(200);
    std::cerr << "\r" << rows << " rows" << std::flush;
    shown_ = true;
  }
  ~Progress() {
    if (shown_) std::cerr << "\r\x1b[K";
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  absl::Time next_ = absl::InfinitePast();
  bool shown_ = false;
};

// Fills a request with the next rows, at most so many; returns how many, 0 at the end.
using ReadBatch = std::function<absl::StatusOr<std::uint32_t>(std::uint32_t, v1::AppendRequest*)>;

absl::StatusOr<ReadBatch> OpenPairBatches(const PairInput& input, const v1::Store& store) {
  CLIENT_ASSIGN_OR_RETURN(std::shared_ptr<PairReader> reader, OpenPairs(input, store));
  return [reader, keys = FloatMatrix(), values = FloatMatrix()](
             std::uint32_t rows_max,
             v1::AppendRequest* request) mutable -> absl::StatusOr<std::uint32_t> {
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, reader->Read(rows_max, &keys, &values));
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(keys).ToProto(request->mutable_keys()));
    CLIENT_RETURN_IF_ERROR(FloatMatrixView(values).ToProto(request->mutable_values()));
    return count;
  };
}

absl::StatusOr<ReadBatch> OpenInputBatches(const AppendFlags& flags, const v1::Store& store) {
  CLIENT_ASSIGN_OR_RETURN(Columns columns, InputColumns(store));
  CLIENT_ASSIGN_OR_RETURN(std::shared_ptr<RowReader> reader,
                          OpenRows(flags.inputs, flags.input.format, std::move(columns)));
  return [reader, rows = std::vector<float>()](
             std::uint32_t rows_max,
             v1::AppendRequest* request) mutable -> absl::StatusOr<std::uint32_t> {
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, reader->Read(rows_max, &rows));
    CLIENT_RETURN_IF_ERROR(
        FloatMatrixView(rows, count, reader->cols()).ToProto(request->mutable_inputs()));
    return count;
  };
}

// Sends batches until the input ends.
absl::Status Send(const ReadBatch& read, const AppendFlags& flags, std::uint32_t batch_rows,
                  AppendStream* stream) {
  CLIENT_ASSIGN_OR_RETURN(RowTags tags, RowTags::Open(flags.ids, flags.labels));
  Progress progress;
  for (;;) {
    v1::AppendRequest request;
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, read(batch_rows, &request));
    if (count == 0) return tags.CheckAtEnd();
    CLIENT_RETURN_IF_ERROR(tags.Read(count, &request));
    request.set_acknowledge(FromWord<v1::Acknowledge>(flags.acknowledge));
    request.set_on_conflict(FromWord<v1::OnConflict>(flags.on_conflict));
    CLIENT_RETURN_IF_ERROR(stream->Append(std::move(request)));
    progress.Update(stream->acknowledged().acknowledged_rows);
  }
}

void Print(const AppendSummary& summary, const v1::Store& store, absl::Duration elapsed,
           const Session& session) {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const double rows_per_second = static_cast<double>(summary.acknowledged_rows) / seconds;
  // Where nothing was appended, the store is as it was.
  const bool wrote = summary.acknowledged_requests > 0;
  const std::uint64_t row_count = wrote ? summary.row_count : store.row_count();
  const std::uint64_t revision = wrote ? summary.revision : store.revision();
  if (session.json) {
    PrintJson({{"store", store.name()},
               {"rows", summary.acknowledged_rows},
               {"seconds", seconds},
               {"rows_per_second", rows_per_second},
               {"row_count", row_count},
               {"revision", revision}},
              session.out);
  } else {
    *session.out << absl::StreamFormat(
        "appended %d rows in %.3f s, %.0f rows/s; %s has %d rows at revision %d\n",
        summary.acknowledged_rows, seconds, rows_per_second, store.name(), row_count, revision);
  }
}

absl::Status CheckInput(const AppendFlags& flags) {
  const PairInput& input = flags.input;
  const bool pair = !input.keys.empty() && !input.values.empty();
  const bool any_of_pair = !input.keys.empty() || !input.values.empty();
  const int kinds = pair + !input.rows.empty() + !input.words.empty() + !flags.inputs.empty();
  if (kinds != 1 || any_of_pair != pair) {
    return UsageError("append needs --keys with --values, or --rows, or --words, or --inputs");
  }
  const std::vector<std::string> files = {input.keys,   input.values, input.rows,  input.words,
                                          flags.inputs, flags.ids,    flags.labels};
  if (std::count(files.begin(), files.end(), "-") > 1) {
    return UsageError("only one file can be standard input; for keys and values see --rows");
  }
  if (!flags.on_conflict.empty() && flags.ids.empty()) {
    return UsageError("--on-conflict goes with --ids");
  }
  return absl::OkStatus();
}

absl::Status Append(const AppendFlags& flags, const Session& session) {
  CLIENT_RETURN_IF_ERROR(CheckInput(flags));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, client.GetStore(flags.store));
  const bool pairs = flags.inputs.empty();
  CLIENT_ASSIGN_OR_RETURN(const ReadBatch read, pairs ? OpenPairBatches(flags.input, store)
                                                      : OpenInputBatches(flags, store));
  const std::uint64_t row_dim =
      pairs ? std::uint64_t{store.key_dim()} + store.value_dim() : store.projection().key().cols();
  const auto batch_rows = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kBatchBytesMax / (row_dim * sizeof(float)), 1, flags.batch_rows));

  AppendStreamOptions options;
  if (session.timeout_s.has_value()) options.deadline = absl::Seconds(*session.timeout_s);
  CLIENT_ASSIGN_OR_RETURN(AppendStream stream, client.OpenAppendStream(flags.store, options));
  const absl::Time start = absl::Now();
  absl::Status sent = Send(read, flags, batch_rows, &stream);
  CLIENT_ASSIGN_OR_RETURN(const AppendSummary summary, stream.Finish());
  if (!sent.ok()) {  // The input's fault: what came before it is written.
    absl::Status status(
        sent.code(),
        absl::StrCat(sent.message(), " (rows appended before: ", summary.acknowledged_rows, ")"));
    sent.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
    return status;
  }
  Print(summary, store, absl::Now() - start, session);
  return absl::OkStatus();
}

}  // namespace

void AddAppendCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<AppendFlags>();
  CLI::App* append = app->add_subcommand("append", "Stream rows from a file into a store");
  append->footer(
      "FILE ends in .npy (float32 or float64), .csv (commas or white space) or .fvecs, or is - "
      "for\n"
      "standard input. Files are streamed, so they may be of any length.");
  append->add_option("STORE", flags->store, "Name of the store")->required();
  append->add_option("--keys", flags->input.keys, "Keys, with --values")->type_name("FILE");
  append->add_option("--values", flags->input.values, "Values, with --keys")->type_name("FILE");
  append->add_option("--rows", flags->input.rows, "Rows of the key, then the value")
      ->type_name("FILE");
  append
      ->add_option("--words", flags->input.words,
                   "Words, one a line; their encodings are keys and values")
      ->type_name("FILE");
  append
      ->add_option("--inputs", flags->inputs,
                   "What the store's projection makes keys and values of")
      ->type_name("FILE");
  append->add_option("--ids", flags->ids, "An id a line, one a row")->type_name("FILE");
  append
      ->add_option("--on-conflict", flags->on_conflict,
                   "What to do where the store has a row of that id (default fail)")
      ->check(CLI::IsMember(Words<v1::OnConflict>()));
  append->add_option("--labels", flags->labels, "A line a row, its labels between commas")
      ->type_name("FILE");
  append->add_option("--format", flags->input.format, "What standard input holds")
      ->check(CLI::IsMember(RowFormats()))
      ->capture_default_str();
  append->add_option("--batch-rows", flags->batch_rows, "Rows a request, fewer if they are large")
      ->check(CLI::Range(1u, kBatchRowsMax))
      ->capture_default_str();
  append
      ->add_option("--acknowledge", flags->acknowledge,
                   "What a row counts as written from (default durable)")
      ->check(CLI::IsMember(Words<v1::Acknowledge>()));
  append->callback([=] { session->run = [=] { return Append(*flags, *session); }; });
}

}  // namespace softlookup::tool
