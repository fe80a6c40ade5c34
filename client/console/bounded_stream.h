#ifndef SOFTLOOKUP_CLIENT_CONSOLE_BOUNDED_STREAM_H_
#define SOFTLOOKUP_CLIENT_CONSOLE_BOUNDED_STREAM_H_

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace softlookup::console {

// One request and its answer over a socket, in bounded bytes and time. The library bounds each read
// alone: a client that sends a byte now and then would keep its thread, and header lines without
// end would fill the memory.
class BoundedStream : public httplib::Stream {
 public:
  struct Limits {
    std::size_t request_bytes;
    std::chrono::milliseconds idle;     // Until the first byte.
    std::chrono::milliseconds request;  // Until the last byte that is read, from the beginning.
    std::chrono::milliseconds answer;   // Until the last byte that is written, from the first.
  };

  // The socket must stay open as long as the stream.
  BoundedStream(socket_t socket, const Limits& limits);

  // Lets the request have `bytes` more.
  void AllowBytes(std::size_t bytes) { bytes_left_ += bytes; }

  bool is_readable() const override;
  bool is_writable() const override;
  // Both return -1 once a limit is reached.
  ssize_t read(char* bytes, std::size_t size) override;
  ssize_t write(const char* bytes, std::size_t size) override;
  // The console does not ask for these.
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Waits for one of the `events` of poll(). False if `deadline` comes first.
  bool Await(short events, Clock::time_point deadline) const;
  Clock::time_point ReadDeadline() const { return begun_ ? request_end_ : idle_end_; }

  const socket_t socket_;
  const std::chrono::milliseconds answer_time_;
  const Clock::time_point idle_end_;
  const Clock::time_point request_end_;
  std::optional<Clock::time_point> answer_end_;
  std::size_t bytes_left_;
  bool begun_ = false;
  // Bytes [next_, filled_) wait to be read.
  std::array<char, 4096> buffer_;
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace softlookup::console

#endif  // SOFTLOOKUP_CLIENT_CONSOLE_BOUNDED_STREAM_H_
