#ifndef SOFTLOOKUP_CLIENT_OUTPUT_FIGURE_TEXT_H_
#define SOFTLOOKUP_CLIENT_OUTPUT_FIGURE_TEXT_H_

#include <cstdint>
#include <string>

namespace softlookup::output {

// These functions write numbers for people. Times, sizes and rates have two decimals if the printed
// number is below 10, one if it is below 100, and none otherwise. Sizes below 1 KiB are whole
// bytes.

// "412 µs", "1.23 ms", "12.3 s"; "-" if not finite.
std::string TimeText(double seconds);

// "135,021".
std::string CountText(std::uint64_t count);

// Returns `noun`, a singular, in the number that fits `count`: "row" for 1, else "rows". A y after
// a consonant becomes "ies". For irregular nouns it is wrong.
std::string NounText(std::uint64_t count, const std::string& noun);

// "1 row", "0 rows", "135021 queries". Without commas, as scripts may read the number.
std::string Counted(std::uint64_t count, const std::string& noun);

// "412 bytes", "1.50 KiB", "12.3 MiB", "1.54 GiB".
std::string BytesText(std::uint64_t bytes);

// "4,998/s", "0.52/s"; "-" if not finite.
std::string RateText(double per_second);

// "99.9", "50": at most seven significant digits, no per cent sign.
std::string PercentText(double percent);

}  // namespace softlookup::output

#endif  // SOFTLOOKUP_CLIENT_OUTPUT_FIGURE_TEXT_H_
