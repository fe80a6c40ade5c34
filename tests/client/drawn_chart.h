#ifndef SOFTLOOKUP_TESTS_CLIENT_DRAWN_CHART_H_
#define SOFTLOOKUP_TESTS_CLIENT_DRAWN_CHART_H_

#include <cmath>
#include <cstddef>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace softlookup::testing {

struct DrawnPoint {
  double x = 0;
  double y = 0;
};

// Reads the coordinates of what plot::RenderDocument() has drawn back from the SVG, by the labels
// of the axes' ticks. The x axis must be a log axis, the y axis a linear one. A coordinate is off
// by as much as 0.1 of some 300 pixels shows.
class DrawnChart {
 public:
  explicit DrawnChart(std::string svg) : svg_(std::move(svg)) {
    static const std::regex kTick(
        "<text x=\"([^\"]*)\" y=\"([^\"]*)\" "
        "text-anchor=\"(end|middle)\">(-?[0-9][-+0-9.,e]*)</text>");
    std::string left;  // Where the labels of the y axis stand, which are drawn first.
    for (std::sregex_iterator i(svg_.begin(), svg_.end(), kTick), end; i != end; ++i) {
      const std::smatch& tick = *i;
      const double at = std::stod(std::regex_replace(tick[4].str(), std::regex(","), ""));
      if (left.empty()) left = tick[1];
      if (tick[1] == left) {
        y_.push_back({std::stod(tick[2]) - 4, at});  // Texts stand 4 below their ticks.
      } else if (tick[3] == "middle") {
        x_.push_back({std::stod(tick[1]), std::log(at)});
      }
    }
    // Without two ticks there is no scale.
    if (x_.size() < 2 || y_.size() < 2) throw std::invalid_argument("axes without ticks: " + svg_);
  }

  // The points of the lines in one colour, one after another. A legend has none of them.
  std::vector<std::vector<DrawnPoint>> Lines(int color) const {
    const std::regex path("<path class=\"line" + std::to_string(color) + "[^>]* d=\"([^\"]*)\"");
    std::vector<std::vector<DrawnPoint>> lines;
    for (std::sregex_iterator i(svg_.begin() + Drawing(), svg_.end(), path), end; i != end; ++i) {
      std::istringstream stream(std::regex_replace((*i)[1].str(), std::regex("[ML,]"), " "));
      const std::vector<double> pixels(std::istream_iterator<double>(stream), {});
      std::vector<DrawnPoint>& line = lines.emplace_back();
      for (std::size_t p = 0; p + 1 < pixels.size(); p += 2) {
        line.push_back(At(pixels[p], pixels[p + 1]));
      }
    }
    return lines;
  }

  // The middles of the rings in one colour.
  std::vector<DrawnPoint> Rings(int color) const {
    const std::regex ring("<circle class=\"ring" + std::to_string(color) +
                          "\" cx=\"([^\"]*)\" cy=\"([^\"]*)\"");
    std::vector<DrawnPoint> rings;
    for (std::sregex_iterator i(svg_.begin() + Drawing(), svg_.end(), ring), end; i != end; ++i) {
      rings.push_back(At(std::stod((*i)[1]), std::stod((*i)[2])));
    }
    return rings;
  }

  bool HasText(const std::string& text) const {
    return svg_.find(">" + text + "</text>") != std::string::npos;
  }

 private:
  struct Tick {
    double pixel = 0;
    double at = 0;  // Of the x axis, its natural logarithm.
  };

  // Where the drawing begins: behind the legend, with the grid of the axes.
  std::size_t Drawing() const { return svg_.find("<line class=\"grid\""); }

  static double Invert(const std::vector<Tick>& ticks, double pixel) {
    const Tick& a = ticks.front();
    const Tick& b = ticks.back();
    return a.at + (pixel - a.pixel) / (b.pixel - a.pixel) * (b.at - a.at);
  }

  DrawnPoint At(double x, double y) const { return {std::exp(Invert(x_, x)), Invert(y_, y)}; }

  std::string svg_;
  std::vector<Tick> x_;
  std::vector<Tick> y_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_DRAWN_CHART_H_
