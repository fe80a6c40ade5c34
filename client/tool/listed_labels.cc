#include "client/tool/listed_labels.h"

#include <set>

#include "client/cpp/status_macros.h"

namespace softlookup::tool {
namespace {

// Most positions between two listed rows that one call reads. The rows between them are read in
// vain, which takes less time than another call.
constexpr std::uint64_t kGapMax = 256;

}  // namespace

absl::Status ReadListedLabels(const LookupAnswer& answer, const std::string& store,
                              const Session& session, Client* client, LabelsByPosition* labels) {
  std::set<std::uint64_t> missing;
  for (const v1::QueryWeights& weights : answer.weights) {
    for (const std::uint64_t position : weights.positions()) {
      if (labels->count(position) == 0) missing.insert(position);
    }
  }
  ReadRowsOptions options;
  options.read_mask = {"position", "labels"};
  options.deadline = session.StreamDeadline();
  for (auto first = missing.begin(); first != missing.end();) {
    v1::RowFilter filter;
    filter.set_begin(*first);
    std::uint64_t last = *first;
    for (; first != missing.end() && *first - last <= kGapMax; ++first) {
      last = *first;
      labels->emplace(last, std::vector<std::string>());
    }
    filter.set_end(last + 1);
    CLIENT_RETURN_IF_ERROR(client->ReadRows(
        store, filter,
        [&](const v1::ReadRowsResponse& page) {
          for (const v1::Row& row : page.rows()) {
            if (missing.count(row.position()) == 0) continue;
            (*labels)[row.position()].assign(row.labels().begin(), row.labels().end());
          }
          return true;
        },
        options));
  }
  return absl::OkStatus();
}

}  // namespace softlookup::tool
