#ifndef SOFTLOOKUP_CLIENT_TOOL_TUNING_CHART_H_
#define SOFTLOOKUP_CLIENT_TOOL_TUNING_CHART_H_

#include <string>

#include "client/tool/tuning.h"

namespace softlookup::tool {

// Returns an SVG document that draws the figure `tuning.by` of each setting against the setting's
// temperature, which has a log axis. There is a line for each run of settings with one score and
// ascending temperatures. A ring marks the best setting. `tuning` must have at least one setting. A
// long name of the store is shortened.
std::string TuningSvg(const Tuning& tuning);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_TUNING_CHART_H_
