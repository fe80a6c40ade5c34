#ifndef SOFTLOOKUP_TESTS_CLIENT_MALFORMED_H_
#define SOFTLOOKUP_TESTS_CLIENT_MALFORMED_H_

#include <algorithm>
#include <cstddef>
#include <regex>
#include <string>
#include <vector>

namespace softlookup::testing {

// Why `markup`, HTML or SVG, is not well-formed as XML is: every element closed in its order,
// attributes quoted, no stray < or &. Empty if it is.
inline std::string Malformed(const std::string& markup) {
  static const std::regex kTag(
      "<(/?)([a-zA-Z][a-zA-Z0-9]*)((?: [a-zA-Z0-9:-]+=\"[^\"<]*\")*) ?(/?)>");
  static const std::regex kText("([^<&]|&(amp|lt|gt|quot);)*");
  std::vector<std::string> open;
  std::size_t at = 0;
  if (markup.starts_with("<!DOCTYPE")) at = markup.find('>') + 1;
  while (at < markup.size()) {
    const std::size_t tag = std::min(markup.find('<', at), markup.size());
    const std::string text = markup.substr(at, tag - at);
    if (text.find('&') != std::string::npos && !std::regex_match(text, kText)) {
      return "stray & in: " + text;
    }
    if (tag == markup.size()) break;
    const std::string element = markup.substr(tag, markup.find('>', tag) + 1 - tag);
    std::smatch match;
    if (!std::regex_match(element, match, kTag)) return "no tag: " + element;
    if (match[1] == "/") {
      if (open.empty() || open.back() != match[2]) return "closes what is not open: " + element;
      open.pop_back();
    } else if (match[4] != "/") {
      open.push_back(match[2]);
    }
    at = tag + element.size();
  }
  return open.empty() ? "" : "left open: " + open.back();
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_MALFORMED_H_
