#ifndef SOFTLOOKUP_CLIENT_PLOT_SCALE_H_
#define SOFTLOOKUP_CLIENT_PLOT_SCALE_H_

#include <cmath>

namespace softlookup::plot {

// Maps the coordinates of an axis to pixels. `min` and `max` must differ, and be > 0 if `log`.
struct Scale {
  bool log = false;
  double min = 0;
  double max = 1;
  double first_pixel = 0;  // The pixel of `min`.
  double last_pixel = 0;   // The pixel of `max`.

  double operator()(double coordinate) const {
    const double part =
        log ? std::log(coordinate / min) / std::log(max / min) : (coordinate - min) / (max - min);
    return first_pixel + part * (last_pixel - first_pixel);
  }
};

}  // namespace softlookup::plot

#endif  // SOFTLOOKUP_CLIENT_PLOT_SCALE_H_
