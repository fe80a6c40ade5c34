#ifndef SOFTLOOKUP_CLIENT_CLI_HELP_FORMATTER_H_
#define SOFTLOOKUP_CLIENT_CLI_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace softlookup::cli {

// Formats --help for a terminal of `width` columns, so that lines break between words. Joins the
// lines of each paragraph of a description or a footer, and breaks them anew. A line that begins
// with a space stays a line of its own, but the text of a long list item is wrapped. What an option
// needs and excludes follows its text, not its name, so that it can be wrapped.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width);

  std::string make_description(const CLI::App* command) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;

 private:
  // Breaks the lines of a text that may have paragraphs and lists. The result ends with a line end.
  std::string FillParagraphs(const std::string& text) const;
  // Returns where in `opts`, which CLI11 made of an option, what the option needs and excludes
  // begins.
  std::size_t RelationsIn(const std::string& opts) const;

  const std::size_t line_width_;  // Columns of a whole line.
  const std::size_t text_width_;  // Columns of the text beside the names of options.
};

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_HELP_FORMATTER_H_
