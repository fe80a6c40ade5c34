#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/output/vocabulary.h"
#include "client/recall/posner_experiment.h"
#include "client/recall/word_recall.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/interrupt.h"
#include "client/tool/lookup_printer.h"
#include "client/tool/validators.h"
#include "client/tool/whole_file.h"
#include "client/tool/word_list.h"
#include "softlookup/similarity.h"

namespace softlookup::tool {
namespace {

using output::Align;
using output::Counted;
using output::Json;
using output::PrintJson;
using output::Table;
using output::Word;
using recall::CueOutcome;
using recall::PosnerDesign;
using recall::PosnerPoint;
using recall::RecalledWord;
using recall::WordDesign;
using recall::WordRecall;

struct RecallFlags {
  // For words and for the experiment.
  std::uint32_t dim = 64;
  std::string similarity = "cosine";
  std::optional<double> noise;
  std::vector<double> temperatures;
  std::uint64_t seed = 1;

  // For words only.
  WordDesign words = {.words = {"apple", "bread", "cloud", "drum", "eagle"}, .cue = "apple"};
  std::string words_file;
  double temperature = 0.25;

  // For the experiment only.
  std::string experiment;
  PosnerDesign posner;
  std::string plot;
};

// Sets the fields that both kinds of design have. Without --noise, a design keeps its default.
template <typename Design>
void SetCommon(const RecallFlags& flags, Design* design) {
  design->dim = flags.dim;
  design->noise = flags.noise.value_or(design->noise);
  design->similarity = flags.similarity == Word(v1::SCORE_EUCLIDEAN) ? Similarity::Euclidean()
                                                                     : Similarity::Cosine();
  design->seed = flags.seed;
}

Json RecallJson(const WordRecall& recall, const std::vector<std::string>& words) {
  Json weights = Json::array();
  for (int i = 0; i < recall.weights.positions_size(); ++i) {
    weights.push_back({{"word", words[recall.weights.positions(i)]},
                       {"score", recall.weights.scores(i)},
                       {"weight", recall.weights.weights(i)}});
  }
  return {{"temperature", recall.temperature},
          {"entropy", recall.stats.entropy()},
          {"perplexity", recall.perplexity()},
          {"weights", std::move(weights)},
          {"remaining_weight", recall.weights.remaining_weight()}};
}

void PrintRecallJson(const WordDesign& design, const std::vector<WordRecall>& recalls,
                     const Session& session) {
  const RecalledWord recalled = NearestWord(design, recalls[0].context);
  Json json = {{"cue", design.cue},         {"word_count", design.words.size()},
               {"dim", design.dim},         {"similarity", Word(design.similarity.score())},
               {"noise", design.noise},     {"seed", design.seed},
               {"recalled", recalled.word}, {"recalled_similarity", recalled.similarity}};
  json.update(RecallJson(recalls[0], design.words));
  Json sweep = Json::array();
  for (std::size_t i = 1; i < recalls.size(); ++i) {
    sweep.push_back(RecallJson(recalls[i], design.words));
  }
  json["sweep"] = std::move(sweep);
  PrintJson(json, session.out);
}

void PrintWeights(const WordRecall& recall, const std::vector<std::string>& words,
                  std::ostream* out) {
  Table table({{"word"}, {"score", Align::kRight}, {"weight", Align::kRight}, {""}});
  for (int i = 0; i < recall.weights.positions_size(); ++i) {
    const double weight = recall.weights.weights(i);
    table.AddRow({words[recall.weights.positions(i)],
                  absl::StrFormat("%.4f", recall.weights.scores(i)), WeightText(weight),
                  std::string(static_cast<std::size_t>(std::lround(weight * kBarWidth)), '#')});
  }
  table.Print(out, "  ");
}

// Prints how much weight the first few words of `recalls[0]` have at the temperatures of the other
// `recalls`. The words rank alike at all temperatures, so that only weights near 0 are not listed.
void PrintSweep(const std::vector<WordRecall>& recalls, const std::vector<std::string>& words,
                std::ostream* out) {
  constexpr int kWordsMax = 5;
  const v1::QueryWeights& first = recalls[0].weights;
  const int shown = std::min(first.positions_size(), kWordsMax);
  std::vector<Table::Column> columns = {{"temperature", Align::kRight}};
  for (int i = 0; i < shown; ++i)
    columns.push_back({cli::TerminalText(words[first.positions(i)]), Align::kRight});
  columns.insert(columns.end(), {{"entropy", Align::kRight}, {"perplexity", Align::kRight}});
  Table table(std::move(columns));
  for (std::size_t r = 1; r < recalls.size(); ++r) {
    std::map<std::uint64_t, double> weight_at;  // By position. Unlisted: near 0.
    for (int i = 0; i < recalls[r].weights.positions_size(); ++i) {
      weight_at[recalls[r].weights.positions(i)] = recalls[r].weights.weights(i);
    }
    std::vector<std::string> cells = {absl::StrFormat("%g", recalls[r].temperature)};
    for (int i = 0; i < shown; ++i) {
      cells.push_back(WeightText(weight_at[first.positions(i)]));
    }
    cells.push_back(absl::StrFormat("%.4f", recalls[r].stats.entropy()));
    cells.push_back(absl::StrFormat("%.2f", recalls[r].perplexity()));
    table.AddRow(std::move(cells));
  }
  table.Print(out, "  ");
}

void PrintRecall(const WordDesign& design, const std::vector<WordRecall>& recalls,
                 const Session& session) {
  if (session.json) return PrintRecallJson(design, recalls, session);
  std::ostream& out = *session.out;
  const WordRecall& recall = recalls[0];
  const std::string similarity = Word(design.similarity.score());
  out << absl::StreamFormat("cue \"%s\"", cli::TerminalText(design.cue));
  if (design.noise > 0) {
    out << absl::StreamFormat(" with noise %g, seed %d", design.noise, design.seed);
  }
  out << absl::StreamFormat("; %s in %s, %s, temperature %g\n",
                            Counted(design.words.size(), "word"), Counted(design.dim, "dimension"),
                            similarity, recall.temperature);
  PrintWeights(recall, design.words, &out);
  if (recall.weights.remaining_weight() > 0) {
    out << "  weight of the others " << WeightText(recall.weights.remaining_weight()) << "\n";
  }
  const RecalledWord recalled = NearestWord(design, recall.context);
  out << absl::StreamFormat(
      "recalled \"%s\": the answer's %s similarity to it is %.4f\n"
      "entropy %.4f nats, perplexity %.2f: like a choice among %.2f equal words\n",
      cli::TerminalText(recalled.word), similarity, recalled.similarity, recall.stats.entropy(),
      recall.perplexity(), recall.perplexity());
  if (recalls.size() == 1) return;
  out << "\nweights sharpen as the temperature falls\n";
  PrintSweep(recalls, design.words, &out);
}

absl::Status RunWords(RecallFlags flags, const Session& session) {
  WordDesign& design = flags.words;
  SetCommon(flags, &design);
  if (!flags.words_file.empty()) {
    CLIENT_ASSIGN_OR_RETURN(design.words, ReadWords(flags.words_file));
    if (design.words.empty()) return InputError(flags.words_file, "holds no word");
  }
  std::vector<double>& temperatures = flags.temperatures;
  if (temperatures.empty()) temperatures = {10, 2, 1, 0.5, 0.25, 0.1, 0.05};
  std::sort(temperatures.rbegin(), temperatures.rend());
  temperatures.insert(temperatures.begin(), flags.temperature);
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  // The temporary InterruptGuard lives until the call below has returned.
  CLIENT_ASSIGN_OR_RETURN(
      const std::vector<WordRecall> recalls,
      RecallWords(design, temperatures, &client, InterruptGuard().interrupted()));
  PrintRecall(design, recalls, session);
  return absl::OkStatus();
}

Json CueJson(const CueOutcome& outcome) {
  return {{"accuracy", outcome.accuracy}, {"entropy", outcome.entropy}};
}

Json PosnerJson(const PosnerDesign& design, const std::vector<PosnerPoint>& points) {
  Json list = Json::array();
  for (const PosnerPoint& point : points) {
    list.push_back({{"temperature", point.temperature},
                    {"valid", CueJson(point.valid)},
                    {"invalid", CueJson(point.invalid)}});
  }
  return {{"experiment", "posner"},
          {"memories", design.item_count},
          {"dim", design.dim},
          {"similarity", Word(design.similarity.score())},
          {"trials", design.trial_count},
          {"noise", design.noise},
          {"cue_strength", design.cue_strength},
          {"seed", design.seed},
          {"chance", 1.0 / design.item_count},
          {"points", std::move(list)}};
}

void PrintPosner(const PosnerDesign& design, const std::vector<PosnerPoint>& points,
                 const Session& session) {
  if (session.json) return PrintJson(PosnerJson(design, points), session.out);
  *session.out << absl::StreamFormat(
      "Posner's cueing experiment: %s in %s, %s,\n"
      "%s a cue kind, noise %g, cue strength %g, seed %d\n",
      Counted(design.item_count, "memory"), Counted(design.dim, "dimension"),
      Word(design.similarity.score()), Counted(design.trial_count, "trial"), design.noise,
      design.cue_strength, design.seed);
  Table table({{"temperature", Align::kRight},
               {"accuracy valid", Align::kRight},
               {"accuracy invalid", Align::kRight},
               {"entropy valid", Align::kRight},
               {"entropy invalid", Align::kRight}});
  for (const PosnerPoint& point : points) {
    table.AddRow({absl::StrFormat("%g", point.temperature),
                  absl::StrFormat("%.4f", point.valid.accuracy),
                  absl::StrFormat("%.4f", point.invalid.accuracy),
                  absl::StrFormat("%.4f", point.valid.entropy),
                  absl::StrFormat("%.4f", point.invalid.entropy)});
  }
  table.Print(session.out, "  ");
  *session.out << absl::StreamFormat(
      "accuracy is the mean weight on the target, entropy is in nats;\n"
      "by chance they are 1/%d = %.4f and %.4f\n",
      design.item_count, 1.0 / design.item_count, std::log(design.item_count));
}

absl::Status RunExperiment(RecallFlags flags, const Session& session) {
  PosnerDesign& design = flags.posner;
  SetCommon(flags, &design);
  std::vector<double>& temperatures = flags.temperatures;
  if (temperatures.empty()) {
    temperatures = {0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3,
                    0.5,  0.7,  1,    2,    5,    10,  20,   50,  100};
  }
  std::sort(temperatures.begin(), temperatures.end());
  CLIENT_RETURN_IF_ERROR(CheckWritable(flags.plot));
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  // The temporary InterruptGuard lives until the call below has returned.
  CLIENT_ASSIGN_OR_RETURN(const std::vector<PosnerPoint> points,
                          RunPosner(design, temperatures, &client, InterruptGuard().interrupted()));
  PrintPosner(design, points, session);
  if (flags.plot.empty()) return absl::OkStatus();
  CLIENT_RETURN_IF_ERROR(WriteFile(flags.plot, PosnerSvg(design, points)));
  if (!session.json) *session.out << "plot written to " << cli::TerminalText(flags.plot) << "\n";
  return absl::OkStatus();
}

void AddCommonFlags(CLI::App* recall, RecallFlags* flags) {
  recall
      ->add_option("--dim", flags->dim,
                   "Dimension of the random vector that stands for a word or an item")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  recall
      ->add_option("--similarity", flags->similarity,
                   "Measure of how alike the cue and a remembered item are")
      ->check(CLI::IsMember({Word(v1::SCORE_COSINE), Word(v1::SCORE_EUCLIDEAN)}))
      ->capture_default_str();
  recall
      ->add_option("--noise", flags->noise,
                   "Length of the noise added to the cue (default 0) or to each target of the "
                   "experiment (default 1.5)")
      ->check(InRange(0, 1e6));
  recall
      ->add_option("--temperatures", flags->temperatures,
                   "Temperatures to compare in the table (default: from 0.05 to 10; experiment: "
                   "0.01 to 100)")
      ->type_name("T,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(InRange(1e-6, 1e6));
  recall
      ->add_option(
          "--seed", flags->seed,
          "Decides the noise, and the items of the experiment, but not the vectors of words")
      ->capture_default_str();
}

void AddWordFlags(CLI::App* recall, CLI::Option* experiment, RecallFlags* flags) {
  recall
      ->add_option(
          "WORD-CUE", flags->words.cue,
          "The cue: a word to ask with. The most similar of the remembered words is recalled")
      ->capture_default_str()
      ->excludes(experiment);
  auto* file =
      recall->add_option("--words", flags->words_file, "File of words to remember, one per line")
          ->type_name("FILE")
          ->excludes(experiment);
  recall
      ->add_option("--word", flags->words.words,
                   "Words to remember (default apple,bread,cloud,drum,eagle); may be repeated")
      ->type_name("WORD,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(experiment)
      ->excludes(file);
  recall
      ->add_option("--temperature", flags->temperature,
                   "Temperature: high spreads the weight over the words, low gives it to one")
      ->check(InRange(1e-6, 1e6))
      ->capture_default_str()
      ->excludes(experiment);
  recall->add_option("--top", flags->words.top, "Number of words to show, largest weights first")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->excludes(experiment);
}

void AddExperimentFlags(CLI::App* recall, CLI::Option* experiment, RecallFlags* flags) {
  PosnerDesign& design = flags->posner;
  recall
      ->add_option("--trials", design.trial_count,
                   "Number of trials with valid cues; as many have invalid ones")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(experiment);
  recall->add_option("--memories", design.item_count, "Number of items to recall from")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str()
      ->needs(experiment);
  recall
      ->add_option("--cue-strength", design.cue_strength,
                   "Length of the cue that is added to a probe of length 1")
      ->check(InRange(0, 1e6))
      ->capture_default_str()
      ->needs(experiment);
  recall
      ->add_option("--plot", flags->plot,
                   "Also write a plot to this file: the mean weight on the target by temperature")
      ->type_name("FILE.svg")
      ->check(NameEndsIn(".svg"))
      ->needs(experiment);
}

}  // namespace

void AddRecallCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<RecallFlags>();
  CLI::App* recall = app->add_subcommand("recall", "Recall a word by a cue, or run an experiment");
  recall->footer(
      "Makes a store of its own, recall/..., and deletes it at the end.\n"
      "Examples:\n"
      "  softlookup recall apple --noise 1 --temperature 0.2\n"
      "  softlookup recall --experiment posner --plot posner.svg");
  auto* experiment = recall
                         ->add_option("--experiment", flags->experiment,
                                      "Run Posner's cueing experiment (posner), with valid and "
                                      "invalid cues, instead of recalling a word")
                         ->check(CLI::IsMember({"posner"}));
  AddCommonFlags(recall, flags.get());
  AddWordFlags(recall, experiment, flags.get());
  AddExperimentFlags(recall, experiment, flags.get());
  recall->callback([=] {
    session->run = [=] {
      return flags->experiment.empty() ? RunWords(*flags, *session)
                                       : RunExperiment(*flags, *session);
    };
  });
}

}  // namespace softlookup::tool
