#ifndef SOFTLOOKUP_SERVER_RPC_FILE_DESCRIPTOR_H_
#define SOFTLOOKUP_SERVER_RPC_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace softlookup::server {

// Closes what it holds; -1 is nothing.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }

  int get() const { return fd_; }
  // Leaves it to the caller.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_RPC_FILE_DESCRIPTOR_H_
