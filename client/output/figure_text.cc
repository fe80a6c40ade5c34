#include "client/output/figure_text.h"

#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace softlookup::output {
namespace {

std::string ThreeDigits(double number) {
  // The bounds allow for rounding: 9.996 becomes "10.0", not "10.00".
  if (number < 9.995) return absl::StrFormat("%.2f", number);
  if (number < 99.95) return absl::StrFormat("%.1f", number);
  return absl::StrFormat("%.0f", number);
}

}  // namespace

std::string TimeText(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0.9995e-3) return absl::StrCat(ThreeDigits(seconds * 1e6), " µs");
  if (seconds < 0.9995) return absl::StrCat(ThreeDigits(seconds * 1e3), " ms");
  return absl::StrCat(ThreeDigits(seconds), " s");
}

std::string CountText(std::uint64_t count) {
  std::string text = absl::StrCat(count);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, 1, ',');
  return text;
}

std::string NounText(std::uint64_t count, const std::string& noun) {
  if (count == 1) return noun;
  constexpr std::string_view kVowels = "aeiou";
  const std::size_t size = noun.size();
  const bool has_ies =
      size > 1 && noun[size - 1] == 'y' && kVowels.find(noun[size - 2]) == std::string_view::npos;
  return has_ies ? noun.substr(0, size - 1) + "ies" : noun + "s";
}

std::string Counted(std::uint64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", NounText(count, noun));
}

std::string BytesText(std::uint64_t bytes) {
  if (bytes < 1024) return Counted(bytes, "byte");
  double size = static_cast<double>(bytes) / 1024;
  for (const char* unit : {" KiB", " MiB", " GiB"}) {
    if (size < 1023.5) return absl::StrCat(ThreeDigits(size), unit);
    size /= 1024;
  }
  return absl::StrCat(ThreeDigits(size), " TiB");
}

std::string RateText(double per_second) {
  if (!std::isfinite(per_second)) return "-";
  if (per_second < 99.95) return absl::StrCat(ThreeDigits(per_second), "/s");
  return absl::StrCat(CountText(std::llround(per_second)), "/s");
}

std::string PercentText(double percent) { return absl::StrFormat("%.7g", percent); }

}  // namespace softlookup::output
