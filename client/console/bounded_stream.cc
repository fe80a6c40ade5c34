#include "client/console/bounded_stream.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace softlookup::console {

BoundedStream::BoundedStream(socket_t socket, const Limits& limits)
    : socket_(socket),
      answer_time_(limits.answer),
      idle_end_(Clock::now() + limits.idle),
      request_end_(Clock::now() + limits.request),
      bytes_left_(limits.request_bytes) {}

bool BoundedStream::is_readable() const {
  return next_ < filled_ || (bytes_left_ > 0 && Await(POLLIN, ReadDeadline()));
}

bool BoundedStream::is_writable() const {
  return Await(POLLOUT, answer_end_.value_or(Clock::now() + answer_time_));
}

ssize_t BoundedStream::read(char* bytes, std::size_t size) {
  if (next_ == filled_) {
    if (bytes_left_ == 0 || !Await(POLLIN, ReadDeadline())) return -1;
    ssize_t count;
    do {
      count = recv(socket_, buffer_.data(), std::min(buffer_.size(), bytes_left_), 0);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) return count;
    begun_ = true;
    next_ = 0;
    filled_ = static_cast<std::size_t>(count);
    bytes_left_ -= filled_;
  }
  size = std::min(size, filled_ - next_);
  memcpy(bytes, buffer_.data() + next_, size);
  next_ += size;
  return static_cast<ssize_t>(size);
}

ssize_t BoundedStream::write(const char* bytes, std::size_t size) {
  if (!answer_end_.has_value()) answer_end_ = Clock::now() + answer_time_;
  while (Await(POLLOUT, *answer_end_)) {
    const ssize_t count = send(socket_, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) return count;
    if (errno != EINTR && errno != EAGAIN) return -1;
  }
  return -1;
}

bool BoundedStream::Await(short events, Clock::time_point deadline) const {
  using std::chrono::milliseconds;
  pollfd polled = {.fd = socket_, .events = events, .revents = 0};
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds::zero()) return false;
    const int ready = poll(&polled, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

}  // namespace softlookup::console
