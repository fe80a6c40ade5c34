#ifndef SOFTLOOKUP_CLIENT_CLI_HELP_FORMATTER_H_
#define SOFTLOOKUP_CLIENT_CLI_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace softlookup::cli {

// Formats --help for a terminal of `width` columns, so that lines break between words. Joins the
// lines of each paragraph of a description or a footer, and breaks them anew. A line that begins
// with a space stays a line of its own, but the text of a long list item is wrapped. CLI11 lists
// the options that an option needs or excludes behind the option's name. This class lists them
// behind the option's text, where the list can be wrapped.
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
  // `opts` is what CLI11 writes after an option's name. Returns the index in it where the part
  // about needed and excluded options begins; the end if there is no such part.
  std::size_t RelationsIn(const std::string& opts) const;

  const std::size_t line_width_;  // Columns of a whole line.
  const std::size_t text_width_;  // Columns of the text beside the names of options.
};

}  // namespace softlookup::cli

#endif  // SOFTLOOKUP_CLIENT_CLI_HELP_FORMATTER_H_
