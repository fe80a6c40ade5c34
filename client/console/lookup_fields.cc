#include "client/console/lookup_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "client/output/vocabulary.h"

namespace softlookup::console {
namespace {

// Reads an enum's word. Returns 0, the unspecified value, if it is absent.
template <typename Enum>
Enum ReadWord(const char* name, RequestReader* reader) {
  const std::string word = reader->Text(name);
  const Enum value = output::FromWord<Enum>(word);
  if (!word.empty() && value == Enum()) reader->Refuse(name, "a word of the command line's");
  return value;
}

}  // namespace

v1::AttentionOptions ReadAttention(RequestReader* reader) {
  v1::AttentionOptions options;
  options.set_score(ReadWord<v1::Score>("score", reader));
  options.set_mode(ReadWord<v1::Mode>("mode", reader));
  const auto set = [&](const char* name, auto setter) {
    if (const auto number = reader->Number(name); number.has_value()) (options.*setter)(*number);
  };
  set("temperature", &v1::AttentionOptions::set_temperature);
  set("min_score", &v1::AttentionOptions::set_min_score);
  set("recency_decay", &v1::AttentionOptions::set_recency_decay);
  set("max_error", &v1::AttentionOptions::set_max_error);
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  options.set_top_k(static_cast<std::uint32_t>(reader->Count("top_k", kMax).value_or(0)));
  return options;
}

v1::RowFilter ReadFilter(RequestReader* reader) {
  v1::RowFilter filter;
  if (const auto begin = reader->Count("begin"); begin.has_value()) filter.set_begin(*begin);
  if (const auto end = reader->Count("end"); end.has_value()) filter.set_end(*end);
  if (const auto last = reader->Count("last"); last.has_value()) filter.set_last(*last);
  for (std::string& label : reader->Texts("any_labels")) filter.add_any_labels(std::move(label));
  for (std::string& label : reader->Texts("no_labels")) filter.add_no_labels(std::move(label));
  for (const std::uint64_t id : reader->Ids("ids")) filter.add_ids(id);
  for (const std::uint64_t id : reader->Ids("exclude_ids")) filter.add_exclude_ids(id);
  return filter;
}

std::vector<std::uint64_t> BlockEdges(std::uint64_t begin, std::uint64_t end, std::uint64_t count) {
  const std::uint64_t size = end - begin;
  count = std::min(count, std::max<std::uint64_t>(size, 1));
  std::vector<std::uint64_t> edges;
  for (std::uint64_t i = 0; i <= count; ++i) {
    // size * i could be more than 64 bits have.
    edges.push_back(begin + size / count * i + size % count * i / count);
  }
  return edges;
}

double RecencyShift(const v1::AttentionOptions& attention, std::uint64_t block_end,
                    std::uint64_t end) {
  if (!attention.has_recency_decay()) return 0;
  return static_cast<double>(end - block_end) * std::log(attention.recency_decay());
}

}  // namespace softlookup::console
