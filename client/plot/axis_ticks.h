#ifndef SOFTLOOKUP_CLIENT_PLOT_AXIS_TICKS_H_
#define SOFTLOOKUP_CLIENT_PLOT_AXIS_TICKS_H_

#include <vector>

namespace softlookup::tool {

// The least of 1, 2 and 5 times a power of ten that cuts [min, max] into at most `count_max`.
double TickStep(double min, double max, int count_max);

// Where an axis from `min` to `max` gets its labelled ticks, ascending: multiples of 1, 2 or 5
// times a power of ten, at most `count_max` + 1 of them; on a log axis powers of ten, or all of 1,
// 2 and 5 times one where there are fewer than two powers.
std::vector<double> LinearTicks(double min, double max, int count_max);
std::vector<double> LogTicks(double min, double max, int count_max);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_PLOT_AXIS_TICKS_H_
