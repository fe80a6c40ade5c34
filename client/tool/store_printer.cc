#include "client/tool/store_printer.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/terminal_text.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/output/vocabulary.h"
#include "client/tool/memory_flags.h"
#include "softlookup/float_matrix.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::Align;
using output::Counted;
using output::Json;
using output::PrintJson;
using output::Table;
using output::VectorText;
using output::Word;

// The next four functions return the contract's default if the server left the field unset.
std::uint32_t Heads(const v1::Store& store) { return std::max(store.num_heads(), 1u); }
double Temperature(const v1::Store& store) {
  return store.has_temperature() ? store.temperature() : 1;
}
std::string ScoreWord(const v1::Store& store) {
  return Word(store.score() == v1::SCORE_UNSPECIFIED ? v1::SCORE_SCALED_DOT : store.score());
}
std::string StorageWord(const v1::Store& store) {
  return Word(store.storage_type() == v1::ELEMENT_TYPE_UNSPECIFIED ? v1::ELEMENT_TYPE_FLOAT32
                                                                   : store.storage_type());
}

// Returns the create_time of a v1::Store or a v1::ReplacedStore.
template <typename Message>
std::string CreateTime(const Message& store) {
  const absl::Time time = absl::FromUnixSeconds(store.create_time().seconds()) +
                          absl::Nanoseconds(store.create_time().nanos());
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::map<std::string, std::string> Labels(const v1::Store& store) {
  return {store.labels().begin(), store.labels().end()};
}

bool IsDamaged(const v1::Store& store) { return !store.damage().empty(); }
// Returns whether the server could read the store's configuration.
bool HasSettings(const v1::Store& store) { return store.key_dim() > 0; }

// Returns the dimension of the inputs of the store's projection; 0 if the store has no projection.
std::uint32_t InputDim(const v1::Store& store) { return store.projection().key().cols(); }

// Returns the numbers of a memory's gate. Empty if it has none, or if the server left them out.
std::vector<float> GateOf(const v1::MemorySpec& memory) {
  absl::StatusOr<FloatMatrix> gate = FloatMatrix::FromProto(memory.gate());
  return gate.ok() ? std::move(gate->data) : std::vector<float>();
}

Json MemoriesJson(const v1::Store& store) {
  Json list = Json::array();
  for (const v1::MemorySpec& memory : store.memories()) {
    Json json = {{"name", memory.name()}, {"kind", Word(memory.kind())}};
    if (HasDecay(memory.kind())) json["decay"] = memory.decay();
    if (HasGate(memory.kind())) json["gate"] = output::ToJson(GateOf(memory));
    list.push_back(std::move(json));
  }
  return list;
}

// Returns the memory in the syntax of `store create --memory`, but with the numbers of a gate in
// place of its file.
std::string MemoryText(const v1::MemorySpec& memory) {
  std::string text = absl::StrCat(memory.name(), "=", Word(memory.kind()));
  if (HasDecay(memory.kind())) absl::StrAppend(&text, ":", memory.decay());
  if (HasGate(memory.kind())) {
    const std::vector<float> gate = GateOf(memory);
    absl::StrAppend(&text, ":", VectorText(std::vector<double>(gate.begin(), gate.end())));
  }
  return text;
}

Json StoreJson(const v1::Store& store) {
  Json json = {{"name", store.name()},
               {"key_dim", store.key_dim()},
               {"value_dim", store.value_dim()},
               {"num_heads", Heads(store)},
               {"score", ScoreWord(store)},
               {"temperature", Temperature(store)},
               {"storage_type", StorageWord(store)},
               {"labels", Labels(store)},
               {"memories", MemoriesJson(store)},
               {"revision", store.revision()},
               {"row_count", store.row_count()},
               {"live_row_count", store.live_row_count()},
               {"byte_size", store.byte_size()},
               {"create_time", CreateTime(store)}};
  if (store.has_projection()) json["projection"] = {{"input_dim", InputDim(store)}};
  if (IsDamaged(store)) json["damage"] = store.damage();
  return json;
}

}  // namespace

void PrintStore(const v1::Store& store, const Session& session) {
  if (session.json) return PrintJson(StoreJson(store), session.out);
  const auto line = [&](const char* title, const std::string& text) {
    *session.out << absl::StreamFormat("%-12s %s\n", title, TerminalText(text));
  };
  line("name", store.name());
  if (IsDamaged(store)) line("damaged", store.damage());
  if (IsDamaged(store) && !HasSettings(store)) return;
  line("key_dim", absl::StrCat(store.key_dim()));
  line("value_dim", absl::StrCat(store.value_dim()));
  line("heads", absl::StrCat(Heads(store)));
  line("score", ScoreWord(store));
  line("temperature", absl::StrCat(Temperature(store)));
  line("storage", StorageWord(store));
  line("rows", IsDamaged(store)
                   ? absl::StrCat(store.row_count(), " before the damage")
                   : absl::StrCat(store.row_count(), ", live ", store.live_row_count()));
  if (store.has_projection()) line("projection", absl::StrCat("input_dim ", InputDim(store)));
  line("revision", absl::StrCat(store.revision()));
  if (!IsDamaged(store)) line("size", output::BytesText(store.byte_size()));
  line("created", CreateTime(store));
  for (const v1::MemorySpec& memory : store.memories()) line("memory", MemoryText(memory));
  for (const auto& [key, value] : Labels(store)) line("label", absl::StrCat(key, "=", value));
}

void PrintRenamed(const std::string& name, const v1::RenameStoreResponse& response,
                  const Session& session) {
  const v1::ReplacedStore& replaced = response.replaced();
  if (session.json) {
    Json json = {{"renamed", name}, {"store", StoreJson(response.store())}};
    if (response.has_replaced()) {
      json["replaced"] = {{"revision", replaced.revision()},
                          {"row_count", replaced.row_count()},
                          {"live_row_count", replaced.live_row_count()},
                          {"create_time", CreateTime(replaced)}};
    }
    return PrintJson(json, session.out);
  }
  *session.out << "renamed " << TerminalText(name) << " to "
               << TerminalText(response.store().name()) << ", which has "
               << Counted(response.store().row_count(), "row") << " at revision "
               << response.store().revision() << "\n";
  if (!response.has_replaced()) return;
  *session.out << "replaced a store of " << Counted(replaced.row_count(), "row") << " at revision "
               << replaced.revision() << ", created " << CreateTime(replaced)
               << "; its writers are gone with it\n";
}

void PrintCompacted(const v1::Store& before, const v1::CompactStoreResponse& response,
                    const Session& session) {
  const v1::Store& store = response.store();
  if (session.json) {
    return PrintJson({{"compacted", store.name()},
                      {"dropped_rows", response.dropped_rows()},
                      {"compacted_blocks", response.compacted_blocks()},
                      {"byte_size_before", before.byte_size()},
                      {"store", StoreJson(store)}},
                     session.out);
  }
  *session.out << "dropped " << Counted(response.dropped_rows(), "row") << " from "
               << Counted(response.compacted_blocks(), "block") << " of "
               << TerminalText(store.name()) << "; size " << output::BytesText(before.byte_size())
               << " before, " << output::BytesText(store.byte_size()) << " after\n";
}

void PrintRestored(const std::string& backup, const std::string& name, const v1::Store& store,
                   const Session& session) {
  if (session.json) {
    return PrintJson({{"restored", name}, {"backup", backup}, {"store", StoreJson(store)}},
                     session.out);
  }
  *session.out << "restored " << TerminalText(name) << " of " << TerminalText(backup) << " as "
               << TerminalText(store.name()) << ": " << Counted(store.row_count(), "row") << ", "
               << store.live_row_count() << " live\n";
}

void PrintStores(const std::vector<v1::Store>& stores, const Session& session) {
  if (session.json) {
    Json list = Json::array();
    for (const v1::Store& store : stores) list.push_back(StoreJson(store));
    return PrintJson({{"stores", std::move(list)}}, session.out);
  }
  std::vector<Table::Column> columns = {{"name"},
                                        {"key_dim", Align::kRight, 2},
                                        {"value_dim", Align::kRight, 2},
                                        {"heads", Align::kRight, 6},
                                        {"score", Align::kLeft, 1},
                                        {"temperature", Align::kRight, 4},
                                        {"storage", Align::kLeft, 3},
                                        {"rows", Align::kRight},
                                        {"revision", Align::kRight, 5},
                                        {"size", Align::kRight}};
  const bool any_damaged = std::any_of(stores.begin(), stores.end(), IsDamaged);
  if (any_damaged) columns.push_back({"state"});
  Table table(columns);
  for (const v1::Store& store : stores) {
    std::vector<std::string> row = {store.name(),
                                    absl::StrCat(store.key_dim()),
                                    absl::StrCat(store.value_dim()),
                                    absl::StrCat(Heads(store)),
                                    ScoreWord(store),
                                    absl::StrCat(Temperature(store)),
                                    StorageWord(store),
                                    absl::StrCat(store.row_count()),
                                    absl::StrCat(store.revision()),
                                    output::BytesText(store.byte_size())};
    if (IsDamaged(store)) {
      row.back() = "-";
      if (!HasSettings(store)) std::fill(row.begin() + 1, row.end(), "-");
    }
    if (any_damaged) row.push_back(IsDamaged(store) ? "damaged" : "whole");
    table.AddRow(std::move(row));
  }
  session.Print(&table);
}

}  // namespace softlookup::tool
