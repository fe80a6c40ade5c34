// The files of rows that the tool reads, and of their ids and labels.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/tool/csv_reader.h"
#include "client/tool/exit_code.h"
#include "client/tool/fvecs_reader.h"
#include "client/tool/npy_reader.h"
#include "client/tool/row_reader.h"
#include "client/tool/row_tags.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

using tool::ByteSource;
using tool::Columns;
using tool::RowReader;

// As ReadMatrix() has it.
constexpr std::uint32_t kBatchRows = 4096;

// A file in memory with a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) { REQUIRE(descriptor_ >= 0); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(descriptor_); }

  std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }
  void Set(const void* bytes, std::size_t size) {
    REQUIRE(ftruncate(descriptor_, 0) == 0);
    REQUIRE(pwrite(descriptor_, bytes, size, 0) == static_cast<ssize_t>(size));
  }

 private:
  const int descriptor_;
};

using Open = absl::StatusOr<std::unique_ptr<RowReader>>(ByteSource source, Columns columns);

struct Rows {
  std::vector<float> floats;
  std::uint64_t count = 0;
  std::uint64_t cols = 0;
};

// A file that is refused is an input error: the tool's exit code for it.
absl::Status Refused(const absl::Status& status) {
  REQUIRE(tool::ExitCodeOf(status) == tool::ExitCode::kInput);
  return status;
}

absl::StatusOr<Rows> ReadAll(Open* open, const MemoryFile& file, std::uint32_t columns,
                             std::uint32_t batch_rows) {
  auto source = ByteSource::Open(file.path());
  REQUIRE(source.ok());
  const auto reader = open(*std::move(source), {.count = columns, .meaning = "key_dim"});
  if (!reader.ok()) return Refused(reader.status());
  Rows rows;
  std::vector<float> batch;
  for (;;) {
    const auto count = (*reader)->Read(batch_rows, &batch);
    if (!count.ok()) return Refused(count.status());
    rows.cols = (*reader)->cols();
    REQUIRE(*count <= batch_rows && batch.size() == *count * rows.cols);
    REQUIRE(columns == 0 || rows.cols == columns);
    if (*count == 0) break;
    REQUIRE(rows.cols > 0);
    REQUIRE(std::all_of(batch.begin(), batch.end(), [](float x) { return std::isfinite(x); }));
    rows.count += *count;
    rows.floats.insert(rows.floats.end(), batch.begin(), batch.end());
  }
  REQUIRE((*reader)->row_count().value_or(rows.count) == rows.count);
  return rows;
}

bool AreSame(const Rows& a, const Rows& b) {
  const auto have_same_bits = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  return a.count == b.count && std::equal(a.floats.begin(), a.floats.end(), b.floats.begin(),
                                          b.floats.end(), have_same_bits);
}

// The rows of these bytes, in batches of any size the same; an error if any of them is refused.
absl::StatusOr<Rows> ReadFile(Open* open, MemoryFile& file, const std::uint8_t* bytes,
                              std::size_t size) {
  file.Set(bytes, size);
  // Rows of a dimension that the file must have.
  (void)ReadAll(open, file, /*columns=*/1, /*batch_rows=*/3);
  (void)ReadAll(open, file, /*columns=*/2, /*batch_rows=*/3);
  absl::StatusOr<Rows> rows = ReadAll(open, file, /*columns=*/0, kBatchRows);
  const absl::StatusOr<Rows> one_by_one = ReadAll(open, file, /*columns=*/0, /*batch_rows=*/1);
  REQUIRE(rows.ok() == one_by_one.ok());
  REQUIRE(!rows.ok() || AreSame(*rows, *one_by_one));
  return rows;
}

}  // namespace

void FuzzCsv(const std::uint8_t* bytes, std::size_t size) {
  static auto* const file = new MemoryFile();
  const absl::StatusOr<Rows> rows = ReadFile(tool::OpenCsv, *file, bytes, size);
  if (!rows.ok()) return;
  // Nine digits are any float32.
  std::string text;
  for (std::uint64_t i = 0; i < rows->floats.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), "%.9g", rows->floats[i]);
    absl::StrAppend(&text, number, (i + 1) % rows->cols == 0 ? "\n" : ",");
  }
  file->Set(text.data(), text.size());
  const absl::StatusOr<Rows> again = ReadAll(tool::OpenCsv, *file, /*columns=*/0, kBatchRows);
  REQUIRE(again.ok() && AreSame(*again, *rows));
}

void FuzzFvecs(const std::uint8_t* bytes, std::size_t size) {
  static auto* const file = new MemoryFile();
  const absl::StatusOr<Rows> rows = ReadFile(tool::OpenFvecs, *file, bytes, size);
  if (!rows.ok()) return;
  std::string written;
  for (std::uint64_t row = 0; row < rows->count; ++row) {
    const auto cols = static_cast<std::uint32_t>(rows->cols);
    written.append(reinterpret_cast<const char*>(&cols), sizeof(cols));
    written.append(reinterpret_cast<const char*>(rows->floats.data() + row * cols), cols * 4);
  }
  REQUIRE(written == std::string(bytes, bytes + size));
}

void FuzzNpy(const std::uint8_t* bytes, std::size_t size) {
  static auto* const file = new MemoryFile();
  const absl::StatusOr<Rows> rows = ReadFile(tool::OpenNpy, *file, bytes, size);
  if (!rows.ok()) return;
  // All that is behind the header.
  REQUIRE(rows->floats.size() == rows->count * rows->cols);
  REQUIRE(rows->floats.size() * sizeof(float) < size);
}

void FuzzRowTags(const std::uint8_t* bytes, std::size_t size) {
  static auto* const ids = new MemoryFile();
  static auto* const labels = new MemoryFile();
  constexpr std::uint32_t kRowCount = 3;
  const std::uint8_t* const end = std::find(bytes, bytes + size, 0);
  const std::uint8_t* const labels_begin = end == bytes + size ? end : end + 1;
  ids->Set(bytes, static_cast<std::size_t>(end - bytes));
  labels->Set(labels_begin, static_cast<std::size_t>(bytes + size - labels_begin));
  auto tags = tool::RowTags::Open(ids->path(), labels->path());
  REQUIRE(tags.ok());
  for (;;) {
    v1::AppendRequest rows;
    rows.mutable_keys()->set_rows(kRowCount);
    rows.mutable_keys()->set_cols(1);
    rows.mutable_keys()->set_data(std::string(kRowCount * 4, '\0'));
    const auto tagged = tags->Tag(kRowCount, std::move(rows));
    if (!tagged.ok()) {
      (void)Refused(tagged.status());
      break;
    }
    std::uint32_t count = 0;
    for (const v1::AppendRequest& request : *tagged) {
      count += request.keys().rows();
      REQUIRE(request.keys().data().size() == request.keys().rows() * 4);
      REQUIRE(request.row_labels_size() == static_cast<int>(request.keys().rows()));
      REQUIRE(request.ids_size() == 0 ||
              request.ids_size() == static_cast<int>(request.keys().rows()));
      std::string sent;  // Nor is a label something that the wire does not carry.
      REQUIRE(request.SerializeToString(&sent) && v1::AppendRequest().ParseFromString(sent));
    }
    REQUIRE(count == kRowCount);
  }
  if (const absl::Status at_end = tags->CheckAtEnd(); !at_end.ok()) (void)Refused(at_end);
}

}  // namespace softlookup::fuzz
