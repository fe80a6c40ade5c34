#include "client/cli/help_formatter.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace softlookup::cli {
namespace {

// Text is never wrapped to fewer columns than this. Narrower text is harder to read than lines that
// the terminal breaks.
constexpr std::size_t kTextWidthMin = 24;

// Puts as many words on a line as `width` columns hold. The words of help are ASCII, so a byte
// takes a column.
std::string Fill(absl::string_view text, std::size_t width) {
  std::string filled;
  std::size_t line = 0;
  const auto separators = absl::ByAnyChar(" \n");
  for (const absl::string_view word : absl::StrSplit(text, separators, absl::SkipEmpty())) {
    if (line > 0 && line + 1 + word.size() > width) {
      filled += '\n';
      line = 0;
    } else if (line > 0) {
      filled += ' ';
      ++line;
    }
    absl::StrAppend(&filled, word);
    line += word.size();
  }
  return filled;
}

// Wraps an item of a list, such as "  3  text", that is longer than `width`. The further lines
// begin in the column where the item's text begins. A line without two spaces inside is no item: it
// stays whole, because users copy commands from such lines.
std::string FillItem(absl::string_view item, std::size_t width) {
  const std::size_t gap = item.find("  ", std::min(item.find_first_not_of(' '), item.size()));
  if (item.size() <= width || gap == absl::string_view::npos) return std::string(item);
  const std::size_t text = item.find_first_not_of(' ', gap);
  if (text == absl::string_view::npos || text + kTextWidthMin > width) return std::string(item);
  std::string filled = Fill(item.substr(text), width - text);
  absl::StrReplaceAll({{"\n", "\n" + std::string(text, ' ')}}, &filled);
  return absl::StrCat(item.substr(0, text), filled);
}

}  // namespace

HelpFormatter::HelpFormatter(std::size_t width)
    : line_width_(std::max(width, kTextWidthMin)),
      text_width_(std::max(width, column_width_ + kTextWidthMin) - column_width_) {}

std::string HelpFormatter::make_description(const CLI::App* command) const {
  const std::string text = Formatter::make_description(command);
  return text.empty() ? text : FillParagraphs(text);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string opts = Formatter::make_option_opts(option);
  return opts.substr(0, RelationsIn(opts));
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string opts = Formatter::make_option_opts(option);
  std::string text = Fill(Formatter::make_option_desc(option), text_width_);
  const std::string relations = Fill(opts.substr(RelationsIn(opts)), text_width_);
  if (!relations.empty()) absl::StrAppend(&text, "\n", relations);
  return text;
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream out;
  CLI::detail::format_help(out, command->get_display_name(true),
                           Fill(command->get_description(), text_width_), column_width_);
  return out.str();
}

std::string HelpFormatter::make_footer(const CLI::App* command) const {
  return FillParagraphs(Formatter::make_footer(command));
}

std::string HelpFormatter::FillParagraphs(const std::string& text) const {
  std::string filled;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) absl::StrAppend(&filled, Fill(paragraph, line_width_), "\n");
    paragraph.clear();
  };
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    if (!line.empty() && line.front() != ' ') {
      absl::StrAppend(&paragraph, line, " ");
      continue;
    }
    end_paragraph();
    absl::StrAppend(&filled, FillItem(line, line_width_), "\n");
  }
  end_paragraph();
  return filled;
}

std::size_t HelpFormatter::RelationsIn(const std::string& opts) const {
  std::size_t at = opts.size();
  for (const char* const label : {"Needs", "Excludes"}) {
    at = std::min(at, opts.find(absl::StrCat(" ", get_label(label), ":")));
  }
  return at;
}

}  // namespace softlookup::cli
