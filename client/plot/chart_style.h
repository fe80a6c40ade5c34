#ifndef SOFTLOOKUP_CLIENT_PLOT_CHART_STYLE_H_
#define SOFTLOOKUP_CLIENT_PLOT_CHART_STYLE_H_

#include <string>

namespace softlookup::plot {

// Returns the style sheet of a page with charts, light or dark as the reader prefers. The page must
// define the colours --faint and --card.
std::string ChartPageStyle();

// Returns the style sheet of a chart that is a document of its own, always light. It has no
// variables, as many programs that draw SVG know none.
std::string ChartDocumentStyle();

}  // namespace softlookup::plot

#endif  // SOFTLOOKUP_CLIENT_PLOT_CHART_STYLE_H_
