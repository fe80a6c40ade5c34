#include "core/storage/synced_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace softlookup {
namespace {

// The mark and its complement. If the two do not match, Read() returns 0.
using Contents = std::array<std::uint64_t, 2>;

}  // namespace

SyncedMark::~SyncedMark() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::uint64_t SyncedMark::Read() const {
  Contents contents{};
  std::ifstream file(file_, std::ios::binary);
  file.read(reinterpret_cast<char*>(contents.data()), sizeof contents);
  return file.gcount() == sizeof contents && contents[1] == ~contents[0] ? contents[0] : 0;
}

void SyncedMark::Set(std::uint64_t mark) {
  if (descriptor_ < 0) descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  const Contents contents = {mark, ~mark};
  if (pwrite(descriptor_, contents.data(), sizeof contents, 0) != sizeof contents) {
    // The error is ignored: the file keeps an older mark, which is safe (see SyncedMark).
  }
}

}  // namespace softlookup
