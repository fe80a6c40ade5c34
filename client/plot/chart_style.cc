#include "client/plot/chart_style.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace softlookup::plot {
namespace {

struct Color {
  const char* name;
  const char* light;
  const char* dark;
};

// c1 to c6 are the colours of series. People with any colour vision can tell them apart. The
// contrast of each with the background is at least 3:1.
constexpr Color kColors[] = {{"c1", "#1f5fd0", "#6ea8ff"},   {"c2", "#0d8074", "#35c7b5"},
                             {"c3", "#8a3ffc", "#bf9bff"},   {"c4", "#b45309", "#f5a747"},
                             {"c5", "#c81e3a", "#ff7085"},   {"c6", "#5b6470", "#a3adba"},
                             {"grid", "#e4e7ec", "#262d38"}, {"axis", "#9aa3b0", "#566171"}};

constexpr char kRules[] = R"css(
svg text { fill: var(--faint); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); } .axis { stroke: var(--axis); }
.bound { stroke: var(--c5); stroke-width: 1.5; stroke-dasharray: 2 3; }
svg .bound-label { fill: var(--c5); }
svg path { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg .dashed { stroke-width: 1.5; stroke-dasharray: 5 5; }
svg [class^=area] { stroke: none; fill-opacity: .14; }
svg [class^=ring] { fill: var(--card); stroke-width: 2; }
.mark { stroke: var(--card); stroke-width: 1.2; }
.line1 { stroke: var(--c1); } .area1, .dot1 { fill: var(--c1); } .ring1 { stroke: var(--c1); }
.line2 { stroke: var(--c2); } .area2, .dot2 { fill: var(--c2); } .ring2 { stroke: var(--c2); }
.line3 { stroke: var(--c3); } .area3, .dot3 { fill: var(--c3); } .ring3 { stroke: var(--c3); }
.line4 { stroke: var(--c4); } .area4, .dot4 { fill: var(--c4); } .ring4 { stroke: var(--c4); }
.line5 { stroke: var(--c5); } .area5, .dot5 { fill: var(--c5); } .ring5 { stroke: var(--c5); }
.line6 { stroke: var(--c6); } .area6, .dot6 { fill: var(--c6); } .ring6 { stroke: var(--c6); }
.note { fill: transparent; } .note:hover { fill: var(--axis); fill-opacity: .18; }
)css";

constexpr char kPageRules[] =
    R"css(svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-size: 11.5px; }
.key1 { color: var(--c1); } .key2 { color: var(--c2); } .key3 { color: var(--c3); }
.key4 { color: var(--c4); } .key5 { color: var(--c5); } .key6 { color: var(--c6); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: 0 0 .5rem; padding: 0;
  list-style: none; font-size: .82rem; color: var(--faint); }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend i { display: inline-block; width: 1.1rem; }
.bar { border-top: 3px solid; border-radius: 2px; } .dash { border-top: 2px dashed; }
.legend .disc, .legend .hoop { width: .65rem; height: .65rem; border-radius: 50%; box-sizing: border-box;
  border: 2px solid; } .disc { background: currentColor; }
)css";

constexpr char kDocumentRules[] = R"css(svg text { font-family: sans-serif; font-size: 13px; }
svg .title { fill: #1a2130; font-size: 18px; font-weight: bold; }
.background { fill: #ffffff; } .fine { stroke: var(--grid); stroke-opacity: .45; }
)css";

std::string Definitions(const char* Color::*scheme) {
  std::string rule = ":root {";
  for (const Color& color : kColors) {
    absl::StrAppend(&rule, " --", color.name, ": ", color.*scheme, ";");
  }
  return rule + " }\n";
}

}  // namespace

std::string ChartPageStyle() {
  return absl::StrCat(Definitions(&Color::light), "@media (prefers-color-scheme: dark) {\n",
                      Definitions(&Color::dark), "}", kRules, kPageRules);
}

std::string ChartDocumentStyle() {
  std::string style = absl::StrCat(kRules, kDocumentRules);
  const auto replace = [&](const char* name, const char* color) {
    absl::StrReplaceAll({{absl::StrCat("var(--", name, ")"), color}}, &style);
  };
  for (const Color& color : kColors) replace(color.name, color.light);
  replace("faint", "#5a6473");
  replace("card", "#ffffff");
  return style;
}

}  // namespace softlookup::plot
