#include "client/output/text_width.h"

#include <algorithm>
#include <iterator>

#include "client/cli/utf8.h"

namespace softlookup::output {
namespace {

// The code points from `first` to `last`.
struct CodePoints {
  char32_t first;
  char32_t last;
  std::size_t width;  // Columns of each.
};

// The code points that do not take one column, in ascending order. Each range has one width, even
// where Unicode's EastAsianWidth.txt gives another width to a few of its code points.
constexpr CodePoints kUnusual[] = {
    {0x0300, 0x036f, 0},    // Combining diacritical marks.
    {0x0483, 0x0489, 0},    // Combining Cyrillic marks.
    {0x0591, 0x05bd, 0},    // Hebrew points.
    {0x064b, 0x065f, 0},    // Arabic vowel marks.
    {0x1100, 0x115f, 2},    // Leading consonants of Hangul.
    {0x1160, 0x11ff, 0},    // Its vowels and trailing consonants, which combine.
    {0x1ab0, 0x1aff, 0},    // Combining diacritical marks, extended.
    {0x1dc0, 0x1dff, 0},    // Combining diacritical marks, supplement.
    {0x200b, 0x200d, 0},    // Zero-width space, non-joiner and joiner.
    {0x20d0, 0x20ff, 0},    // Combining marks for symbols.
    {0x2e80, 0x3029, 2},    // Radicals, and punctuation of Chinese and Japanese.
    {0x302a, 0x302d, 0},    // Tone marks.
    {0x302e, 0x303e, 2},    // Further punctuation.
    {0x3041, 0x3098, 2},    // Hiragana.
    {0x3099, 0x309a, 0},    // Its combining sound marks.
    {0x309b, 0x4dbf, 2},    // Katakana, Bopomofo, Hangul letters, ideographs.
    {0x4e00, 0xa4cf, 2},    // Ideographs, Yi.
    {0xa960, 0xa97f, 2},    // Hangul, extended.
    {0xac00, 0xd7a3, 2},    // Hangul syllables.
    {0xf900, 0xfaff, 2},    // Ideographs for compatibility.
    {0xfe00, 0xfe0f, 0},    // Variation selectors.
    {0xfe10, 0xfe19, 2},    // Vertical punctuation.
    {0xfe20, 0xfe2f, 0},    // Combining half marks.
    {0xfe30, 0xfe6f, 2},    // Small and vertical forms.
    {0xff01, 0xff60, 2},    // Full-width forms.
    {0xffe0, 0xffe6, 2},    // Full-width signs.
    {0x16fe0, 0x18cff, 2},  // Tangut, Khitan.
    {0x1aff0, 0x1b2ff, 2},  // Kana, extended, and Nushu.
    {0x1f200, 0x1f320, 2},  // Enclosed ideographs, emoji.
    {0x1f32d, 0x1f5a4, 2},  // Emoji.
    {0x1f5fb, 0x1f64f, 2},  // Emoji.
    {0x1f680, 0x1f6ff, 2},  // Emoji for transport.
    {0x1f900, 0x1f9ff, 2},  // Further emoji.
    {0x1fa70, 0x1faff, 2},  // Further emoji.
    {0x20000, 0x3fffd, 2},  // Ideographs, extended.
    {0xe0100, 0xe01ef, 0},  // Variation selectors, supplement.
};

std::size_t WidthOf(char32_t code_point) {
  const auto* const found =
      std::lower_bound(std::begin(kUnusual), std::end(kUnusual), code_point,
                       [](const CodePoints& range, char32_t each) { return range.last < each; });
  return found != std::end(kUnusual) && found->first <= code_point ? found->width : 1;
}

// Removes the first character of `text`, which must not be empty. Returns its width.
std::size_t TakeCharacter(std::string_view* text) {
  const std::size_t length = cli::Utf8Length(*text);
  const std::size_t width = length == 0 ? 1 : WidthOf(cli::FirstCodePoint(*text));
  text->remove_prefix(std::max<std::size_t>(length, 1));
  return width;
}

}  // namespace

std::size_t TextWidth(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += TakeCharacter(&text);
  return width;
}

std::string ShortenedText(std::string_view text, std::size_t columns) {
  constexpr std::string_view kEllipsis = "...";
  if (TextWidth(text) <= columns) return std::string(text);
  std::string_view rest = text;
  std::size_t kept = 0;  // Bytes.
  for (std::size_t width = kEllipsis.size(); !rest.empty();) {
    width += TakeCharacter(&rest);
    if (width > columns) break;
    kept = text.size() - rest.size();
  }
  return std::string(text.substr(0, kept)).append(kEllipsis);
}

}  // namespace softlookup::output
