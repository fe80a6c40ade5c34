#ifndef SOFTLOOKUP_CLIENT_OUTPUT_XML_TEXT_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_XML_TEXT_H_

#include <string>
#include <string_view>

namespace softlookup::output {

// Escapes `text` for XML or HTML, between tags or in an attribute in double quotes. A control
// character becomes a space. A byte that is not UTF-8 becomes U+FFFD.
std::string XmlText(std::string_view text);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_XML_TEXT_H_
