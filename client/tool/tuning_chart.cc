#include "client/tool/tuning_chart.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/output/figure_text.h"
#include "client/output/text_width.h"
#include "client/output/vocabulary.h"
#include "client/plot/chart.h"

namespace softlookup::tool {
namespace {

using output::Counted;
using output::ShortenedText;
using output::Word;
using plot::ChartAxis;
using plot::ChartSeries;
using plot::ChartStyle;

// Lines take the colours 1 to 5 in turn, then 1 again. So lines of the five scores all differ,
// unless the user gives a score twice.
constexpr int kLineColors = 5;
constexpr int kBestColor = 6;

// A store's name is shortened to fit the subtitle, but never to fewer columns than this.
constexpr std::size_t kNameColumnsMin = 12;

// Returns an axis with the name and the unit of the figure `by`. The best accuracy, 1, and the best
// log-likelihood, 0, are always on it.
ChartAxis FigureAxis(const std::string& by) {
  if (by == kAccuracy) return {.label = "accuracy, a part of the rows", .reach = 1};
  if (by == kLogLikelihood) return {.label = "mean log-likelihood of a row, nats"};
  return {.label = "mean squared error of a row, in the square of the values' unit"};
}

// Returns a line for each run of settings with one score and ascending temperatures.
std::vector<ChartSeries> Lines(const Tuning& tuning) {
  std::vector<ChartSeries> lines;
  for (std::size_t i = 0; i < tuning.settings.size(); ++i) {
    const Setting& setting = tuning.settings[i];
    // A score that was given twice has its temperatures again from the lowest on.
    if (i == 0 || setting.score != tuning.settings[i - 1].score ||
        setting.temperature < tuning.settings[i - 1].temperature) {
      lines.push_back({.label = Word(setting.score),
                       .color = static_cast<int>(lines.size() % kLineColors) + 1,
                       .style = ChartStyle::kCircles});
    }
    lines.back().points.push_back({setting.temperature, FigureNamed(tuning.by, tuning.figures[i])});
  }
  return lines;
}

// Names the best setting, the rows and the store, whose name is shortened to the room that is left.
std::string Subtitle(const Tuning& tuning) {
  const Setting& best = tuning.settings[tuning.best];
  const std::string text = absl::StrFormat(
      "best: %s at temperature %g; %d of %s left out, one at a time, of ", Word(best.score),
      best.temperature, tuning.rows.size(), Counted(tuning.store.live_row_count(), "row"));
  const std::size_t room =
      plot::kSubtitleCharacters - std::min(plot::kSubtitleCharacters, text.size());
  return text + ShortenedText(tuning.store.name(), std::max(room, kNameColumnsMin));
}

}  // namespace

std::string TuningSvg(const Tuning& tuning) {
  const Setting& best = tuning.settings[tuning.best];
  const std::string by = tuning.by == kSquaredError ? "squared error" : tuning.by;
  std::vector<ChartSeries> series = Lines(tuning);
  series.push_back(
      {.label = "best",
       .color = kBestColor,
       .style = ChartStyle::kRings,
       .points = {{best.temperature, FigureNamed(tuning.by, tuning.figures[tuning.best])}}});
  return plot::RenderDocument(
      {.description = absl::StrFormat("The %s against the temperature, a line a score", by),
       .x = {.label = "temperature, in the score's unit (log scale)", .log = true},
       .y = FigureAxis(tuning.by),
       .series = std::move(series)},
      absl::StrFormat("Which temperature has the best %s?", by), Subtitle(tuning));
}

}  // namespace softlookup::tool
