#ifndef SOFTLOOKUP_CLIENT_TOOL_TUNING_H_
#define SOFTLOOKUP_CLIENT_TOOL_TUNING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "softlookup/client.h"

namespace softlookup::tool {

// A score and a temperature to try.
struct Setting {
  v1::Score score = v1::SCORE_UNSPECIFIED;  // Unspecified: the store's own.
  double temperature = 1;                   // In [1e-6, 1e6].
};

// Returns temperatures to try with `score`, ascending.
std::vector<double> DefaultTemperatures(v1::Score score);

// How well lookups with one setting predict the values of the rows that they leave out.
struct Figures {
  // Fraction of the answers that have their largest component at the same index as the value. Of
  // equal components, the first counts. Unset if values have only one component.
  std::optional<double> accuracy;
  // Mean of ln(p), where p is the answer's component at the index of the value's largest one. A p
  // below kLeastProbability counts as kLeastProbability. Unset unless ValuesAreDistributions().
  std::optional<double> log_likelihood;
  // Mean of |answer - value|^2.
  double squared_error = 0;
  // exp(the mean entropy of the weights). This many rows of equal weight would have the same
  // entropy.
  double perplexity = 0;
};

inline constexpr double kLeastProbability = 1e-5;

// Names of the figures that can decide which setting is best, as `tune --by` takes them.
inline constexpr char kAccuracy[] = "accuracy";
inline constexpr char kLogLikelihood[] = "log-likelihood";
inline constexpr char kSquaredError[] = "squared-error";

// Returns the figure with the name `by`, which must be one of the three above and must be set.
double FigureNamed(const std::string& by, const Figures& figures);

// A row that lookups leave out.
struct LeftOutRow {
  std::uint64_t position = 0;
  FloatMatrix key;    // [1 x key_dim].
  FloatMatrix value;  // [1 x value_dim].
};

// Figures of all settings that were tried.
struct Tuning {
  v1::Store store;  // As it was before.
  std::vector<LeftOutRow> rows;
  std::string by;  // Name of the figure that decides.
  std::vector<Setting> settings;
  std::vector<Figures> figures;  // figures[i] is of settings[i].
  std::size_t best = 0;          // Index in `settings`.
};

// Whether all values have at least two components, none of them negative, that add up to 1 within
// 1e-3. A log-likelihood of other values means nothing.
bool ValuesAreDistributions(absl::Span<const LeftOutRow> rows);

// Internal unless value_dim is over 0 and a multiple of the number of heads. Servers make no other
// stores.
absl::Status CheckHeads(const v1::Store& store);

// Draws `rows_max` of the live rows below position store.row_count(), each with the same
// probability. If no more than `rows_max` are live, draws all. Returns the rows in the order of
// positions. Reads the whole store once, within `read_deadline`. Internal if a row does not have
// the dimensions of `store`, or is not finite.
absl::StatusOr<std::vector<LeftOutRow>> DrawRows(const v1::Store& store, std::size_t rows_max,
                                                 std::uint64_t seed, absl::Duration read_deadline,
                                                 Client* client);

// Returns how many of `rows` have a twin: another live row below position store.row_count() with
// the same key and value. `rows` must be a result of DrawRows(). Reads the whole store once, within
// `read_deadline`. The errors are those of DrawRows().
absl::StatusOr<std::size_t> CountTwins(const v1::Store& store, absl::Span<const LeftOutRow> rows,
                                       absl::Duration read_deadline, Client* client);

// Leaves out one row of `rows` at a time, and asks all other rows below position store.row_count()
// with its key, once per setting. Compares each answer with the row's value. Returns the figures of
// each setting, all finite. `store` must pass CheckHeads(). `rows` must be a result of DrawRows(),
// and not empty. Makes several calls at a time. Calls `progress` with the number of rows done, on
// other threads but never on two at once. Aborted if no live row but the one left out remains.
// Internal if an answer is not finite, or if its entropy is over that of 2^64 rows of equal weight.
absl::StatusOr<std::vector<Figures>> LeaveOneOut(const v1::Store& store,
                                                 absl::Span<const LeftOutRow> rows,
                                                 absl::Span<const Setting> settings, Client* client,
                                                 absl::FunctionRef<void(std::uint64_t)> progress);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_TUNING_H_
