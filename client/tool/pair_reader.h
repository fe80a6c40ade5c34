#ifndef SOFTLOOKUP_CLIENT_TOOL_PAIR_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_PAIR_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// Where rows to append come from: keys and values in two files, both in one (each row the key, then
// the value), or words, one a line, whose encoding in the store's dimensions is key and value.
// Either `keys` and `values` are set, or one of the others.
struct PairInput {
  std::string keys;
  std::string values;
  std::string rows;
  std::string words;
  std::string format = "csv";  // Of standard input.
};

// Rows for a store, a batch at a time. Errors as in RowReader.
class PairReader {
 public:
  virtual ~PairReader() = default;

  // Replaces the matrices by the next `rows_max` rows, fewer only at the end; returns how many. At
  // the end they still have their columns, where anything tells them.
  virtual absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, FloatMatrix* keys,
                                             FloatMatrix* values) = 0;
};

// Keys and values must have the dimensions of `store`. Where those are 0 the two files say them.
absl::StatusOr<std::unique_ptr<PairReader>> OpenPairs(const PairInput& input,
                                                      const v1::Store& store);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PAIR_READER_H_
