#ifndef SOFTLOOKUP_TESTS_BENCHMARKS_BENCH_ROWS_H_
#define SOFTLOOKUP_TESTS_BENCHMARKS_BENCH_ROWS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/matrix_view.h"
#include "core/parallel/fork_join_pool.h"
#include "softlookup/attention.h"

namespace softlookup::testing {

// A row-major matrix that owns its elements.
struct BenchMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> data;

  MatrixView view() const { return {.data = data.data(), .rows = rows, .cols = cols}; }
};

// What a benchmark appends, in the order of arrival.
struct BenchRows {
  BenchMatrix keys;
  std::optional<BenchMatrix> own_values;  // Nothing if the keys are the values, too.

  MatrixView values() const { return own_values ? own_values->view() : keys.view(); }
};

// Where the rows and queries of a benchmark come from: files, clusters or, by default, a normal
// distribution. The same flags make the same rows on any number of threads.
struct RowFlags {
  std::optional<std::int64_t> row_count;  // Default: all of `data`, or kRowCountDefault.
  std::int64_t key_dim = 128;
  std::int64_t value_dim = 128;
  std::string data, values, query_data;  // Paths of .npy files, or empty.
  std::int64_t cluster_count = 0;        // 0: no clusters.
  double spread = 0.1;
  bool shuffle = false;
  std::optional<double> noise;
  std::uint64_t seed = 1;
};

inline constexpr std::int64_t kRowCountDefault = 100'000;

// Adds the options that set `flags`, which must outlive `command`.
void AddRowOptions(CLI::App& command, RowFlags& flags);

// Makes the rows. Throws CLI::ValidationError, which names the option, if a file cannot be read or
// does not fit the other options.
BenchRows MakeRows(const RowFlags& flags, ForkJoinPool& pool);

// Makes [query_count, key_dim] queries for `rows`. Errors are as for MakeRows().
//
// They are the first rows of `query_data`, if it is set. Else, if `noise`, `data` or clusters are
// set, they are randomly drawn keys. These are normalised to length 1 if `score` is kCosine. Then
// `noise` is added, a normal distribution with that standard deviation a component. Otherwise they
// are normally distributed.
BenchMatrix MakeQueries(const RowFlags& flags, std::int64_t query_count, const MatrixView& keys,
                        Score score, ForkJoinPool& pool);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_BENCHMARKS_BENCH_ROWS_H_
