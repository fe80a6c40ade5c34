#ifndef SOFTLOOKUP_CLIENT_TOOL_PAIR_READER_H_
#define SOFTLOOKUP_CLIENT_TOOL_PAIR_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "softlookup/float_matrix.h"
#include "softlookup/v1/store.pb.h"

namespace softlookup::tool {

// Names the files of rows to append; "-" is standard input. Set `keys` and `values`, or `rows`, or
// `words`. Each row of the file `rows` is a key, then its value. The file `words` has one word per
// line. The key and the value of its row are WordEncoder's encodings of the word.
struct PairInput {
  std::string keys;
  std::string values;
  std::string rows;
  std::string words;
  std::string format = "csv";  // The format of standard input.
};

// Reads rows for a store in batches. Errors are as in RowReader.
class PairReader {
 public:
  virtual ~PairReader() = default;

  // Replaces the matrices by the next `rows_max` rows, fewer only at the end. Returns the number of
  // rows. Even if that is 0, sets the numbers of columns: to the store's dimensions, or where they
  // are 0, to the files'. A file without a header or a row has 0 columns.
  virtual absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, FloatMatrix* keys,
                                             FloatMatrix* values) = 0;

  // Number of rows of the whole input, if a file's header tells it.
  virtual std::optional<std::uint64_t> row_count() const { return std::nullopt; }
};

// Opens the files of `input`. Keys and values must have the dimensions of `store`. With
// `input.keys` and `input.values`, a dimension of 0 in `store` means that the file determines it.
// `notes` is as for RowReader::set_notes().
absl::StatusOr<std::unique_ptr<PairReader>> OpenPairs(const PairInput& input,
                                                      const v1::Store& store,
                                                      std::ostream* notes = nullptr);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_PAIR_READER_H_
