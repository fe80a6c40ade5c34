#include "core/storage/synced_sequence.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace softlookup {
namespace {

// The number and its complement. If the two do not match, Read() returns 0.
using Contents = std::array<std::uint64_t, 2>;

}  // namespace

SyncedSequence::~SyncedSequence() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::uint64_t SyncedSequence::Read() const {
  Contents contents{};
  std::ifstream file(file_, std::ios::binary);
  file.read(reinterpret_cast<char*>(contents.data()), sizeof contents);
  return file.gcount() == sizeof contents && contents[1] == ~contents[0] ? contents[0] : 0;
}

void SyncedSequence::Set(std::uint64_t sequence) {
  if (descriptor_ < 0) descriptor_ = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  const Contents contents = {sequence, ~sequence};
  if (pwrite(descriptor_, contents.data(), sizeof contents, 0) != sizeof contents) {
    // The error is ignored: the file keeps an older number, which is safe (see SyncedSequence).
  }
}

}  // namespace softlookup
