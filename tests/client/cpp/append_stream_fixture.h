#ifndef SOFTLOOKUP_TESTS_CLIENT_CPP_APPEND_STREAM_FIXTURE_H_
#define SOFTLOOKUP_TESTS_CLIENT_CPP_APPEND_STREAM_FIXTURE_H_

#include <gtest/gtest.h>

#include <vector>

#include "softlookup/append_stream.h"
#include "softlookup/client.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/patient_options.h"

namespace softlookup::testing {

// A server that handles appends as a test says, and streams to it.
class AppendStreamTest : public ::testing::Test {
 protected:
  using ServerStream = ScriptedService::AppendServerStream;

  AppendStream Open(const AppendStreamOptions& options = {}) {
    return *Client::Connect(service_.address(), PatientOptions())
                ->OpenAppendStream("people", options);
  }

  // Acknowledges up to `count` requests as a store of that many rows would; returns the rows.
  static std::uint64_t Acknowledge(ServerStream* stream, int count) {
    std::uint64_t rows = 0;
    v1::AppendRequest request;
    for (int i = 0; i < count && stream->Read(&request); ++i) {
      v1::AppendResponse response;
      response.set_first_position(rows);
      response.set_appended_count(request.keys().rows());
      response.set_row_count(rows += request.keys().rows());
      response.set_revision(i + 2);
      stream->Write(response);
    }
    return rows;
  }

  // Reads to the end without a word.
  static void Ignore(ServerStream* stream) {
    v1::AppendRequest request;
    while (stream->Read(&request)) {
    }
  }

  static FloatMatrix Rows(std::uint32_t rows) {
    return {.rows = rows, .cols = 1, .data = std::vector<float>(rows, 1.0f)};
  }

  ScriptedService service_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_CLIENT_CPP_APPEND_STREAM_FIXTURE_H_
