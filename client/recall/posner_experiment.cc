#include "client/recall/posner_experiment.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/vocabulary.h"
#include "client/plot/chart.h"
#include "client/recall/blend.h"
#include "client/recall/scratch_store.h"
#include "softlookup/word_encoder.h"

namespace softlookup::recall {
namespace {

using output::Counted;
using output::Word;
using plot::ChartSeries;
using plot::ChartStyle;
using plot::RenderDocument;

void AddRow(absl::Span<const float> row, FloatMatrix* matrix) {
  matrix->data.insert(matrix->data.end(), row.begin(), row.end());
  ++matrix->rows;
}

// Returns the identity matrix. The store has it as its values, so that each answer is the vector of
// the rows' weights, by position.
FloatMatrix IdentityMatrix(std::uint32_t size) {
  FloatMatrix identity{.rows = size, .cols = size, .data = {}};
  identity.data.resize(std::size_t{size} * size);
  for (std::size_t i = 0; i < size; ++i) identity.data[i * size + i] = 1;
  return identity;
}

CueOutcome Mean(const LookupAnswer& answer, absl::Span<const std::uint32_t> targets) {
  CueOutcome sum;
  for (std::uint32_t trial = 0; trial < targets.size(); ++trial) {
    sum.accuracy += answer.values.Row(trial)[targets[trial]];
    sum.entropy += answer.stats[trial].entropy();
  }
  const auto count = static_cast<double>(targets.size());
  return {.accuracy = sum.accuracy / count, .entropy = sum.entropy / count};
}

}  // namespace

PosnerTrials MakePosnerTrials(const PosnerDesign& design) {
  const std::uint32_t n = design.item_count;
  const WordEncoder encoder(design.dim);
  const std::string prefix = absl::StrCat("posner/", design.seed, "/");
  const FloatMatrix empty{.rows = 0, .cols = design.dim, .data = {}};
  PosnerTrials trials{.items = empty, .valid_queries = empty, .invalid_queries = empty};
  for (std::uint32_t i = 0; i < n; ++i) {
    AddRow(encoder.Encode(absl::StrCat(prefix, "memory/", i)), &trials.items);
  }
  for (std::uint32_t trial = 0; trial < design.trial_count; ++trial) {
    const std::uint32_t target = trial % n;
    const std::uint32_t lure = (target + 1 + trial / n % (n - 1)) % n;
    const std::vector<float> probe = Blend(trials.items.Row(target), design.noise,
                                           encoder.Encode(absl::StrCat(prefix, "noise/", trial)));
    trials.targets.push_back(target);
    trials.lures.push_back(lure);
    AddRow(Blend(probe, design.cue_strength, trials.items.Row(target)), &trials.valid_queries);
    AddRow(Blend(probe, design.cue_strength, trials.items.Row(lure)), &trials.invalid_queries);
  }
  return trials;
}

absl::StatusOr<std::vector<PosnerPoint>> RunPosner(const PosnerDesign& design,
                                                   absl::Span<const double> temperatures,
                                                   Client* client,
                                                   const std::atomic<bool>& interrupted) {
  const PosnerTrials trials = MakePosnerTrials(design);
  v1::Store config;
  config.set_key_dim(design.dim);
  config.set_value_dim(design.item_count);
  config.set_score(design.similarity.score());
  CLIENT_ASSIGN_OR_RETURN(const auto store,
                          ScratchStore::Create(client, "recall", config, interrupted));
  CLIENT_RETURN_IF_ERROR(store->Append(trials.items, IdentityMatrix(design.item_count)));

  const auto outcome = [&](const FloatMatrix& queries,
                           double temperature) -> absl::StatusOr<CueOutcome> {
    LookupOptions options;
    options.attention.set_temperature(temperature);
    CLIENT_ASSIGN_OR_RETURN(const LookupAnswer answer, store->Lookup(queries, options));
    return Mean(answer, trials.targets);
  };
  std::vector<PosnerPoint> points;
  for (const double temperature : temperatures) {
    PosnerPoint& point = points.emplace_back();
    point.temperature = temperature;
    CLIENT_ASSIGN_OR_RETURN(point.valid, outcome(trials.valid_queries, temperature));
    CLIENT_ASSIGN_OR_RETURN(point.invalid, outcome(trials.invalid_queries, temperature));
  }
  CLIENT_RETURN_IF_ERROR(store->Delete());
  return points;
}

std::string PosnerSvg(const PosnerDesign& design, absl::Span<const PosnerPoint> points) {
  const double chance = 1.0 / design.item_count;
  ChartSeries level{.label = absl::StrCat("chance, 1/", design.item_count),
                    .color = 6,
                    .style = ChartStyle::kDashed};
  ChartSeries invalid{.label = "invalid cue", .color = 4, .style = ChartStyle::kSquares};
  ChartSeries valid{.label = "valid cue", .color = 1, .style = ChartStyle::kCircles};
  for (const PosnerPoint& point : points) {
    level.points.push_back({point.temperature, chance});
    invalid.points.push_back({point.temperature, point.invalid.accuracy});
    valid.points.push_back({point.temperature, point.valid.accuracy});
  }
  return RenderDocument(
      {.description = "Accuracy against temperature, for both cue kinds and by chance",
       .x = {.label = "temperature (log scale)", .log = true},
       .y = {.label = "accuracy: mean weight on the target", .reach = 1},
       .series = {std::move(level), std::move(invalid), std::move(valid)}},
      "Recall after a valid and after an invalid cue",
      absl::StrFormat("%s in %s, %s, %s a cue kind, noise %g, cue strength %g",
                      Counted(design.item_count, "memory"), Counted(design.dim, "dimension"),
                      Word(design.similarity.score()), Counted(design.trial_count, "trial"),
                      design.noise, design.cue_strength));
}

}  // namespace softlookup::recall
