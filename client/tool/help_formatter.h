#ifndef SOFTLOOKUP_CLIENT_TOOL_HELP_FORMATTER_H_
#define SOFTLOOKUP_CLIENT_TOOL_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace softlookup::tool {

// Formats --help for a terminal of `width` columns: lines break between words. The
// lines of a paragraph of a footer are filled anew. Lines that begin with a space stay, as in
// lists.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width);

  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  // Columns for text, of the whole line and beside the names of options.
  const std::size_t line_width_;
  const std::size_t text_width_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_HELP_FORMATTER_H_
