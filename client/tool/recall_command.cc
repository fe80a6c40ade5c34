#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/output/vocabulary.h"
#include "client/plot/svg_plot.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/lookup_printer.h"
#include "client/tool/recall_experiment.h"
#include "client/tool/scratch_store.h"
#include "client/tool/whole_file.h"
#include "client/tool/word_list.h"
#include "softlookup/similarity.h"
#include "softlookup/word_encoder.h"

namespace softlookup::tool {
namespace {

struct RecallFlags {
  // For words and for the experiment.
  std::uint32_t dim = 64;
  std::string similarity = "cosine";
  std::optional<double> noise;
  std::vector<double> temperatures;
  std::uint64_t seed = 1;

  // For words only.
  std::string cue = "apple";
  std::string words_file;
  std::vector<std::string> words = {"apple", "bread", "cloud", "drum", "eagle"};
  double temperature = 0.25;
  std::uint32_t top = 10;

  // For the experiment only.
  std::string experiment;
  PosnerDesign design;
  std::string plot;
};

Similarity SimilarityOf(const RecallFlags& flags) {
  return flags.similarity == Word(v1::SCORE_EUCLIDEAN) ? Similarity::Euclidean()
                                                       : Similarity::Cosine();
}

// The answer of the words' store to the cue at one temperature.
struct Recall {
  double temperature = 0;
  std::vector<float> context;  // The weighted sum of the words' encodings.
  v1::QueryStats stats;
  v1::QueryWeights weights;
};

double Perplexity(const Recall& recall) { return std::exp(recall.stats.entropy()); }

// The recalled word: the one most similar to the context, the first of equals.
struct RecalledWord {
  std::string word;
  double similarity = 0;
};

RecalledWord NearestWord(const RecallFlags& flags, const std::vector<std::string>& words,
                         absl::Span<const float> context) {
  const WordEncoder encoder(flags.dim);
  const Similarity similarity = SimilarityOf(flags);
  RecalledWord nearest{.word = {}, .similarity = -std::numeric_limits<double>::infinity()};
  for (const std::string& word : words) {
    const double candidate = similarity(context, encoder.Encode(word));
    if (candidate > nearest.similarity) nearest = {word, candidate};
  }
  return nearest;
}

// Appends a row for each word, whose encoding is both key and value.
absl::Status AppendWords(const std::vector<std::string>& words, std::uint32_t dim,
                         ScratchStore* store) {
  constexpr std::size_t kBatchFloatsMax = std::size_t{1} << 20;  // Well under a message's limit.
  const WordEncoder encoder(dim);
  const std::size_t batch_rows = std::max<std::size_t>(kBatchFloatsMax / dim, 1);
  for (std::size_t begin = 0; begin < words.size(); begin += batch_rows) {
    FloatMatrix batch{.rows = 0, .cols = dim, .data = {}};
    for (; batch.rows < std::min(batch_rows, words.size() - begin); ++batch.rows) {
      const std::vector<float> encoding = encoder.Encode(words[begin + batch.rows]);
      batch.data.insert(batch.data.end(), encoding.begin(), encoding.end());
    }
    CLIENT_RETURN_IF_ERROR(store->Append(batch, batch));
  }
  return absl::OkStatus();
}

// Looks up the cue, with its noise, among `words`: at flags.temperature, then at each of
// flags.temperatures. Uses a scratch store.
absl::StatusOr<std::vector<Recall>> RecallAll(const RecallFlags& flags,
                                              const std::vector<std::string>& words,
                                              Client* client) {
  const WordEncoder encoder(flags.dim);
  const std::vector<float> noise = encoder.Encode(absl::StrCat("recall/", flags.seed, "/noise"));
  const FloatMatrix cue{.rows = 1,
                        .cols = flags.dim,
                        .data = Blend(encoder.Encode(flags.cue), flags.noise.value_or(0), noise)};
  v1::Store config;
  config.set_key_dim(flags.dim);
  config.set_value_dim(flags.dim);
  config.set_score(SimilarityOf(flags).score());
  CLIENT_ASSIGN_OR_RETURN(const auto store, ScratchStore::Create(client, "recall", config));
  CLIENT_RETURN_IF_ERROR(AppendWords(words, flags.dim, store.get()));
  LookupOptions options;
  options.attention.set_weights(v1::WEIGHTS_MODE_TOP);
  options.attention.set_top_weights(flags.top);
  std::vector<double> temperatures = {flags.temperature};
  temperatures.insert(temperatures.end(), flags.temperatures.begin(), flags.temperatures.end());
  std::vector<Recall> recalls;
  for (const double temperature : temperatures) {
    options.attention.set_temperature(temperature);
    CLIENT_ASSIGN_OR_RETURN(LookupAnswer answer, store->Lookup(cue, options));
    recalls.push_back({temperature, std::move(answer.values.data), std::move(answer.stats[0]),
                       std::move(answer.weights[0])});
  }
  CLIENT_RETURN_IF_ERROR(store->Delete());
  return recalls;
}

Json RecallJson(const Recall& recall, const std::vector<std::string>& words) {
  Json weights = Json::array();
  for (int i = 0; i < recall.weights.positions_size(); ++i) {
    weights.push_back({{"word", words[recall.weights.positions(i)]},
                       {"score", recall.weights.scores(i)},
                       {"weight", recall.weights.weights(i)}});
  }
  return {{"temperature", recall.temperature},
          {"entropy", recall.stats.entropy()},
          {"perplexity", Perplexity(recall)},
          {"weights", std::move(weights)},
          {"remaining_weight", recall.weights.remaining_weight()}};
}

void PrintRecallJson(const RecallFlags& flags, const std::vector<std::string>& words,
                     const std::vector<Recall>& recalls, const Session& session) {
  const RecalledWord recalled = NearestWord(flags, words, recalls[0].context);
  Json json = {{"cue", flags.cue},
               {"word_count", words.size()},
               {"dim", flags.dim},
               {"similarity", flags.similarity},
               {"noise", flags.noise.value_or(0)},
               {"seed", flags.seed},
               {"recalled", recalled.word},
               {"recalled_similarity", recalled.similarity}};
  json.update(RecallJson(recalls[0], words));
  Json sweep = Json::array();
  for (std::size_t i = 1; i < recalls.size(); ++i) sweep.push_back(RecallJson(recalls[i], words));
  json["sweep"] = std::move(sweep);
  PrintJson(json, session.out);
}

void PrintWeights(const Recall& recall, const std::vector<std::string>& words, std::ostream* out) {
  Table table({{"word"}, {"score", Align::kRight}, {"weight", Align::kRight}, {""}});
  for (int i = 0; i < recall.weights.positions_size(); ++i) {
    const double weight = recall.weights.weights(i);
    table.AddRow({words[recall.weights.positions(i)],
                  absl::StrFormat("%.4f", recall.weights.scores(i)),
                  absl::StrFormat("%.4f", weight),
                  std::string(static_cast<std::size_t>(std::lround(weight * kBarWidth)), '#')});
  }
  table.Print(out, "  ");
}

// Prints how the weights of the first few words of `recalls[0]` change over the other temperatures.
void PrintSweep(const std::vector<Recall>& recalls, const std::vector<std::string>& words,
                std::ostream* out) {
  constexpr int kWordsMax = 5;
  const v1::QueryWeights& first = recalls[0].weights;
  const int shown = std::min(first.positions_size(), kWordsMax);
  std::vector<Table::Column> columns = {{"temperature", Align::kRight}};
  for (int i = 0; i < shown; ++i) columns.push_back({words[first.positions(i)], Align::kRight});
  columns.insert(columns.end(), {{"entropy", Align::kRight}, {"perplexity", Align::kRight}});
  Table table(std::move(columns));
  for (std::size_t r = 1; r < recalls.size(); ++r) {
    std::map<std::uint64_t, double> weight_at;  // By position. A weight not listed is near 0.
    for (int i = 0; i < recalls[r].weights.positions_size(); ++i) {
      weight_at[recalls[r].weights.positions(i)] = recalls[r].weights.weights(i);
    }
    std::vector<std::string> cells = {absl::StrFormat("%g", recalls[r].temperature)};
    for (int i = 0; i < shown; ++i) {
      cells.push_back(absl::StrFormat("%.4f", weight_at[first.positions(i)]));
    }
    cells.push_back(absl::StrFormat("%.4f", recalls[r].stats.entropy()));
    cells.push_back(absl::StrFormat("%.2f", Perplexity(recalls[r])));
    table.AddRow(std::move(cells));
  }
  table.Print(out, "  ");
}

void PrintRecall(const RecallFlags& flags, const std::vector<std::string>& words,
                 const std::vector<Recall>& recalls, const Session& session) {
  if (session.json) return PrintRecallJson(flags, words, recalls, session);
  std::ostream& out = *session.out;
  const Recall& recall = recalls[0];
  out << absl::StreamFormat("cue \"%s\"", flags.cue);
  if (flags.noise.value_or(0) > 0) {
    out << absl::StreamFormat(" with noise %g, seed %d", *flags.noise, flags.seed);
  }
  out << absl::StreamFormat("; %d words in %d dimensions, %s, temperature %g\n", words.size(),
                            flags.dim, flags.similarity, recall.temperature);
  PrintWeights(recall, words, &out);
  if (recall.weights.remaining_weight() > 0) {
    out << absl::StreamFormat("  weight of the others %.4f\n", recall.weights.remaining_weight());
  }
  const RecalledWord recalled = NearestWord(flags, words, recall.context);
  out << absl::StreamFormat(
      "recalled \"%s\": the answer's %s similarity to it is %.4f\n"
      "entropy %.4f nats, perplexity %.2f: like a choice among %.2f equal words\n",
      recalled.word, flags.similarity, recalled.similarity, recall.stats.entropy(),
      Perplexity(recall), Perplexity(recall));
  if (recalls.size() == 1) return;
  out << "\nweights sharpen as the temperature falls\n";
  PrintSweep(recalls, words, &out);
}

absl::Status RecallWords(RecallFlags flags, const Session& session) {
  std::vector<std::string> words = flags.words;
  if (!flags.words_file.empty()) {
    CLIENT_ASSIGN_OR_RETURN(words, ReadNames(flags.words_file));
    if (words.empty()) return InputError(flags.words_file, "holds no word");
  }
  if (flags.temperatures.empty()) flags.temperatures = {10, 2, 1, 0.5, 0.25, 0.1, 0.05};
  std::sort(flags.temperatures.rbegin(), flags.temperatures.rend());
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<Recall> recalls, RecallAll(flags, words, &client));
  PrintRecall(flags, words, recalls, session);
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
      "Posner's cueing experiment: %d memories in %d dimensions, %s, %d trials a cue kind,\n"
      "noise %g, cue strength %g, seed %d\n",
      design.item_count, design.dim, Word(design.similarity.score()), design.trial_count,
      design.noise, design.cue_strength, design.seed);
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
      "accuracy is the mean weight on the target, entropy is in nats; by chance 1/%d = %.4f and "
      "%.4f\n",
      design.item_count, 1.0 / design.item_count, std::log(design.item_count));
}

absl::Status RunExperiment(RecallFlags flags, const Session& session) {
  PosnerDesign& design = flags.design;
  design.dim = flags.dim;
  design.noise = flags.noise.value_or(design.noise);
  design.similarity = SimilarityOf(flags);
  design.seed = flags.seed;
  std::vector<double>& temperatures = flags.temperatures;
  if (temperatures.empty()) {
    temperatures = {0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3,
                    0.5,  0.7,  1,    2,    5,    10,  20,   50,  100};
  }
  std::sort(temperatures.begin(), temperatures.end());
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<PosnerPoint> points,
                          RunPosner(design, temperatures, &client));
  PrintPosner(design, points, session);
  if (flags.plot.empty()) return absl::OkStatus();
  CLIENT_RETURN_IF_ERROR(WriteFile(flags.plot, PosnerSvg(design, points)));
  if (!session.json) *session.out << "plot written to " << flags.plot << "\n";
  return absl::OkStatus();
}

void AddCommonFlags(CLI::App* recall, RecallFlags* flags) {
  recall->add_option("--dim", flags->dim, "Components of an encoding")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  recall->add_option("--similarity", flags->similarity, "How a cue is held against a memory")
      ->check(CLI::IsMember({Word(v1::SCORE_COSINE), Word(v1::SCORE_EUCLIDEAN)}))
      ->capture_default_str();
  recall
      ->add_option("--noise", flags->noise,
                   "Length of a random vector to add to the cue (default 0), or to each probe of "
                   "the experiment (1.5)")
      ->check(CLI::Range(0.0, 1e6));
  recall->add_option("--temperatures", flags->temperatures, "Those of the table at the end")
      ->type_name("T,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1e-6, 1e6));
  recall->add_option("--seed", flags->seed, "Of all that is random")->capture_default_str();
}

void AddWordFlags(CLI::App* recall, CLI::Option* experiment, RecallFlags* flags) {
  recall->add_option("WORD-CUE", flags->cue, "What to ask with")
      ->capture_default_str()
      ->excludes(experiment);
  auto* file =
      recall->add_option("--words", flags->words_file, "What to remember: words, one a line")
          ->type_name("FILE")
          ->excludes(experiment);
  recall
      ->add_option("--word", flags->words,
                   "The same here (default apple,bread,cloud,drum,eagle); may be repeated")
      ->type_name("WORD,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->excludes(experiment)
      ->excludes(file);
  recall->add_option("--temperature", flags->temperature, "High is diffuse, low is decided")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str()
      ->excludes(experiment);
  recall->add_option("--top", flags->top, "Show the words with the largest weights, this many")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->excludes(experiment);
}

void AddExperimentFlags(CLI::App* recall, CLI::Option* experiment, RecallFlags* flags) {
  PosnerDesign& design = flags->design;
  recall->add_option("--trials", design.trial_count, "Trials of each cue kind")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(experiment);
  recall->add_option("--memories", design.item_count, "Memories to choose from")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str()
      ->needs(experiment);
  recall->add_option("--cue-strength", design.cue_strength, "Length of the cue beside 1 of a probe")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str()
      ->needs(experiment);
  recall->add_option("--plot", flags->plot, "Also draw accuracy against temperature there")
      ->type_name("FILE.svg")
      ->needs(experiment);
}

}  // namespace

void AddRecallCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<RecallFlags>();
  CLI::App* recall = app->add_subcommand("recall", "Recall a word by a cue, or run an experiment");
  recall->footer(
      "Works on a store of its own, recall/..., which is gone afterwards.\n"
      "Examples:\n"
      "  softlookup recall apple --noise 1 --temperature 0.2\n"
      "  softlookup recall --experiment posner --plot posner.svg");
  auto* experiment = recall
                         ->add_option("--experiment", flags->experiment,
                                      "posner: valid and invalid cues, over temperatures")
                         ->check(CLI::IsMember({"posner"}));
  AddCommonFlags(recall, flags.get());
  AddWordFlags(recall, experiment, flags.get());
  AddExperimentFlags(recall, experiment, flags.get());
  recall->callback([=] {
    session->run = [=] {
      return flags->experiment.empty() ? RecallWords(*flags, *session)
                                       : RunExperiment(*flags, *session);
    };
  });
}

}  // namespace softlookup::tool
