// Bits that flip in files, and files that are cut short, while no server runs. A failure prints
// SOFTLOOKUP_TEST_SEED=N; with that in the environment the run begins with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "softlookup/engine.h"
#include "tests/faults/cycles.h"
#include "tests/faults/journal.h"
#include "tests/testing/engine_calls.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStores[] = {"first", "second"};

// WAL, table, manifest and so on.
std::string KindOf(const fs::path& file) {
  const std::string extension = file.extension().string();
  if (!extension.empty()) return extension;
  const std::string name = file.filename().string();
  return name.substr(0, name.find('-'));
}

class DamageTest : public ::testing::Test {
 protected:
  // Stores in tables, and in the write-ahead log what came after: what a killed process leaves.
  void SetUp() override {
    const std::string data = directory_.path() + "/data";
    for (int start = 0; start < 3; ++start) {
      auto engine = Engine::Open({}, data, [](const absl::Status&) { FAIL(); });
      ASSERT_THAT(engine, IsOk());
      for (Journal& journal : journals_) {
        if (start == 0) {
          ASSERT_THAT(journal.CreateStore(**engine), IsOk());
        }
        for (int i = 0; i < 40; ++i) journal.Submit(**engine, /*durable=*/true);
        ASSERT_THAT(journal.AwaitAll(), IsOk());
      }
      if (start == 2) fs::copy(data, whole_, fs::copy_options::recursive);
    }
    fs::remove(whole_ + "/RESERVE");  // It holds nothing that could be damaged.
    for (const auto& entry : fs::directory_iterator(whole_)) {
      if (entry.is_regular_file() && entry.file_size() > 0) {
        files_[KindOf(entry.path())].push_back(entry.path().filename().string());
      }
    }
  }

  // Of a kind first, so that small files have their turn.
  std::string DrawFile(std::mt19937_64& random) const {
    const auto& [kind, files] = *std::next(files_.begin(), random() % files_.size());
    return files[random() % files.size()];
  }

  TemporaryDirectory directory_;
  const std::string whole_ = directory_.path() + "/whole";
  const std::string damaged_ = directory_.path() + "/damaged";
  Journal journals_[2] = {Journal(kStores[0]), Journal(kStores[1])};
  std::map<std::string, std::vector<std::string>> files_;  // By kind.
};

std::string FlipBit(const fs::path& file, std::mt19937_64& random) {
  const std::uint64_t at = random() % fs::file_size(file);
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(at));
  const int byte = stream.get();
  const int bit = static_cast<int>(random() % 8);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(byte ^ (1 << bit)));
  return absl::StrCat("bit ", bit, " of byte ", at, " of ", file.filename().string());
}

std::string CutShort(const fs::path& file, std::mt19937_64& random) {
  const std::uint64_t size = fs::file_size(file);
  const std::uint64_t left = random() % size;
  fs::resize_file(file, left);
  return absl::StrCat(file.filename().string(), " cut from ", size, " to ", left, " bytes");
}

// Names and sizes.
std::map<std::string, std::uint64_t> FilesIn(const fs::path& directory) {
  std::map<std::string, std::uint64_t> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    files[entry.path().filename().string()] = entry.file_size();
  }
  return files;
}

TEST_F(DamageTest, DamageIsToldAndNeverAWrongAnswer) {
  const int cycles = Cycles(200, 2000);
  int refused = 0, damaged_stores = 0, harmless = 0;
  for (int cycle = 0; cycle < cycles && !HasFailure(); ++cycle) {
    std::mt19937_64 random(FirstSeed() + cycle);
    fs::remove_all(damaged_);
    fs::copy(whole_, damaged_, fs::copy_options::recursive);
    const fs::path file = damaged_ + "/" + DrawFile(random);
    const std::string what = random() % 3 == 0 ? CutShort(file, random) : FlipBit(file, random);
    SCOPED_TRACE(absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle, ": ", what));
    const std::map<std::string, std::uint64_t> before = FilesIn(damaged_);
    std::map<std::string, absl::Status> damage;
    std::int64_t damage_count = 0;
    auto engine = Engine::Open({}, damaged_, [&](const absl::Status& status) {
      ++damage_count;
      for (const auto& [key, value] : MetadataOf(status)) {
        if (key == "store") damage[value] = status;
      }
    });
    if (!engine.ok()) {
      ++refused;
      EXPECT_FALSE(engine.status().message().empty());
      EXPECT_EQ(FilesIn(damaged_), before) << engine.status();
      continue;
    }
    EXPECT_EQ((*engine)->stats().damaged_stores, damage_count);
    damage.empty() ? ++harmless : ++damaged_stores;
    for (int i = 0; i < 2; ++i) {
      if (damage.contains(kStores[i])) {
        EXPECT_EQ((*engine)->ReadRows(kStores[i], {}).status().code(), absl::StatusCode::kDataLoss);
        const auto info = (*engine)->GetStore(kStores[i]);
        ASSERT_THAT(info, IsOk());
        EXPECT_NE(info->damage, "");
        EXPECT_THAT((*engine)->DeleteStore(kStores[i]), IsOk());
      } else {
        journals_[i].Check(**engine, Journal::MayLack::kNothing);
      }
    }
  }
  std::cout << cycles << " damaged directories: " << refused << " not opened, " << damaged_stores
            << " with a damaged store, " << harmless << " whole\n";
  EXPECT_GT(refused + damaged_stores, cycles / 10);
}

// Stores that share blocks of one table. Store i has kRows rows, all of whose components are i.
class ManyStoresTest : public ::testing::Test {
 protected:
  static constexpr int kStores = 150;
  static constexpr std::int64_t kRows = 20, kDim = 32;

  static std::string NameOf(int i) { return absl::StrCat("store", i); }

  static absl::Status Append(Engine& engine, int i) {
    const std::vector<float> floats(kRows * kDim, static_cast<float>(i));
    const MatrixView rows{.data = floats.data(), .rows = kRows, .cols = kDim};
    return AppendAndWait(engine, {.store = NameOf(i), .keys = rows, .values = rows}).status();
  }

  void SetUp() override {
    auto engine = Engine::Open({}, whole_, [](const absl::Status&) { FAIL(); });
    ASSERT_THAT(engine, IsOk());
    for (int i = 0; i < kStores; ++i) {
      ASSERT_THAT((*engine)->CreateStore({.name = NameOf(i), .key_dim = kDim, .value_dim = kDim}),
                  IsOk());
      ASSERT_THAT(Append(**engine, i), IsOk());
    }
  }

  TemporaryDirectory directory_;
  const std::string whole_ = directory_.path() + "/whole";
  const std::string damaged_ = directory_.path() + "/damaged";
};

TEST_F(ManyStoresTest, OthersThanTheDamagedOnesServeAndGrow) {
  const int cycles = Cycles(40, 400);
  int refused = 0, damaged_count = 0;
  for (int cycle = 0; cycle < cycles && !HasFailure(); ++cycle) {
    std::mt19937_64 random(FirstSeed() + cycle);
    fs::remove_all(damaged_);
    fs::copy(whole_, damaged_, fs::copy_options::recursive);
    fs::path table;
    for (const auto& entry : fs::directory_iterator(damaged_)) {
      if (entry.path().extension() == ".sst") table = entry.path();
    }
    ASSERT_FALSE(table.empty());
    SCOPED_TRACE(
        absl::StrCat("SOFTLOOKUP_TEST_SEED=", FirstSeed() + cycle, ": ", FlipBit(table, random)));
    std::set<std::string> damaged;
    auto engine = Engine::Open({}, damaged_, [&](const absl::Status& status) {
      for (const auto& [key, value] : MetadataOf(status)) {
        if (key == "store") damaged.insert(value);
      }
    });
    if (!engine.ok()) {
      ++refused;
      continue;
    }
    damaged_count += static_cast<int>(damaged.size());
    for (int i = 0; i < kStores; ++i) {
      if (damaged.contains(NameOf(i))) {
        EXPECT_EQ((*engine)->ReadRows(NameOf(i), {}).status().code(), absl::StatusCode::kDataLoss);
        EXPECT_THAT((*engine)->DeleteStore(NameOf(i)), IsOk());
        continue;
      }
      EXPECT_THAT(Append(**engine, i), IsOk());
      const auto reader = (*engine)->ReadRows(NameOf(i), {});
      ASSERT_THAT(reader, IsOk());
      const std::vector<Row> rows = (*reader)->Next(3 * kRows);
      ASSERT_EQ(rows.size(), static_cast<std::size_t>(2 * kRows));
      for (const Row& row : rows) EXPECT_THAT(row.value, ::testing::Each(static_cast<float>(i)));
    }
  }
  std::cout << cycles << " damaged tables: " << refused << " not opened, " << damaged_count
            << " damaged stores of " << kStores << "\n";
  // What is not a store's, among which the first block, is a small part of the table.
  EXPECT_LT(refused, cycles / 4);
  EXPECT_GT(damaged_count, cycles / 2);
}

TEST_F(ManyStoresTest, ADirectoryWithoutItsRootIsLeftAsItIs) {
  fs::remove(whole_ + "/CURRENT");
  const std::map<std::string, std::uint64_t> before = FilesIn(whole_);
  EXPECT_THAT(Engine::Open({}, whole_), StatusIs(absl::StatusCode::kDataLoss, "CURRENT"));
  EXPECT_EQ(FilesIn(whole_), before);
}

}  // namespace
}  // namespace softlookup::testing
