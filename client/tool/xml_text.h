#ifndef SOFTLOOKUP_CLIENT_TOOL_XML_TEXT_H_
#define SOFTLOOKUP_CLIENT_TOOL_XML_TEXT_H_

#include <string>
#include <string_view>

namespace softlookup::tool {

// `text` as XML or HTML has it, between tags or in a quoted attribute.
std::string XmlText(std::string_view text);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_XML_TEXT_H_
