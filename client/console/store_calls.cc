#include "client/console/store_calls.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/console/lookup_fields.h"
#include "client/console/request_reader.h"
#include "client/cpp/status_macros.h"
#include "client/output/vocabulary.h"

namespace softlookup::console {
namespace {

using output::Json;
using output::Word;

constexpr std::uint64_t kPageRowsMax = 200;
constexpr std::size_t kPositionsMax = 64;
constexpr std::size_t kComponentsShown = 16;
constexpr int kStoresOfPage = 100;
constexpr absl::Duration kRowsDeadline = absl::Seconds(10);

Json MemoriesJson(const v1::Store& store) {
  Json memories = Json::array({{{"name", "average"}, {"kind", Word(v1::MEMORY_KIND_AVERAGE)}}});
  for (const v1::MemorySpec& memory : store.memories()) {
    Json json = {{"name", memory.name()}, {"kind", Word(memory.kind())}};
    if (memory.decay() > 0) json["decay"] = memory.decay();
    memories.push_back(std::move(json));
  }
  return memories;
}

Json StoreJson(const v1::Store& store) {
  const bool default_score = store.score() == v1::SCORE_UNSPECIFIED;
  const bool default_storage = store.storage_type() == v1::ELEMENT_TYPE_UNSPECIFIED;
  return {
      {"name", store.name()},
      {"key_dim", store.key_dim()},
      {"value_dim", store.value_dim()},
      {"num_heads", std::max(store.num_heads(), 1u)},
      {"score", Word(default_score ? v1::SCORE_SCALED_DOT : store.score())},
      {"temperature", store.has_temperature() ? store.temperature() : 1},
      {"storage", Word(default_storage ? v1::ELEMENT_TYPE_FLOAT32 : store.storage_type())},
      {"memories", MemoriesJson(store)},
      {"labels", std::map<std::string, std::string>(store.labels().begin(), store.labels().end())},
      {"input_dim", store.projection().key().cols()},
      {"revision", store.revision()},
      {"row_count", store.row_count()},
      {"live_row_count", store.live_row_count()},
      {"byte_size", store.byte_size()},
      {"create_seconds", store.create_time().seconds()},
      {"damage", store.damage()}};
}

// Returns the first components of a vector, and how many there are.
absl::StatusOr<Json> VectorJson(const v1::Matrix& matrix) {
  CLIENT_ASSIGN_OR_RETURN(const FloatMatrix vector, FloatMatrix::FromProto(matrix));
  const auto all = absl::MakeConstSpan(vector.data);
  return Json{{"size", all.size()},
              {"first", output::ToJson(all.subspan(0, std::min(all.size(), kComponentsShown)))}};
}

absl::StatusOr<Json> RowJson(const v1::Row& row) {
  CLIENT_ASSIGN_OR_RETURN(Json key, VectorJson(row.key()));
  CLIENT_ASSIGN_OR_RETURN(Json value, VectorJson(row.value()));
  return Json{{"position", row.position()},
              {"id", row.has_id() ? Json(std::to_string(row.id())) : Json()},
              {"labels", std::vector<std::string>(row.labels().begin(), row.labels().end())},
              {"key", std::move(key)},
              {"value", std::move(value)}};
}

}  // namespace

absl::StatusOr<Json> ListStores(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  v1::ListStoresRequest list;
  list.set_page_size(kStoresOfPage);
  list.set_prefix(reader.Text("prefix"));
  list.set_page_token(reader.Text("page_token"));
  CLIENT_RETURN_IF_ERROR(reader.status());
  CLIENT_ASSIGN_OR_RETURN(const v1::ListStoresResponse page, backend.client->ListStoresPage(list));
  Json stores = Json::array();
  for (const v1::Store& store : page.stores()) stores.push_back(StoreJson(store));
  return Json{{"stores", std::move(stores)}, {"next_page_token", page.next_page_token()}};
}

absl::StatusOr<Json> GetStore(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  const std::string name = reader.Text("name");
  CLIENT_RETURN_IF_ERROR(reader.status());
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, backend.client->GetStore(name));
  return StoreJson(store);
}

absl::StatusOr<Json> ReadRows(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  const std::string store = reader.Text("store");
  const v1::RowFilter filter = ReadFilter(&reader);
  const std::uint64_t count = reader.Count("count", kPageRowsMax).value_or(kPageRowsMax);
  CLIENT_RETURN_IF_ERROR(reader.status());
  ReadRowsOptions options{.deadline = kRowsDeadline};
  options.page_rows = static_cast<std::uint32_t>(count + 1);  // One more tells whether that is all.
  Json rows = Json::array();
  Json next;  // Position of the next page's first row.
  std::uint64_t revision = 0;
  absl::Status status;
  CLIENT_RETURN_IF_ERROR(backend.client->ReadRows(
      store, filter,
      [&](const v1::ReadRowsResponse& page) {
        revision = page.revision();
        for (const v1::Row& row : page.rows()) {
          if (rows.size() == count) {
            next = row.position();
            return false;
          }
          absl::StatusOr<Json> json = RowJson(row);
          if (status = json.status(); !status.ok()) return false;
          rows.push_back(*std::move(json));
        }
        return !*backend.stopping;
      },
      options));
  CLIENT_RETURN_IF_ERROR(status);
  return Json{{"rows", std::move(rows)}, {"next", std::move(next)}, {"revision", revision}};
}

absl::StatusOr<Json> ReadLabels(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  const std::string store = reader.Text("store");
  const std::vector<std::uint64_t> list = reader.Counts("positions");
  const std::set<std::uint64_t> positions(list.begin(), list.end());
  if (positions.size() > kPositionsMax) reader.Refuse("positions", "at most 64 positions");
  CLIENT_RETURN_IF_ERROR(reader.status());
  ReadRowsOptions options{.read_mask = {"position", "id", "labels"}, .deadline = kRowsDeadline};
  Json rows = Json::array();
  for (auto next = positions.begin(); next != positions.end();) {
    v1::RowFilter filter;  // One read for positions without a gap.
    filter.set_begin(*next);
    do {
      filter.set_end(*next + 1);
      ++next;
    } while (next != positions.end() && *next == filter.end());
    CLIENT_RETURN_IF_ERROR(backend.client->ReadRows(
        store, filter,
        [&](const v1::ReadRowsResponse& page) {
          for (const v1::Row& row : page.rows()) {
            if (rows.size() == positions.size()) return false;  // More than was asked for.
            rows.push_back(
                {{"position", row.position()},
                 {"id", row.has_id() ? Json(std::to_string(row.id())) : Json()},
                 {"labels", std::vector<std::string>(row.labels().begin(), row.labels().end())}});
          }
          return true;
        },
        options));
    if (*backend.stopping) return absl::CancelledError("the console stops");
  }
  return Json{{"rows", std::move(rows)}};
}

}  // namespace softlookup::console
