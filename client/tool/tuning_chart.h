#ifndef SOFTLOOKUP_CLIENT_TOOL_TUNING_CHART_H_
#define SOFTLOOKUP_CLIENT_TOOL_TUNING_CHART_H_

#include <string>

#include "client/tool/tuning.h"

namespace softlookup::tool {

// Returns an SVG document with the figure `tuning.by` of each setting against its temperature, on a
// log axis. There is one line per score. A ring marks the best setting. `tuning` must have at least
// one setting. The temperatures of a score must ascend. A long name of the store is shortened.
std::string TuningSvg(const Tuning& tuning);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_TUNING_CHART_H_
