#include "client/plot/axis_ticks.h"

#include <cmath>

namespace softlookup::plot {

double TickStep(double min, double max, int count_max) {
  // Here and below, the factor 1e-9 allows for rounding errors.
  const double least = (max - min) / count_max;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double multiple : {1, 2, 5}) {
    if (multiple * power >= least * (1 - 1e-9)) return multiple * power;
  }
  return 10 * power;
}

std::vector<double> LinearTicks(double min, double max, int count_max) {
  const double step = TickStep(min, max, count_max);
  const double first = std::ceil(min / step - 1e-9);
  const double last = std::floor(max / step + 1e-9);
  std::vector<double> ticks;
  // Adding 0 turns a negative zero into zero.
  for (int i = 0; i <= count_max && first + i <= last; ++i) ticks.push_back((first + i) * step + 0);
  return ticks;
}

std::vector<double> LogTicks(double min, double max, int count_max) {
  const double first = std::ceil(std::log10(min) - 1e-9);
  const double last = std::floor(std::log10(max) + 1e-9);
  std::vector<double> ticks;
  if (last > first) {
    const double stride = std::ceil((last - first) / count_max);
    for (double power = first; power <= last; power += stride) {
      ticks.push_back(std::pow(10, power));
    }
    return ticks;
  }
  for (double power = first - 1; power <= last + 1; ++power) {
    for (const double multiple : {1, 2, 5}) {
      const double tick = multiple * std::pow(10, power);
      if (tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks.size() > 1 ? ticks : LinearTicks(min, max, count_max);
}

}  // namespace softlookup::plot
