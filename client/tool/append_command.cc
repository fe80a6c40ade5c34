#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/status_macros.h"
#include "client/tool/append_rows.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/interrupt.h"
#include "client/tool/pair_reader.h"
#include "client/tool/row_reader.h"
#include "client/tool/row_tags.h"
#include "client/tool/whole_store.h"
#include "client/tool/word_store.h"

namespace softlookup::tool {
namespace {

struct AppendCommandFlags {
  std::string store;
  PairInput input;
  std::string inputs;  // Path, or "-" for standard input.
  bool any_store = false;
  AppendFlags append;
};

absl::StatusOr<RowBatches> OpenBatches(const AppendCommandFlags& flags, const v1::Store& store,
                                       const Session& session) {
  if (flags.inputs.empty()) {
    CLIENT_ASSIGN_OR_RETURN(auto pairs, OpenPairs(flags.input, store, session.err));
    return PairBatches(std::move(pairs), store);
  }
  CLIENT_ASSIGN_OR_RETURN(Columns columns, InputColumns(store));
  const std::uint32_t input_dim = columns.count;
  CLIENT_ASSIGN_OR_RETURN(
      std::shared_ptr<RowReader> reader,
      OpenRows(flags.inputs, flags.input.format, std::move(columns), session.err));
  return RowBatches{
      input_dim,
      [reader, input_dim, rows = std::vector<float>()](
          std::uint32_t rows_max,
          v1::AppendRequest* request) mutable -> absl::StatusOr<std::uint32_t> {
        CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, reader->Read(rows_max, &rows));
        CLIENT_RETURN_IF_ERROR(
            FloatMatrixView(rows, count, input_dim).ToProto(request->mutable_inputs()));
        return count;
      },
      reader->row_count()};
}

absl::Status CheckInput(const AppendCommandFlags& flags) {
  const PairInput& input = flags.input;
  const bool pair = !input.keys.empty() && !input.values.empty();
  const bool any_of_pair = !input.keys.empty() || !input.values.empty();
  const int kinds = pair + !input.rows.empty() + !input.words.empty() + !flags.inputs.empty();
  if (any_of_pair + !input.rows.empty() + !input.words.empty() + !flags.inputs.empty() > 1) {
    return UsageError(
        "append takes only one of --keys with --values, --rows, --words and --inputs");
  }
  if (kinds != 1) {
    return UsageError("append needs --keys with --values, or --rows, or --words, or --inputs");
  }
  const std::vector<std::string> files = {input.keys,         input.values, input.rows,
                                          input.words,        flags.inputs, flags.append.ids,
                                          flags.append.labels};
  if (std::count(files.begin(), files.end(), "-") > 1) {
    return UsageError("only one file can be standard input; for keys and values see --rows");
  }
  return absl::OkStatus();
}

absl::Status Append(const AppendCommandFlags& flags, const Session& session) {
  CLIENT_RETURN_IF_ERROR(CheckInput(flags));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  const absl::StatusOr<v1::Store> found = GetWholeStore(flags.store, &client);
  if (absl::IsNotFound(found.status())) {
    return Annotate(found.status(),
                    "`softlookup store create` or `softlookup import` makes a store");
  }
  CLIENT_RETURN_IF_ERROR(found.status());
  const v1::Store& store = *found;
  if (!flags.input.words.empty()) {
    CLIENT_RETURN_IF_ERROR(CheckIsWordStore(store, flags.any_store));
  }
  CLIENT_ASSIGN_OR_RETURN(const RowBatches rows, OpenBatches(flags, store, session));
  CLIENT_ASSIGN_OR_RETURN(RowTags tags, OpenTags(flags.append, rows));
  const InterruptGuard interrupt(InterruptGuard::Reads::kFail);
  CLIENT_ASSIGN_OR_RETURN(const AppendReport report,
                          AppendRows(rows, std::move(tags), flags.append, store, &client, session,
                                     interrupt, "--skip-rows"));
  PrintAppend(report, flags.append, store, session);
  return absl::OkStatus();
}

}  // namespace

void AddAppendCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<AppendCommandFlags>();
  CLI::App* append = app->add_subcommand("append", "Append rows from files to a store");
  append->footer(
      "FILE ends in .npy (floats, integers or booleans), .csv (commas or white space) or .fvecs,\n"
      "or is - for standard input. If the first line of a .csv file is a header, it is skipped.\n"
      "Files are streamed, so they may be of any length. But a .npy file in Fortran order is read\n"
      "whole before its first row is sent, so it must fit in RAM.\n\n"
      "With --writer NAME, run the same command again after any failure: it appends only the rows\n"
      "that the store does not have yet. NAME must stand for this input in this store, and only\n"
      "one command at a time may use it. New rows may be added at the end of the input. An input\n"
      "is refused if the last row that the writer appended is not where it was. After a run that\n"
      "was killed, the next one needs the same --batch-rows, --ids and --labels.\n\n"
      "The server takes or refuses a request as a whole. A request has at most --batch-rows rows,\n"
      "and either all of them have ids or none has. So where --ids has - in places, each run of\n"
      "rows with ids, or without, is a request of its own. If a request fails, the rows of those\n"
      "before it stay written. So --on-conflict is also about ids of earlier requests of this\n"
      "input. Within a request, an id that stands twice is an error.\n\n"
      "Ctrl-C or SIGTERM ends the command, which then says how to append the rest. Without\n"
      "--writer, it first waits until the server has acknowledged the rows already sent. A second\n"
      "signal ends it at once.");
  append->add_option("STORE", flags->store, "Name of the store")->required();
  append->add_option("--keys", flags->input.keys, "File of keys, one per row; needs --values")
      ->type_name("FILE");
  append->add_option("--values", flags->input.values, "File of values, one per row; needs --keys")
      ->type_name("FILE");
  append
      ->add_option("--rows", flags->input.rows,
                   "File of keys and values: each row is a key, then its value")
      ->type_name("FILE");
  CLI::Option* words = append
                           ->add_option("--words", flags->input.words,
                                        "File of words, one per line; each row's key and value are "
                                        "random vectors made from its word")
                           ->type_name("FILE");
  AddAnyStoreFlag(append, words, &flags->any_store);
  append
      ->add_option(
          "--inputs", flags->inputs,
          "File of inputs, one per row, from which the store's projection makes keys and values")
      ->type_name("FILE");
  append
      ->add_option(
          "--format", flags->input.format,
          "Format of standard input (-); the format of a named file follows from its ending")
      ->check(CLI::IsMember(RowFormats()))
      ->capture_default_str();
  AddAppendFlags(append, &flags->append);
  append->callback([=] { session->run = [=] { return Append(*flags, *session); }; });
}

}  // namespace softlookup::tool
