#include "server/rpc/stream_pipeline.h"

#include "core/base/check.h"

namespace softlookup::server {

StreamPipeline::Step StreamPipeline::Next(bool may_read) {
  Step step;
  if (has_ended_) return step;
  while (!is_writing_ && !requests_.empty() && requests_.front().is_answered &&
         (is_broken_ || !requests_.front().response)) {
    PopFront();
  }
  const bool is_last = reads_over_ || is_broken_ || !error_.ok();
  if (!is_reading_ && !is_handling_ && !is_last && may_read && budget_.MayRead()) {
    is_reading_ = step.reads = true;
  }
  if (!is_writing_ && !requests_.empty() && requests_.front().is_answered) {
    is_writing_ = true;
    step.response = &*requests_.front().response;
  }
  step.ends = has_ended_ =
      is_last && requests_.empty() && !is_handling_ && (!is_reading_ || !error_.ok());
  return step;
}

std::uint64_t StreamPipeline::OnRequest(std::size_t request_bytes) {
  SOFTLOOKUP_CHECK(is_reading_ && !has_ended_) << "no read is in progress";
  is_reading_ = false;
  is_handling_ = true;
  budget_.OnRead(request_bytes);
  requests_.push_back({.bytes = request_bytes});
  return first_number_ + requests_.size() - 1;
}

void StreamPipeline::OnHandled() {
  SOFTLOOKUP_CHECK(is_handling_) << "no request is being handled";
  is_handling_ = false;
}

void StreamPipeline::OnLastReadOver() {
  SOFTLOOKUP_CHECK(is_reading_) << "no read is in progress";
  is_reading_ = false;
  reads_over_ = true;
}

void StreamPipeline::OnWritten() {
  SOFTLOOKUP_CHECK(is_writing_) << "no write is in progress";
  is_writing_ = false;
  PopFront();
}

StreamPipeline::Request& StreamPipeline::OnAnswer(std::uint64_t number,
                                                  std::size_t response_bytes) {
  SOFTLOOKUP_CHECK(number >= first_number_ && number - first_number_ < requests_.size())
      << "request " << number << " of " << first_number_ << " + " << requests_.size();
  Request& request = requests_[number - first_number_];
  SOFTLOOKUP_CHECK(!request.is_answered) << "request " << number << " is answered twice";
  budget_.OnAnswer(request.bytes, response_bytes);
  request.bytes = response_bytes;
  request.is_answered = true;
  return request;
}

void StreamPipeline::Answer(std::uint64_t number, const grpc::ByteBuffer& response) {
  OnAnswer(number, response.Length()).response = response;
}

void StreamPipeline::Drop(std::uint64_t number) { OnAnswer(number, 0); }

void StreamPipeline::PopFront() {
  budget_.OnWritten(requests_.front().bytes);
  requests_.pop_front();
  ++first_number_;
}

void StreamPipeline::EndWith(const absl::Status& status) {
  if (error_.ok()) error_ = status;
}

}  // namespace softlookup::server
