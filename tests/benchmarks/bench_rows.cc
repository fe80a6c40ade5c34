#include "tests/benchmarks/bench_rows.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/tool/row_reader.h"
#include "core/base/limits.h"
#include "tests/benchmarks/measuring.h"
#include "tests/benchmarks/normal_floats.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

// What random numbers are for. Each purpose has its own, so that options do not change each
// other's.
enum class Stream { kQueries, kKeys, kValues, kCentres, kDrawnRows, kNoise, kOrder, kCount };

std::uint64_t SeedOf(const RowFlags& flags, Stream stream) {
  return flags.seed * static_cast<std::uint64_t>(Stream::kCount) +
         static_cast<std::uint64_t>(stream);
}

BenchMatrix NormalMatrix(std::int64_t rows, std::int64_t cols, const RowFlags& flags, Stream stream,
                         ForkJoinPool& pool) {
  return {
      .rows = rows, .cols = cols, .data = NormalFloats(rows * cols, SeedOf(flags, stream), pool)};
}

// Keeps the first `row_count` rows.
void Truncate(std::int64_t row_count, BenchMatrix& matrix) {
  matrix.rows = row_count;
  matrix.data.resize(static_cast<std::size_t>(row_count * matrix.cols));
}

BenchMatrix ReadNpy(const std::string& option, const std::string& path) {
  auto matrix = tool::ReadMatrix(path, "npy", {.count = 0, .meaning = ""});
  if (!matrix.ok()) throw CLI::ValidationError(option, std::string(matrix.status().message()));
  if (matrix->rows == 0) throw CLI::ValidationError(option, absl::StrCat(path, " has no rows"));
  if (matrix->cols > kDimMax) {
    throw CLI::ValidationError(
        option, absl::StrCat(path, " has ", matrix->cols, " columns, over the limit of ", kDimMax));
  }
  return {.rows = matrix->rows, .cols = matrix->cols, .data = std::move(matrix->data)};
}

BenchRows ReadRows(const RowFlags& flags) {
  BenchRows rows{.keys = ReadNpy("--data", flags.data)};
  if (!flags.values.empty()) {
    rows.own_values = ReadNpy("--values", flags.values);
    if (rows.own_values->rows != rows.keys.rows) {
      throw CLI::ValidationError("--values",
                                 absl::StrCat(flags.values, " has ", rows.own_values->rows,
                                              " rows, but --data has ", rows.keys.rows));
    }
  }
  const std::int64_t row_count = flags.row_count.value_or(rows.keys.rows);
  if (row_count > rows.keys.rows) {
    throw CLI::ValidationError("--rows", absl::StrCat("is ", row_count, ", but ", flags.data,
                                                      " has ", rows.keys.rows, " rows"));
  }
  Truncate(row_count, rows.keys);
  if (rows.own_values) Truncate(row_count, *rows.own_values);
  return rows;
}

// Moves the normally distributed `keys` around the centres of their clusters, which follow one
// another and are equally large.
void Cluster(const RowFlags& flags, BenchMatrix& keys, ForkJoinPool& pool) {
  if (flags.cluster_count > keys.rows) {
    throw CLI::ValidationError("--clusters", absl::StrCat("is ", flags.cluster_count,
                                                          ", but there are ", keys.rows, " rows"));
  }
  const BenchMatrix centres =
      NormalMatrix(flags.cluster_count, keys.cols, flags, Stream::kCentres, pool);
  const auto spread = static_cast<float>(flags.spread);
  for (std::int64_t row = 0; row < keys.rows; ++row) {
    const float* centre = centres.view().row(row * flags.cluster_count / keys.rows);
    float* key = keys.data.data() + row * keys.cols;
    for (std::int64_t i = 0; i < keys.cols; ++i) key[i] = centre[i] + spread * key[i];
  }
}

// Row i becomes the row order[i] of before.
void Reorder(absl::Span<const std::int64_t> order, BenchMatrix& matrix) {
  const std::vector<float> before = std::move(matrix.data);
  matrix.data.clear();
  matrix.data.reserve(before.size());
  for (const std::int64_t row : order) {
    const auto begin = before.begin() + row * matrix.cols;
    matrix.data.insert(matrix.data.end(), begin, begin + matrix.cols);
  }
}

void NormaliseRows(BenchMatrix& matrix) {
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    float* components = matrix.data.data() + row * matrix.cols;
    double square = 0;
    for (std::int64_t i = 0; i < matrix.cols; ++i) {
      square += static_cast<double>(components[i]) * components[i];
    }
    if (square == 0) continue;
    for (std::int64_t i = 0; i < matrix.cols; ++i) {
      components[i] = static_cast<float>(components[i] / std::sqrt(square));
    }
  }
}

BenchMatrix ReadQueries(const RowFlags& flags, std::int64_t query_count, std::int64_t key_dim) {
  BenchMatrix queries = ReadNpy("--query-data", flags.query_data);
  if (queries.cols != key_dim) {
    throw CLI::ValidationError("--query-data",
                               absl::StrCat(flags.query_data, " has ", queries.cols,
                                            " columns, but the keys have ", key_dim));
  }
  if (queries.rows < query_count) {
    throw CLI::ValidationError("--query-data",
                               absl::StrCat(flags.query_data, " has ", queries.rows,
                                            " rows, but --queries is ", query_count));
  }
  Truncate(query_count, queries);
  return queries;
}

}  // namespace

void AddRowOptions(CLI::App& command, RowFlags& flags) {
  command
      .add_option(
          "--rows", flags.row_count,
          absl::StrCat("Rows in the store (default: all of --data, or ", kRowCountDefault, ")"))
      ->check(CLI::Range(std::int64_t{1}, kRowCountMax));
  CLI::Option* key_dim =
      command.add_option("--key-dim", flags.key_dim, "Dimension of keys and queries")
          ->check(CLI::Range(std::int64_t{1}, kDimMax));
  CLI::Option* value_dim =
      command.add_option("--value-dim", flags.value_dim, "Dimension of values")
          ->check(CLI::Range(std::int64_t{1}, kDimMax));
  CLI::Option* data = command.add_option("--data", flags.data, "A .npy file of the keys, [N, d]")
                          ->check(CLI::ExistingFile)
                          ->excludes(key_dim)
                          ->excludes(value_dim);
  command.add_option("--values", flags.values, "A .npy file of their values (default: the keys)")
      ->check(CLI::ExistingFile)
      ->needs(data);
  CLI::Option* query_data =
      command
          .add_option("--query-data", flags.query_data, "A .npy file that begins with the queries")
          ->check(CLI::ExistingFile);
  command
      .add_option("--noise", flags.noise,
                  "Queries are random keys, with noise of this standard deviation a component")
      ->check(CLI::Range(0.0, 1e6))
      ->excludes(query_data);
  CLI::Option* clusters =
      command
          .add_option(
              "--clusters", flags.cluster_count,
              "Number of random centres that keys lie around (default 0: keys have no centres)")
          ->check(CLI::Range(std::int64_t{1}, kRowCountMax))
          ->excludes(data);
  command
      .add_option("--spread", flags.spread, "Standard deviation of a component from its centre's")
      ->check(CLI::Range(0.0, 1e6))
      ->needs(clusters);
  command.add_flag("--shuffle", flags.shuffle, "Rows arrive in random order");
  command.add_option("--seed", flags.seed, "Seed of all random numbers")
      ->check(CLI::Range(std::int64_t{0}, kRowCountMax));
}

BenchRows MakeRows(const RowFlags& flags, ForkJoinPool& pool) {
  BenchRows rows;
  if (!flags.data.empty()) {
    rows = ReadRows(flags);
  } else {
    const std::int64_t row_count = flags.row_count.value_or(kRowCountDefault);
    rows.keys = NormalMatrix(row_count, flags.key_dim, flags, Stream::kKeys, pool);
    rows.own_values = NormalMatrix(row_count, flags.value_dim, flags, Stream::kValues, pool);
    if (flags.cluster_count > 0) Cluster(flags, rows.keys, pool);
  }
  if (flags.shuffle) {
    const auto order = Draw(SeedOf(flags, Stream::kOrder)).Permutation(rows.keys.rows);
    Reorder(order, rows.keys);
    if (rows.own_values) Reorder(order, *rows.own_values);
  }
  return rows;
}

BenchMatrix MakeQueries(const RowFlags& flags, std::int64_t query_count, const MatrixView& keys,
                        Score score, ForkJoinPool& pool) {
  if (!flags.query_data.empty()) return ReadQueries(flags, query_count, keys.cols);
  if (!flags.noise && flags.data.empty() && flags.cluster_count == 0) {
    return NormalMatrix(query_count, keys.cols, flags, Stream::kQueries, pool);
  }
  BenchMatrix queries{.rows = query_count, .cols = keys.cols};
  Draw draw(SeedOf(flags, Stream::kDrawnRows));
  for (std::int64_t i = 0; i < query_count; ++i) {
    const float* key = keys.row(draw.Int(0, keys.rows - 1));
    queries.data.insert(queries.data.end(), key, key + keys.cols);
  }
  if (score == Score::kCosine) NormaliseRows(queries);
  const BenchMatrix noise = NormalMatrix(query_count, keys.cols, flags, Stream::kNoise, pool);
  const auto deviation = static_cast<float>(flags.noise.value_or(0));
  std::transform(
      queries.data.begin(), queries.data.end(), noise.data.begin(), queries.data.begin(),
      [deviation](float component, float normal) { return component + deviation * normal; });
  return queries;
}

}  // namespace softlookup::testing
