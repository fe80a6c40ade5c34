#ifndef SOFTLOOKUP_SERVER_BASE_FILE_DESCRIPTOR_H_
#define SOFTLOOKUP_SERVER_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace softlookup::server {

// Owns a file descriptor and closes it; -1 means none.
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
  // Gives up the descriptor, which the caller must close.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace softlookup::server

#endif  // SOFTLOOKUP_SERVER_BASE_FILE_DESCRIPTOR_H_
