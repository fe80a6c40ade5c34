#include "client/loadtest/row_source.h"

#include <cstddef>

#include "client/loadtest/random.h"

namespace softlookup::loadtest {
namespace {

// Scales uniform numbers in [-2^31, 2^31) to variance 1. The factor is sqrt(3).
constexpr float kScale = 1.7320508f * 0x1p-31f;

// What a generated vector is for. Each kind has random numbers of its own.
enum class Kind : std::uint64_t { kFilled = 1, kAppended = 2, kQuery = 3 };

float ToComponent(std::uint32_t bits) {
  return static_cast<float>(static_cast<std::int32_t>(bits)) * kScale;
}

Random GeneratorOf(std::uint64_t seed, Kind kind, std::uint64_t group, std::uint64_t row) {
  return Random(Mix(Mix(seed * 4 + static_cast<std::uint64_t>(kind)) + group) + row);
}

void AddRow(Random* random, FloatMatrix* matrix) {
  for (std::uint32_t i = 0; i < matrix->cols; i += 2) {
    const std::uint64_t bits = (*random)();
    matrix->data.push_back(ToComponent(static_cast<std::uint32_t>(bits)));
    if (i + 1 < matrix->cols) {
      matrix->data.push_back(ToComponent(static_cast<std::uint32_t>(bits >> 32)));
    }
  }
  ++matrix->rows;
}

FloatMatrix EmptyMatrix(std::uint32_t rows_later, std::uint32_t cols) {
  FloatMatrix matrix{.rows = 0, .cols = cols, .data = {}};
  matrix.data.reserve(std::size_t{rows_later} * cols);
  return matrix;
}

}  // namespace

RowSource::Rows RowSource::FilledRows(std::uint32_t store, std::uint64_t first,
                                      std::uint32_t count) const {
  Rows rows{EmptyMatrix(count, key_dim_), EmptyMatrix(count, value_dim_)};
  for (std::uint64_t row = first; row < first + count; ++row) {
    Random random = GeneratorOf(seed_, Kind::kFilled, store, row);
    AddRow(&random, &rows.keys);
    AddRow(&random, &rows.values);
  }
  return rows;
}

RowSource::Rows RowSource::AppendedRows(std::uint32_t batch, std::uint32_t count) const {
  Rows rows{EmptyMatrix(count, key_dim_), EmptyMatrix(count, value_dim_)};
  for (std::uint32_t row = 0; row < count; ++row) {
    Random random = GeneratorOf(seed_, Kind::kAppended, batch, row);
    AddRow(&random, &rows.keys);
    AddRow(&random, &rows.values);
  }
  return rows;
}

FloatMatrix RowSource::Queries(std::uint32_t set, std::uint32_t count) const {
  FloatMatrix queries = EmptyMatrix(count, key_dim_);
  for (std::uint32_t row = 0; row < count; ++row) {
    Random random = GeneratorOf(seed_, Kind::kQuery, set, row);
    AddRow(&random, &queries);
  }
  return queries;
}

}  // namespace softlookup::loadtest
