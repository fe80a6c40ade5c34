#ifndef SOFTLOOKUP_CLIENT_PLOT_CHART_STYLE_H_
#define SOFTLOOKUP_CLIENT_PLOT_CHART_STYLE_H_

#include <string>

namespace softlookup::plot {

// Returns the style sheet of a page with charts. Its colours are light or dark, as the reader's
// system prefers. The page must define the colours --faint and --card.
std::string ChartPageStyle();

// Returns the style sheet of a chart that is a document of its own. Its colours are always light.
// It has no CSS variables, because many programs that draw SVG do not support them.
std::string ChartDocumentStyle();

}  // namespace softlookup::plot

#endif  // SOFTLOOKUP_CLIENT_PLOT_CHART_STYLE_H_
