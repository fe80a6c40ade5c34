#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/progress_line.h"
#include "client/output/vocabulary.h"
#include "client/tool/attention_flags.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/filter_flags.h"
#include "client/tool/listed_labels.h"
#include "client/tool/lookup_batches.h"
#include "client/tool/lookup_printer.h"
#include "client/tool/named_rows.h"
#include "client/tool/npy_writer.h"
#include "client/tool/row_reader.h"
#include "client/tool/validators.h"
#include "client/tool/whole_file.h"
#include "client/tool/whole_store.h"
#include "client/tool/word_list.h"
#include "client/tool/word_store.h"
#include "softlookup/word_encoder.h"

namespace softlookup::tool {
namespace {

using output::FromWord;
using output::Words;

struct LookupFlags {
  std::string store;
  std::string queries;                // Path, or "-" for standard input.
  std::string inputs;                 // Path, or "-" for standard input.
  std::vector<std::string> literals;  // Queries such as "1,2,3".
  std::vector<std::string> words;
  bool any_store = false;
  std::vector<std::string> row_names;
  std::string format = "csv";
  std::string names;
  bool labels = false;
  std::string values_out;

  AttentionFlags attention;
  FilterFlags filter;
  std::string source;
  std::string memory;
  std::uint64_t min_revision = 0;
  bool linearizable = false;
};

LookupOptions OptionsFrom(const LookupFlags& flags) {
  LookupOptions options;
  options.attention = flags.attention.ToProto();
  options.filter = flags.filter.ToProto();
  options.source = FromWord<v1::Source>(flags.source);
  options.memory = flags.memory;
  options.min_revision = flags.min_revision;
  options.linearizable = flags.linearizable;
  options.queries_are_inputs = !flags.inputs.empty();
  return options;
}

absl::Status AddLiteral(const std::string& literal, FloatMatrix* queries) {
  std::uint32_t count = 0;
  for (const absl::string_view field : absl::StrSplit(literal, ',')) {
    float number;
    if (!absl::SimpleAtof(field, &number) || !std::isfinite(number)) {
      return UsageError(absl::StrCat("--query ", literal, ": \"", field,
                                     "\" is not a finite number; commas separate numbers, and "
                                     "--queries takes a file"));
    }
    queries->data.push_back(number);
    ++count;
  }
  if (count != queries->cols) {
    return UsageError(absl::StrCat("--query ", literal, " has ", output::Counted(count, "number"),
                                   ", but key_dim is ", queries->cols));
  }
  ++queries->rows;
  return absl::OkStatus();
}

// Returns the queries that the flags ask for. `positions` holds the names that the file flags.names
// gives. It is empty without that file.
absl::StatusOr<FloatMatrix> QueriesFrom(const LookupFlags& flags, const v1::Store& store,
                                        const PositionNames& positions, const Session& session,
                                        Client* client) {
  const std::uint32_t key_dim = store.key_dim();
  if (!flags.queries.empty()) {
    return ReadMatrix(flags.queries, flags.format, {key_dim, "key_dim"}, session.err);
  }
  if (!flags.inputs.empty()) {
    CLIENT_ASSIGN_OR_RETURN(const Columns columns, InputColumns(store));
    return ReadMatrix(flags.inputs, flags.format, columns, session.err);
  }
  if (!flags.row_names.empty()) {
    return KeysOfNames(store, flags.row_names, positions, session, client);
  }
  FloatMatrix queries{.rows = 0, .cols = key_dim, .data = {}};
  for (const std::string& literal : flags.literals) {
    CLIENT_RETURN_IF_ERROR(AddLiteral(literal, &queries));
  }
  if (flags.words.empty()) return queries;
  CLIENT_RETURN_IF_ERROR(CheckIsWordStore(store, flags.any_store));
  const WordEncoder encoder(key_dim);
  for (const std::string& word : flags.words) {
    const std::vector<float> encoding = encoder.Encode(word);
    queries.data.insert(queries.data.end(), encoding.begin(), encoding.end());
    ++queries.rows;
  }
  return queries;
}

// Appends the rows of the answers' values to `values`.
void Add(const LookupAnswer& answer, FloatMatrix* values) {
  values->rows += answer.values.rows;
  values->cols = answer.values.cols;
  values->data.insert(values->data.end(), answer.values.data.begin(), answer.values.data.end());
}

// UsageError if `filter` has more than an end. A memory stands for all rows before that, so the
// server ignores the rest of the filter.
absl::Status CheckFilterOfMemory(const FilterFlags& filter) {
  v1::RowFilter rest = filter.ToProto();
  rest.clear_end();
  if (rest.ByteSizeLong() == 0) return absl::OkStatus();
  return UsageError(
      "--source memory takes no flag of the group Rows but --end: a memory stands for all rows "
      "before it");
}

// Says on session.err that no row has the labels or ids that the flags ask for, if none has. For
// lookups whose answers are all empty.
void NoteIfNoRow(const LookupFlags& flags, const Session& session, Client* client) {
  const std::string note = flags.filter.NoRowNote(flags.store);
  if (note.empty()) return;
  ReadRowsOptions options;
  options.read_mask = {"position"};
  options.page_rows = 1;
  options.deadline = session.StreamDeadline();
  bool found = false;
  const absl::Status read = client->ReadRows(
      flags.store, flags.filter.ToProto(),
      [&found](const v1::ReadRowsResponse& page) {
        found = found || page.rows_size() > 0;
        return !found;
      },
      options);
  if (read.ok() && !found) *session.err << note;
}

absl::Status Lookup(const LookupFlags& flags, const Session& session) {
  const int kinds = !flags.queries.empty() + !flags.literals.empty() + !flags.words.empty() +
                    !flags.row_names.empty() + !flags.inputs.empty();
  if (kinds != 1) {
    return UsageError(
        absl::StrCat(kinds == 0 ? "lookup needs one of " : "lookup takes only one of ",
                     "--queries, --query, --name, --words and --inputs"));
  }
  if (std::find(flags.row_names.begin(), flags.row_names.end(), "") != flags.row_names.end()) {
    return UsageError("--name must not be empty");
  }
  if (!flags.memory.empty() && FromWord<v1::Source>(flags.source) != v1::SOURCE_MEMORY) {
    return UsageError("--memory goes with --source memory");
  }
  if (FromWord<v1::Source>(flags.source) == v1::SOURCE_MEMORY) {
    CLIENT_RETURN_IF_ERROR(CheckFilterOfMemory(flags.filter));
  }
  if (flags.labels && !flags.source.empty() &&
      FromWord<v1::Source>(flags.source) != v1::SOURCE_ROWS) {
    return UsageError("--labels goes with --source rows, as a memory has no labels");
  }
  CLIENT_RETURN_IF_ERROR(CheckWritable(flags.values_out));
  // The file is written although nobody reads all tables, as with `| head`.
  if (!flags.values_out.empty()) signal(SIGPIPE, SIG_IGN);
  LookupLabels labels{.store = flags.store,
                      .queries = flags.words.empty() ? flags.row_names : flags.words,
                      .positions = {},
                      .rows = flags.labels ? std::optional(LabelsByPosition()) : std::nullopt};
  if (!flags.names.empty()) {
    CLIENT_ASSIGN_OR_RETURN(labels.positions, ReadNames(flags.names));
  }
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, GetWholeStore(flags.store, &client));
  WarnOfOtherRows(labels.positions, store, session);
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix queries,
                          QueriesFrom(flags, store, labels.positions, session, &client));
  LookupPrinter printer(labels, session);
  output::WorkProgress progress("query", queries.rows);
  FloatMatrix values;  // Of all answers, if --values-out is set; else empty.
  std::uint64_t answered = 0;
  bool all_empty = true;
  absl::Status labels_read;
  CLIENT_RETURN_IF_ERROR(AfterAnAnswer(
      LookupInBatches(store, queries, OptionsFrom(flags), &client, [&](const LookupAnswer& answer) {
        if (!labels_read.ok()) return;
        if (flags.labels) {
          labels_read = ReadListedLabels(answer, flags.store, session, &client, &*labels.rows);
          if (!labels_read.ok()) return;
        }
        if (!flags.values_out.empty()) Add(answer, &values);
        progress.Clear();
        printer.Add(answer);
        answered += answer.values.rows;
        all_empty = all_empty && std::all_of(answer.stats.begin(), answer.stats.end(),
                                             [](const auto& stats) { return stats.empty(); });
        progress.Update(answered);
      })));
  progress.Clear();
  CLIENT_RETURN_IF_ERROR(labels_read);
  if (!flags.values_out.empty()) CLIENT_RETURN_IF_ERROR(WriteNpy(flags.values_out, values));
  printer.Finish();
  if (all_empty && answered > 0) NoteIfNoRow(flags, session, &client);
  return absl::OkStatus();
}

void AddQueryFlags(CLI::App* lookup, LookupFlags* flags) {
  lookup
      ->add_option("--queries", flags->queries,
                   "File of queries, one per row: .npy, .csv, .fvecs, or - for standard input")
      ->type_name("FILE");
  lookup
      ->add_option(
          "--inputs", flags->inputs,
          "File of inputs, as for --queries, from which the store's projection makes queries")
      ->type_name("FILE");
  lookup->add_option("--query", flags->literals, "One query of key_dim numbers; may be repeated")
      ->type_name("X,Y,...")
      ->allow_extra_args(false);
  lookup
      ->add_option("--name", flags->row_names,
                   "Ask with the key of the row that has this label or, with --names, this name; "
                   "may be repeated")
      ->allow_extra_args(false);
  CLI::Option* words = lookup
                           ->add_option("--words", flags->words,
                                        "Words whose random vectors are the queries, in a store of "
                                        "`store create --words`; may be repeated")
                           ->type_name("WORD,...")
                           ->delimiter(',')
                           ->allow_extra_args(false);
  AddAnyStoreFlag(lookup, words, &flags->any_store);
  lookup
      ->add_option(
          "--format", flags->format,
          "Format of standard input (-); the format of a named file follows from its ending")
      ->check(CLI::IsMember(RowFormats()))
      ->capture_default_str();
}

void AddSourceFlags(CLI::App* lookup, LookupFlags* flags) {
  lookup
      ->add_option("--source", flags->source,
                   "What to query (default rows); rows-and-memory: also the mean of all rows "
                   "before --begin or --last")
      ->check(CLI::IsMember(Words<v1::Source>()));
  lookup->add_option("--memory", flags->memory,
                     "With --source memory: name of the running memory (default average); see "
                     "`softlookup memory`");
  lookup->add_option(
      "--min-revision", flags->min_revision,
      "Wait, up to --timeout, until the store has this revision or a later one (default: no wait)");
  lookup->add_flag("--linearizable", flags->linearizable,
                   "See all writes acknowledged to anyone before, at any server of a group");
}

void AddOutputFlags(CLI::App* lookup, LookupFlags* flags) {
  lookup
      ->add_option(
          "--names", flags->names,
          "File of names to print beside positions: line N names position N-1, if it is not blank")
      ->type_name("FILE");
  lookup->add_flag("--labels", flags->labels, "Also print the labels of the listed rows");
  lookup
      ->add_option("--values-out", flags->values_out,
                   "Also write the answers to this file, one row per query")
      ->type_name("FILE.npy")
      ->check(NameEndsIn(".npy"));
}

}  // namespace

void AddLookupCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<LookupFlags>();
  CLI::App* lookup =
      app->add_subcommand("lookup", "Answer queries with the weighted sum of a store's values");
  lookup->add_option("STORE", flags->store, "Name of the store")->required();
  AddQueryFlags(lookup, flags.get());
  AddAttentionFlags(lookup, &flags->attention);
  AddSourceFlags(lookup, flags.get());
  AddFilterFlags(lookup, &flags->filter);
  lookup->get_option("--end")->description(
      "Only rows below this position (default: all). Rows deleted or replaced since do not come "
      "back");
  AddOutputFlags(lookup, flags.get());
  lookup->callback([=] { session->run = [=] { return Lookup(*flags, *session); }; });
}

}  // namespace softlookup::tool
