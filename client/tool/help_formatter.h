#ifndef SOFTLOOKUP_CLIENT_TOOL_HELP_FORMATTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace softlookup::tool {

// Formats --help for a terminal of `width` columns, so that lines break between words. Joins the
// lines of each paragraph of a footer, and breaks them anew. A line that begins with a space stays
// a line of its own, but the text of a long list item is wrapped.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width);

  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  const std::size_t line_width_;  // Columns of a whole line.
  const std::size_t text_width_;  // Columns of the text beside the names of options.
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_HELP_FORMATTER_H_
