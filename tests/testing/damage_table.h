#ifndef SOFTLOOKUP_TESTS_TESTING_DAMAGE_TABLE_H_
#define SOFTLOOKUP_TESTS_TESTING_DAMAGE_TABLE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace softlookup::testing {

// The only table of the data directory.
inline std::filesystem::path OnlyTableIn(const std::string& directory) {
  std::filesystem::path table;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".sst") continue;
    EXPECT_TRUE(table.empty()) << "several tables";
    table = entry.path();
  }
  return table;
}

// Flips a bit of `wanted` in `table`, in the middle between its first and its last occurrence.
inline void DamageBytes(const std::filesystem::path& table, const std::string& wanted) {
  std::ifstream in(table, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::size_t first = bytes.find(wanted), last = bytes.rfind(wanted);
  ASSERT_NE(first, std::string::npos) << table;
  const std::size_t middle = bytes.find(wanted, first + (last - first) / 2);
  ASSERT_NE(middle, std::string::npos) << table;
  std::fstream out(table, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(middle));
  out.put(static_cast<char>(bytes[middle] ^ 1));
}

// Flips a bit of a FLOAT32 row in `table`, in the middle between the first and the last row that
// has the components `row`: a key, then its value.
inline void DamageRow(const std::filesystem::path& table, const std::vector<float>& row) {
  DamageBytes(table, {reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float)});
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_DAMAGE_TABLE_H_
