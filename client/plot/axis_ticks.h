#ifndef SOFTLOOKUP_CLIENT_PLOT_AXIS_TICKS_H_
#define SOFTLOOKUP_CLIENT_PLOT_AXIS_TICKS_H_

#include <vector>

namespace softlookup::plot {

// In the three functions below, `min` must be below `max`, and `count_max` at least 1.

// Returns the smallest step that is 1, 2 or 5 times a power of ten and that divides [min, max] into
// at most `count_max` parts.
double TickStep(double min, double max, int count_max);

// Returns where a linear axis from `min` to `max` has labelled ticks, ascending: the multiples of
// TickStep(), at most `count_max` + 1.
std::vector<double> LinearTicks(double min, double max, int count_max);
// Returns where a log axis from `min`, > 0, to `max` has labelled ticks, ascending. If the axis has
// two powers of ten or more, the ticks are at most `count_max` + 1 of these, at equal distances. If
// it has fewer, the ticks are 1, 2 and 5 times powers of ten. If fewer than two such numbers are on
// the axis, the ticks are those of LinearTicks().
std::vector<double> LogTicks(double min, double max, int count_max);

}  // namespace softlookup::plot

#endif  // SOFTLOOKUP_CLIENT_PLOT_AXIS_TICKS_H_
