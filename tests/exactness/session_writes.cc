// Writes to the server, and what it keeps of them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/exactness/session.h"
#include "tests/exactness/wire_matrix.h"

namespace softlookup::exactness {
namespace {

// The nearest number of 8 bits, ties to even. One that would be infinite is cut off instead.
float AsBfloat16(float component) {
  const auto bits = std::bit_cast<std::uint32_t>(component);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  const auto nearest = std::bit_cast<float>(rounded);
  return std::isinf(nearest) ? std::bit_cast<float>(bits & 0xffff0000u) : nearest;
}

}  // namespace

std::optional<std::vector<int>> Session::RowsThatStay(const KeptStore& kept,
                                                      const v1::AppendRequest& request) const {
  const bool skips = request.on_conflict() == v1::ON_CONFLICT_SKIP;
  const bool replaces = request.on_conflict() == v1::ON_CONFLICT_REPLACE;
  std::vector<int> rows;
  for (int row = 0; row < static_cast<int>(request.keys().rows()); ++row) {
    const bool is_taken = request.ids_size() > 0 && kept.PositionOf(request.ids(row)).has_value();
    if (is_taken && !skips && !replaces) return std::nullopt;
    if (!is_taken || replaces) rows.push_back(row);
  }
  return rows;
}

void Session::Append(OneStore& store, std::int64_t count) {
  KeptStore& kept = store.kept;
  ++counts_.appends;
  const v1::AppendRequest request = store.maker.MakeAppend(count, kept.row_count());
  const std::string what = absl::StrCat("Append of ", count, " rows");
  const std::optional<std::vector<int>> rows = RowsThatStay(kept, request);
  v1::AppendResponse response;
  grpc::ClientContext context;
  const grpc::Status status = stub_->Append(&context, request, &response);
  if (!rows) {
    if (status.error_code() != grpc::StatusCode::ALREADY_EXISTS) {
      Fail(kept, what, "an id that is taken was accepted");
    }
    return;
  }
  if (!RequireOk(kept, status, what)) return;
  const std::uint64_t revision = kept.revision() + 1;
  const std::uint64_t row_count = kept.row_count() + rows->size();
  const bool is_nothing = rows->empty() && response.revision() == kept.revision();
  if (response.appended_count() != rows->size() || response.row_count() != row_count ||
      (!rows->empty() && response.first_position() != kept.row_count()) ||
      (response.revision() != revision && !is_nothing)) {
    return Fail(kept, what, absl::StrCat("answered ", response.ShortDebugString()));
  }
  kept.set_revision(response.revision());
  for (const int row : *rows) {
    if (request.ids_size() == 0) break;
    if (const auto old = kept.PositionOf(request.ids(row))) kept.Delete(*old, revision);
  }
  ReadAppended(store, request, *rows);
  Forget(store);
}

void Session::ReadAppended(OneStore& store, const v1::AppendRequest& request,
                           const std::vector<int>& rows) {
  KeptStore& kept = store.kept;
  v1::ReadRowsRequest read;
  read.set_store(kept.name());
  read.mutable_filter()->set_begin(kept.row_count());
  read.set_page_rows(draw_.Coin() ? 0 : 100);
  const std::vector<float> keys = FloatsOf(request.keys()), values = FloatsOf(request.values());
  grpc::ClientContext context;
  const auto reader = stub_->ReadRows(&context, read);
  v1::ReadRowsResponse page;
  std::size_t next = 0;
  while (reader->Read(&page)) {
    for (const v1::Row& row : page.rows()) {
      if (next == rows.size() || row.position() != kept.row_count()) {
        return Fail(kept, "ReadRows", absl::StrCat("read position ", row.position()));
      }
      const int source = rows[next++];
      ++counts_.rows;
      KeptRow expected{.appended_at = kept.revision()};
      if (request.ids_size() > 0) expected.id = request.ids(source);
      if (request.row_labels_size() > 0) {
        const auto& labels = request.row_labels(source).labels();
        expected.labels.assign(labels.begin(), labels.end());
      }
      if (row.has_id() != expected.id.has_value() || row.id() != expected.id.value_or(0) ||
          !std::equal(row.labels().begin(), row.labels().end(), expected.labels.begin(),
                      expected.labels.end())) {
        Fail(kept, "ReadRows",
             absl::StrCat("position ", row.position(), " has another id or labels"));
      }
      const std::vector<float> key = FloatsOf(row.key()), value = FloatsOf(row.value());
      const auto part = [source](const std::vector<float>& all, std::int64_t dim) {
        return std::vector<float>(all.begin() + source * dim, all.begin() + (source + 1) * dim);
      };
      const std::string where = absl::StrCat("position ", row.position());
      CheckKept(kept, part(keys, kept.key_dim()), key, where + ", key");
      CheckKept(kept, part(values, kept.value_dim()), value, where + ", value");
      kept.Append(std::move(expected), key, value);
    }
  }
  RequireOk(kept, reader->Finish(), "ReadRows");
  if (next != rows.size()) Fail(kept, "ReadRows", absl::StrCat("gave ", next, " rows"));
}

void Session::CheckKept(const KeptStore& kept, const std::vector<float>& sent,
                        const std::vector<float>& kept_part, const std::string& what) {
  if (kept_part.size() != sent.size()) return Fail(kept, what, "has another size");
  float largest = 0;
  for (const float component : sent) largest = std::max(largest, std::abs(component));
  // The nearest multiple is found in float32, and a subnormal scale has few bits.
  const bool is_int8 = kept.config().storage_type() == v1::ELEMENT_TYPE_INT8;
  const double step = static_cast<double>(largest) / 127;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    ++tally_.comparisons;
    const float actual = kept_part[i];
    bool holds = false;
    if (is_int8) {
      const double off = std::abs(static_cast<double>(actual) - sent[i]);
      holds = off <= step * 0.50003 + 130 * 0x1p-149;
    } else {
      const float expected =
          kept.config().storage_type() == v1::ELEMENT_TYPE_BFLOAT16 ? AsBfloat16(sent[i]) : sent[i];
      holds = std::bit_cast<std::uint32_t>(expected) == std::bit_cast<std::uint32_t>(actual);
    }
    if (!holds) {
      return Fail(kept, what, absl::StrCat("component ", i, " is ", actual, ", sent as ", sent[i]));
    }
  }
}

void Session::Delete(OneStore& store) {
  KeptStore& kept = store.kept;
  ++counts_.deletions;
  v1::DeleteRowsRequest request;
  request.set_store(kept.name());
  *request.mutable_filter() = store.maker.MakeFilter(kept.row_count());
  // Most deletions leave most rows.
  if (draw_.Chance(0.8) && !request.filter().has_last()) {
    request.mutable_filter()->set_last(static_cast<std::uint64_t>(draw_.Int(0, 300)));
  }
  const auto [begin, end] = kept.RangeOf(request.filter(), kept.revision());
  std::vector<std::uint64_t> positions;
  for (std::uint64_t position = begin; position < end; ++position) {
    if (kept.Passes(request.filter(), position, kept.revision())) positions.push_back(position);
  }
  const std::string what = absl::StrCat("DeleteRows {", request.filter().ShortDebugString(), "}");
  v1::DeleteRowsResponse response;
  grpc::ClientContext context;
  if (!RequireOk(kept, stub_->DeleteRows(&context, request, &response), what)) return;
  const std::uint64_t revision = kept.revision() + 1;
  if (response.deleted_count() != positions.size() ||
      (response.revision() != revision &&
       !(positions.empty() && response.revision() == kept.revision()))) {
    Fail(kept, what,
         absl::StrCat("answered ", response.ShortDebugString(), ", has to delete ",
                      positions.size()));
  }
  kept.set_revision(response.revision());
  for (const std::uint64_t position : positions) kept.Delete(position, revision);
  Forget(store);
}

void Session::CheckMemory(OneStore& store) {
  const KeptStore& kept = store.kept;
  ++counts_.memories;
  v1::GetMemoryRequest request;
  request.set_store(kept.name());
  const int count = kept.config().memories_size();
  bool is_average = true;
  if (count > 0 && draw_.Chance(0.8)) {
    const v1::MemorySpec& spec = kept.config().memories(static_cast<int>(draw_.Int(0, count - 1)));
    request.set_name(spec.name());
    is_average = spec.kind() == v1::MEMORY_KIND_AVERAGE;
  }
  const auto rows = static_cast<std::int64_t>(kept.row_count());
  if (draw_.Coin()) request.set_end(static_cast<std::uint64_t>(draw_.Int(0, rows)));
  const auto end = request.has_end() ? static_cast<std::int64_t>(request.end()) : rows;
  if (is_average && draw_.Chance(0.7)) {
    // The average over few rows, next to larger ones, needs sums that lose nothing.
    const std::int64_t first = draw_.Coin() ? 0 : std::max<std::int64_t>(0, end - 4);
    request.set_begin(static_cast<std::uint64_t>(draw_.Int(first, end)));
  }
  const std::string what = absl::StrCat("GetMemory {", request.ShortDebugString(), "}");
  v1::Memory memory;
  grpc::ClientContext context;
  if (!RequireOk(kept, stub_->GetMemory(&context, request, &memory), what)) return;
  const KeptMemory exact =
      kept.MemoryOf(request.name(), request.begin(), static_cast<std::uint64_t>(end));
  // An average is rounded a few times in all, others at each step.
  const long double part_max = is_average ? 0x1p-50L : 1e-12L;
  // A window is the difference of sums over all rows before its ends. They are pairs of float64.
  KeptMemory before;
  if (request.begin() > 0) before = kept.MemoryOf(request.name(), 0, request.begin());
  const auto check = [&](const v1::Matrix& actual, const std::vector<long double>& expected,
                         long double size, long double size_before, const char* part) {
    std::vector<double> components(actual.data().size() / sizeof(double));
    if (components.size() != expected.size()) return Fail(kept, what, "has another size");
    std::memcpy(components.data(), actual.data().data(), actual.data().size());
    for (std::size_t i = 0; i < components.size(); ++i) {
      ++tally_.comparisons;
      const long double error = std::abs(components[i] - expected[i]);
      const long double allowed = part_max * size + 0x1p-90L * size_before + 0x1p-1074L;
      if (error > allowed) {
        Fail(kept, what,
             absl::StrCat(part, " component ", i, " is ", components[i], ", exactly ",
                          static_cast<double>(expected[i])));
      }
    }
  };
  check(memory.key(), exact.key, exact.key_size, before.key_size, "key");
  check(memory.value(), exact.value, exact.value_size, before.value_size, "value");
  if (std::abs(memory.weight() - exact.weight) > 1e-12L * (1 + exact.weight * exact.weight)) {
    Fail(kept, what,
         absl::StrCat("weight is ", memory.weight(), ", exactly ",
                      static_cast<double>(exact.weight)));
  }
}

}  // namespace softlookup::exactness
