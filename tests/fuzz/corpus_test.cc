// Every target on its corpus, on every beginning of each file, and with each byte changed:
//   fuzz_corpus_test CORPUS
// The corpus holds good inputs of every form, and what a fuzzer found.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <vector>

#include "tests/fuzz/targets.h"

namespace softlookup::fuzz {
namespace {

// Larger files are not changed, to save time.
constexpr std::size_t kChangedBytesMax = 1024;

struct Target {
  const char* name;
  void (*run)(const std::uint8_t* bytes, std::size_t size);
};
constexpr Target kTargets[] = {
    {"auth_file", FuzzAuthFile},
    {"csv", FuzzCsv},
    {"engine", FuzzEngine},
    {"flag_text", FuzzFlagText},
    {"fvecs", FuzzFvecs},
    {"log_record", FuzzLogRecord},
    {"npy", FuzzNpy},
    {"ranges", FuzzRanges},
    {"request", FuzzRequest},
    {"row_tags", FuzzRowTags},
    {"store_log", FuzzStoreLog},
    {"trace_context", FuzzTraceContext},
};

using Bytes = std::vector<std::uint8_t>;

Bytes ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// A copy of just that size, so that AddressSanitizer sees a read past its end.
void Run(const Target& target, Bytes bytes) {
  bytes.shrink_to_fit();
  target.run(bytes.data(), bytes.size());
}

void RunChanged(const Target& target, const Bytes& bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Run(target, Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i)));
    for (const std::uint8_t change : {0x01, 0x80, 0xff}) {
      Bytes changed = bytes;
      changed[i] ^= change;
      Run(target, std::move(changed));
    }
  }
}

int RunCorpus(const std::filesystem::path& corpus) {
  for (const Target& target : kTargets) {
    std::set<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(corpus / target.name)) {
      paths.insert(entry.path());
    }
    for (const std::filesystem::path& path : paths) {
      // If a target aborts, the last line names its input.
      std::cout << target.name << "/" << path.filename().string() << std::endl;
      const Bytes bytes = ReadFile(path);
      Run(target, bytes);
      if (bytes.size() <= kChangedBytesMax) RunChanged(target, bytes);
    }
    if (paths.empty()) {
      std::cerr << target.name << " has no corpus\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace softlookup::fuzz

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return softlookup::fuzz::RunCorpus(argv[1]);
}
