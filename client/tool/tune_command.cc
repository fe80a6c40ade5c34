#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/progress_line.h"
#include "client/output/table.h"
#include "client/output/vocabulary.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/tuning.h"
#include "client/tool/tuning_chart.h"
#include "client/tool/validators.h"
#include "client/tool/whole_file.h"
#include "client/tool/whole_store.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::Align;
using output::FromWord;
using output::Json;
using output::Table;
using output::Word;

// `tune` prints a note if at least one row in this many has a twin.
constexpr std::size_t kRowsPerTwin = 100;

struct TuneFlags {
  std::string store;
  std::vector<std::string> scores;
  std::vector<double> temperatures;
  std::uint32_t rows = 400;
  std::uint64_t seed = 1;
  std::string by;
  std::string plot;
  bool set = false;
};

std::vector<Setting> SettingsFrom(const TuneFlags& flags, const v1::Store& store) {
  std::vector<v1::Score> scores;
  for (const std::string& word : flags.scores) scores.push_back(FromWord<v1::Score>(word));
  if (scores.empty()) {
    scores = {store.score() == v1::SCORE_UNSPECIFIED ? v1::SCORE_SCALED_DOT : store.score()};
  }
  std::vector<Setting> settings;
  for (const v1::Score score : scores) {
    std::vector<double> temperatures =
        flags.temperatures.empty() ? DefaultTemperatures(score) : flags.temperatures;
    std::sort(temperatures.begin(), temperatures.end());
    for (const double temperature : temperatures) settings.push_back({score, temperature});
  }
  return settings;
}

// Returns the name of the figure that decides. UsageError if the values do not have that figure.
absl::StatusOr<std::string> Decisive(const TuneFlags& flags, const std::vector<LeftOutRow>& rows) {
  const bool distributions = ValuesAreDistributions(rows);
  if (flags.by.empty()) return std::string(distributions ? kLogLikelihood : kSquaredError);
  if (flags.by == kLogLikelihood && !distributions) {
    return UsageError(absl::StrCat("--by log-likelihood needs values of two or more components ",
                                   "that are at least 0 and add up to 1, unlike those of ",
                                   flags.store));
  }
  if (flags.by == kAccuracy && rows[0].value.data.size() == 1) {
    return UsageError(absl::StrCat("--by accuracy needs values of two or more components, but ",
                                   flags.store, " has value_dim 1"));
  }
  return flags.by;
}

// Returns the index of the best figures. Of equally good ones, those with the least squared error
// win, and of these the first.
std::size_t Best(const std::vector<Figures>& figures, const std::string& by) {
  const double sign = by == kSquaredError ? 1 : -1;
  const auto loss = [&](const Figures& each) {
    return std::pair(sign * FigureNamed(by, each), each.squared_error);
  };
  return std::min_element(figures.begin(), figures.end(),
                          [&](const Figures& a, const Figures& b) { return loss(a) < loss(b); }) -
         figures.begin();
}

// Returns the shortest text that reads back as `number`.
std::string NumberText(double number) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), number).ptr};
}

Json SettingJson(const Setting& setting, const Figures& figures) {
  Json json = {{"score", Word(setting.score)}, {"temperature", setting.temperature}};
  if (figures.accuracy.has_value()) json["accuracy"] = *figures.accuracy;
  if (figures.log_likelihood.has_value()) json["log_likelihood"] = *figures.log_likelihood;
  json["squared_error"] = figures.squared_error;
  json["perplexity"] = figures.perplexity;
  return json;
}

void PrintTuningJson(const Tuning& tuning, bool set, std::ostream* out) {
  Json settings = Json::array();
  for (std::size_t i = 0; i < tuning.settings.size(); ++i) {
    settings.push_back(SettingJson(tuning.settings[i], tuning.figures[i]));
  }
  output::PrintJson(
      {{"store", tuning.store.name()},
       {"left_out_rows", tuning.rows.size()},
       {"by", tuning.by},
       {"settings", std::move(settings)},
       {"best", SettingJson(tuning.settings[tuning.best], tuning.figures[tuning.best])},
       {"set", set}},
      out);
}

void PrintTable(const Tuning& tuning, const Session& session) {
  const bool accuracy = tuning.figures[0].accuracy.has_value();
  const bool log_likelihood = tuning.figures[0].log_likelihood.has_value();
  // The figure that decides is never hidden.
  const auto rank = [&](const char* figure, int hidden) {
    return tuning.by == figure ? 0 : hidden;
  };
  std::vector<Table::Column> columns = {{"score"}, {"temperature", Align::kRight}};
  if (accuracy) columns.push_back({"accuracy", Align::kRight, rank(kAccuracy, 2)});
  if (log_likelihood) {
    columns.push_back({"log-likelihood", Align::kRight, rank(kLogLikelihood, 1)});
  }
  columns.insert(columns.end(), {{"squared error", Align::kRight, rank(kSquaredError, 3)},
                                 {"perplexity", Align::kRight, 4},
                                 {""}});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < tuning.settings.size(); ++i) {
    const Figures& figures = tuning.figures[i];
    std::vector<std::string> cells = {Word(tuning.settings[i].score),
                                      NumberText(tuning.settings[i].temperature)};
    if (accuracy) cells.push_back(absl::StrFormat("%.4f", *figures.accuracy));
    if (log_likelihood) cells.push_back(absl::StrFormat("%.4f", *figures.log_likelihood));
    cells.push_back(absl::StrFormat("%#.4g", figures.squared_error));
    cells.push_back(absl::StrFormat("%.2f", figures.perplexity));
    cells.push_back(i == tuning.best ? "best" : "");
    table.AddRow(std::move(cells));
  }
  session.Print(&table);
}

void PrintTuning(const Tuning& tuning, bool set, const Session& session) {
  if (session.json) return PrintTuningJson(tuning, set, session.out);
  PrintTable(tuning, session);
  const Setting& best = tuning.settings[tuning.best];
  const std::string store = TerminalText(tuning.store.name());
  const std::string score = Word(best.score), temperature = NumberText(best.temperature);
  *session.out << absl::StreamFormat(
      "%d of %s of %s left out, one at a time; best by %s\n", tuning.rows.size(),
      output::Counted(tuning.store.live_row_count(), "row"), store, tuning.by);
  if (set) {
    *session.out << absl::StreamFormat("%s now has score %s and temperature %s\n", store, score,
                                       temperature);
  } else {
    *session.out << absl::StreamFormat("softlookup store update %s --score %s --temperature %s\n",
                                       store, score, temperature);
  }
}

// Says on `err` if the best temperature is the lowest or the highest of those tried with its score.
// A better one may then lie beyond.
void NoteRange(const std::vector<Setting>& settings, std::size_t best, std::ostream* err) {
  const v1::Score score = settings[best].score;
  const bool lowest = best == 0 || settings[best - 1].score != score;
  const bool highest = best + 1 == settings.size() || settings[best + 1].score != score;
  if (lowest == highest) return;  // Between others, or the only one.
  *err << "softlookup: the best temperature is the " << (lowest ? "lowest" : "highest")
       << " tried; --temperatures tries others\n";
}

// Says on session.err if rows that were left out have twins, such as those of a file that was
// appended twice, and how many if not all have. A twin answers for its row. Says nothing if fewer
// than one in kRowsPerTwin has one, or if the rows cannot be read.
void NoteTwins(const Tuning& tuning, const Session& session, Client* client) {
  const std::size_t count =
      CountTwins(tuning.store, tuning.rows, session.StreamDeadline(), client).value_or(0);
  if (count * kRowsPerTwin < tuning.rows.size()) return;
  if (count == tuning.rows.size()) {
    *session.err << "softlookup: each row may have a twin: those that were compared have another "
                    "row of the same key and value, which answers for them, so the figures tell "
                    "nothing (was a file appended twice?)\n";
    return;
  }
  *session.err << absl::StreamFormat(
      "softlookup: %d of %s have another row with the same key and value, which flatters the "
      "figures\n",
      count, output::Counted(tuning.rows.size(), "sampled row"));
}

absl::Status WritePlot(const Tuning& tuning, const std::string& path, const Session& session) {
  CLIENT_RETURN_IF_ERROR(WriteFile(path, TuningSvg(tuning)));
  if (!session.json) *session.out << "plot written to " << TerminalText(path) << "\n";
  return absl::OkStatus();
}

absl::Status SetBest(const Tuning& tuning, Client* client) {
  v1::Store store;
  store.set_name(tuning.store.name());
  store.set_score(tuning.settings[tuning.best].score);
  store.set_temperature(tuning.settings[tuning.best].temperature);
  return client->UpdateStore(store, {"score", "temperature"}).status();
}

absl::Status Tune(const TuneFlags& flags, const Session& session) {
  CLIENT_RETURN_IF_ERROR(CheckWritable(flags.plot));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  Tuning tuning;
  CLIENT_ASSIGN_OR_RETURN(tuning.store, GetWholeStore(flags.store, &client));
  CLIENT_RETURN_IF_ERROR(CheckHeads(tuning.store));
  if (tuning.store.live_row_count() < 2) {
    return InputError(flags.store, absl::StrCat("tune needs at least 2 rows, but the store has ",
                                                tuning.store.live_row_count()));
  }
  CLIENT_ASSIGN_OR_RETURN(tuning.rows, DrawRows(tuning.store, flags.rows, flags.seed,
                                                session.StreamDeadline(), &client));
  if (tuning.rows.empty()) return InputError(flags.store, "its rows were deleted meanwhile");
  tuning.settings = SettingsFrom(flags, tuning.store);
  CLIENT_ASSIGN_OR_RETURN(tuning.by, Decisive(flags, tuning.rows));
  output::WorkProgress progress("row", tuning.rows.size());
  absl::StatusOr<std::vector<Figures>> figures =
      LeaveOneOut(tuning.store, tuning.rows, tuning.settings, &client,
                  [&](std::uint64_t done) { progress.Update(done); });
  CLIENT_RETURN_IF_ERROR(AfterAnAnswer(figures.status()));
  tuning.figures = *std::move(figures);
  progress.Clear();
  tuning.best = Best(tuning.figures, tuning.by);
  // Print the figures even if the update failed, because computing them may have taken long.
  absl::Status updated = flags.set ? SetBest(tuning, &client) : absl::OkStatus();
  PrintTuning(tuning, flags.set && updated.ok(), session);
  NoteRange(tuning.settings, tuning.best, session.err);
  NoteTwins(tuning, session, &client);
  if (!flags.plot.empty()) updated.Update(WritePlot(tuning, flags.plot, session));
  return updated;
}

}  // namespace

void AddTuneCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* tune =
      app->add_subcommand("tune", "Find the score and temperature that answer a store's rows best");
  tune->footer(
      "Leaves out one row at a time, looks up its key in all other rows, and compares the answer\n"
      "with the row's value. Scans the store once for each row that is left out, each score and\n"
      "each temperature.\n\n"
      "The log-likelihood is the mean of ln(p), where p is the answer's component at the place of\n"
      "the value's largest one; a p below 1e-5 counts as 1e-5. The perplexity is exp(the mean\n"
      "entropy of the weights).");
  tune->add_option("STORE", flags->store, "Name of the store")->required();
  tune->add_option("--scores", flags->scores,
                   "Scores to try (default: the store's, else scaled-dot)")
      ->type_name("SCORE,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(output::Words<v1::Score>()));
  tune->add_option("--temperatures", flags->temperatures,
                   "Temperatures to try (default: 13, from 0.01 to 100; cosine: from 0.005 to 1)")
      ->type_name("T,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(InRange(1e-6, 1e6));
  tune->add_option("--rows", flags->rows,
                   "Maximum number of rows to leave out, one at a time; they are drawn at random")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  tune->add_option("--seed", flags->seed, "Seed of the draw")->capture_default_str();
  tune->add_option("--by", flags->by,
                   "Figure to judge by (default: log-likelihood if values are distributions, else "
                   "squared-error)")
      ->check(CLI::IsMember({kAccuracy, kLogLikelihood, kSquaredError}));
  tune->add_option("--plot", flags->plot,
                   "Also write a plot of the figure of --by against temperature to this file")
      ->type_name("FILE.svg")
      ->check(NameEndsIn(".svg"));
  tune->add_flag("--set", flags->set, "Give the store the best score and temperature");
  tune->callback([=] { session->run = [=] { return Tune(*flags, *session); }; });
}

}  // namespace softlookup::tool
