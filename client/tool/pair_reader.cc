#include "client/tool/pair_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/exit_code.h"
#include "client/tool/row_reader.h"
#include "client/tool/word_list.h"
#include "softlookup/word_encoder.h"

namespace softlookup::tool {
namespace {

void SetShape(std::uint32_t rows, std::uint32_t cols, FloatMatrix* matrix) {
  matrix->rows = rows;
  matrix->cols = cols;
  matrix->data.resize(std::size_t{rows} * cols);
}

class TwoFiles : public PairReader {
 public:
  TwoFiles(std::unique_ptr<RowReader> keys, std::unique_ptr<RowReader> values)
      : keys_(std::move(keys)), values_(std::move(values)) {}

  // Fails if the files' headers announce different numbers of rows, because Read() would then fail
  // near the end.
  absl::Status CheckRowCounts() const {
    const auto keys = keys_->row_count();
    const auto values = values_->row_count();
    if (!keys.has_value() || !values.has_value() || *keys == *values) return absl::OkStatus();
    return InputError(values_->name(), absl::StrCat("has ", output::Counted(*values, "row"),
                                                    ", but ", keys_->name(), " has ", *keys));
  }

  absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, FloatMatrix* keys,
                                     FloatMatrix* values) override {
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t key_count, keys_->Read(rows_max, &keys->data));
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t value_count,
                            values_->Read(rows_max, &values->data));
    if (key_count != value_count) {
      const bool keys_end = key_count < value_count;
      return InputError(
          (keys_end ? keys_ : values_)->name(),
          absl::StrCat("ends after ",
                       output::Counted(rows_read_ + std::min(key_count, value_count), "row"), ", ",
                       (keys_end ? values_ : keys_)->name(), " goes on"));
    }
    SetShape(key_count, keys_->cols(), keys);
    SetShape(key_count, values_->cols(), values);
    rows_read_ += key_count;
    return key_count;
  }

  std::optional<std::uint64_t> row_count() const override {
    return keys_->row_count().has_value() ? keys_->row_count() : values_->row_count();
  }

 private:
  const std::unique_ptr<RowReader> keys_;
  const std::unique_ptr<RowReader> values_;
  std::uint64_t rows_read_ = 0;
};

class OneFile : public PairReader {
 public:
  OneFile(std::unique_ptr<RowReader> rows, const v1::Store& store)
      : rows_(std::move(rows)), key_dim_(store.key_dim()), value_dim_(store.value_dim()) {}

  absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, FloatMatrix* keys,
                                     FloatMatrix* values) override {
    CLIENT_ASSIGN_OR_RETURN(const std::uint32_t count, rows_->Read(rows_max, &both_));
    SetShape(count, key_dim_, keys);
    SetShape(count, value_dim_, values);
    auto from = both_.begin();
    auto key = keys->data.begin();
    auto value = values->data.begin();
    for (std::uint32_t row = 0; row < count; ++row) {
      key = std::copy_n(from, key_dim_, key);
      from += key_dim_;
      value = std::copy_n(from, value_dim_, value);
      from += value_dim_;
    }
    return count;
  }

  std::optional<std::uint64_t> row_count() const override { return rows_->row_count(); }

 private:
  const std::unique_ptr<RowReader> rows_;
  const std::uint32_t key_dim_;
  const std::uint32_t value_dim_;
  std::vector<float> both_;
};

class WordPairs : public PairReader {
 public:
  WordPairs(ByteSource source, const v1::Store& store)
      : source_(std::move(source)), keys_(store.key_dim()), values_(store.value_dim()) {}

  absl::StatusOr<std::uint32_t> Read(std::uint32_t rows_max, FloatMatrix* keys,
                                     FloatMatrix* values) override {
    SetShape(rows_max, keys_.dim(), keys);
    SetShape(rows_max, values_.dim(), values);
    std::uint32_t count = 0;
    for (; count < rows_max; ++count) {
      CLIENT_ASSIGN_OR_RETURN(const bool read, NextWord(&source_, &word_));
      if (!read) break;
      EncodeRow(keys_, count, keys);
      EncodeRow(values_, count, values);
    }
    SetShape(count, keys_.dim(), keys);
    SetShape(count, values_.dim(), values);
    return count;
  }

 private:
  void EncodeRow(const WordEncoder& encoder, std::uint32_t row, FloatMatrix* matrix) const {
    encoder.Encode(
        word_,
        absl::MakeSpan(matrix->data).subspan(std::size_t{row} * encoder.dim(), encoder.dim()));
  }

  ByteSource source_;
  const WordEncoder keys_;
  const WordEncoder values_;
  std::string word_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PairReader>> OpenPairs(const PairInput& input,
                                                      const v1::Store& store, std::ostream* notes) {
  if (!input.words.empty()) {
    CLIENT_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(input.words));
    return std::make_unique<WordPairs>(std::move(source), store);
  }
  const auto dim_name = [&](const char* dim) { return absl::StrCat(dim, " of ", store.name()); };
  if (!input.rows.empty()) {
    CLIENT_ASSIGN_OR_RETURN(
        auto rows,
        OpenRows(input.rows, input.format,
                 {store.key_dim() + store.value_dim(), dim_name("key_dim + value_dim")}, notes));
    return std::make_unique<OneFile>(std::move(rows), store);
  }
  CLIENT_ASSIGN_OR_RETURN(
      auto keys, OpenRows(input.keys, input.format, {store.key_dim(), dim_name("key_dim")}, notes));
  CLIENT_ASSIGN_OR_RETURN(auto values, OpenRows(input.values, input.format,
                                                {store.value_dim(), dim_name("value_dim")}, notes));
  auto pairs = std::make_unique<TwoFiles>(std::move(keys), std::move(values));
  CLIENT_RETURN_IF_ERROR(pairs->CheckRowCounts());
  return pairs;
}

}  // namespace softlookup::tool
