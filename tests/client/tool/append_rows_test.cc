// `append` and `import` against a scripted server: what is sent, and what a failure says.
#include "client/tool/append_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/client/tool/scripted_tool_test.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::ScriptedService;
using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using AppendRowsTest = ScriptedToolTest;

TEST_F(AppendRowsTest, AppendStreamsEveryRowInBatches) {
  std::vector<float> keys;
  int requests = 0;
  service_.stream_append = [&](grpc::ServerContext*, ScriptedService::AppendServerStream* stream) {
    v1::AppendRequest request;
    while (stream->Read(&request)) {
      ++requests;
      const auto batch = *FloatMatrix::FromProto(request.keys());
      keys.insert(keys.end(), batch.data.begin(), batch.data.end());
      v1::AppendResponse response;
      response.set_appended_count(batch.rows);
      response.set_row_count(keys.size());
      response.set_revision(requests + 1);
      stream->Write(response);
    }
    return grpc::Status::OK;
  };
  const TemporaryFile rows("r.csv", "1,0,0\n2,0,0\n3,0,0\n4,0,0\n5,0,0\n");
  const auto json = RunJson({"append", "people", "--rows", rows.path(), "--batch-rows", "2"});
  EXPECT_THAT(keys, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(json["rows"], 5);
  EXPECT_EQ(json["row_count"], 5);
  EXPECT_EQ(json["revision"], 4);
  EXPECT_TRUE(json["rows_per_second"].is_number());

  keys.clear();
  const TemporaryFile bad("r.csv", "1,0,0\n2,0,0\n3,0,x\n");
  const Outcome outcome = Run({"append", "people", "--rows", bad.path(), "--batch-rows", "1"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("line 3, column 3: \"x\" is not a number"));
  EXPECT_THAT(outcome.error, HasSubstr("; rows appended before: 2"));
  EXPECT_THAT(keys, ElementsAre(1, 2));
}

TEST_F(AppendRowsTest, AnInputWhoseServerIsGoneSaysHowToGoOn) {
  const grpc::Status gone(grpc::StatusCode::UNAVAILABLE, "gone");
  service_.stream_append = [&](grpc::ServerContext*, auto*) { return gone; };
  service_.create_store = [](grpc::ServerContext*, const v1::CreateStoreRequest& request,
                             v1::Store* store) {
    *store = request.store();
    return grpc::Status::OK;
  };
  service_.delete_store = [&](grpc::ServerContext*, const auto&, auto*) { return gone; };
  const TemporaryFile rows("r.csv", "1,0,0\n"), one("one.csv", "1\n");
  const Outcome appended = Run({"append", "people", "--rows", rows.path()});
  EXPECT_EQ(appended.exit_code, ExitCode::kUnavailable);
  EXPECT_THAT(appended.error, HasSubstr("it answered before, so it may have stopped: gone"));
  EXPECT_THAT(appended.error,
              HasSubstr("; more rows may be in the store, as row_count of `softlookup store get` "
                        "tells; --skip-rows N appends all but the first N"));
  EXPECT_THAT(Run({"import", "copy", "--keys", one.path(), "--values", one.path()}).error,
              HasSubstr("; copy, which import had made, may still be there: delete it, or append "
                        "the rest with --append --skip-rows N"));
}

// Takes the first request of a stream, and refuses the second one.
std::function<grpc::Status(grpc::ServerContext*, ScriptedService::AppendServerStream*)> TakesOne(
    const grpc::Status& refusal) {
  return [=](grpc::ServerContext*, ScriptedService::AppendServerStream* stream) {
    v1::AppendRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    v1::AppendResponse response;
    response.set_appended_count(request.keys().rows());
    stream->Write(response);
    return stream->Read(&request) ? refusal : grpc::Status::OK;
  };
}

TEST_F(AppendRowsTest, ARefusalAfterRowsWereTakenSaysHowToAppendTheRest) {
  const auto exhausted = grpc::StatusCode::RESOURCE_EXHAUSTED;
  const std::string rest = "; --skip-rows 2 appends the rest";
  const std::string wait = "; an append with --writer NAME waits until the server takes rows again";
  const TemporaryFile rows("r.csv", "1,0,0\n2,0,0\n3,0,0\n4,0,0\n");
  const std::vector<std::string> append = {"append",    "people",       "--rows",
                                           rows.path(), "--batch-rows", "2"};
  service_.stream_append =
      TakesOne(DetailedStatus(exhausted, "rows", "IDENTITY_LIMIT", {}, absl::Seconds(1)));
  EXPECT_THAT(Run(append).error, HasSubstr("rows (rows acknowledged: 2)" + rest + wait));
  // Without a delay, nobody waits.
  service_.stream_append = TakesOne(DetailedStatus(exhausted, "full", "MEMORY_LIMIT"));
  EXPECT_THAT(Run(append).error, EndsWith("full (rows acknowledged: 2)" + rest));
  const auto invalid = grpc::StatusCode::INVALID_ARGUMENT;
  service_.stream_append =
      TakesOne(DetailedStatus(invalid, "bad", "INVALID_ARGUMENT", {{"row", "1"}}));
  EXPECT_THAT(
      Run(append).error,
      EndsWith("; that is row 3 (from 0) of the input; correct the file; then " + rest.substr(2)));
  service_.stream_append =
      TakesOne(DetailedStatus(grpc::StatusCode::NOT_FOUND, "no store", "STORE_NOT_FOUND"));
  EXPECT_THAT(Run(append).error, Not(HasSubstr("the rest")));
  // If nothing was taken, there is no rest.
  service_.stream_append = [&](grpc::ServerContext*, auto*) {
    return DetailedStatus(exhausted, "rows", "IDENTITY_LIMIT", {}, absl::Seconds(1));
  };
  EXPECT_THAT(Run(append).error, EndsWith("(rows acknowledged: 0)" + wait));
}

TEST_F(AppendRowsTest, AnOutageSaysWhetherRowsWereTakenBefore) {
  const TemporaryFile rows("r.csv", "1,0,0\n2,0,0\n3,0,0\n4,0,0\n");
  for (const std::uint64_t taken_before : {0, 2}) {
    std::atomic<std::uint64_t> taken = 0;
    std::atomic<int> streams = 0;
    service_.get_writer = [&](grpc::ServerContext*, const auto&, v1::Writer* writer) {
      if (taken == 0) {
        return DetailedStatus(grpc::StatusCode::NOT_FOUND, "no writer", "WRITER_NOT_FOUND");
      }
      writer->set_writer("w");
      writer->set_last_sequence(taken);
      return grpc::Status::OK;
    };
    service_.stream_append = [&](grpc::ServerContext*,
                                 ScriptedService::AppendServerStream* stream) {
      const bool breaks = ++streams == 1;
      v1::AppendRequest request;
      while (stream->Read(&request)) {
        if (breaks && taken == taken_before) {
          return DetailedStatus(grpc::StatusCode::UNAVAILABLE, "gone", "LOADING", {},
                                absl::Milliseconds(1));
        }
        v1::AppendResponse response;
        response.set_appended_count(request.keys().rows());
        response.set_sequence(request.sequence());
        taken = request.sequence();
        stream->Write(response);
      }
      return grpc::Status::OK;
    };
    const Outcome outcome =
        Run({"append", "people", "--rows", rows.path(), "--batch-rows", "2", "--writer", "w"});
    EXPECT_EQ(outcome.error, "");
    EXPECT_THAT(outcome.notes,
                StartsWith(taken_before == 0 ? "softlookup: nothing is acknowledged, trying again"
                                             : "softlookup: nothing more is acknowledged, trying "
                                               "again"));
    EXPECT_EQ(taken, 4u);
  }
}

TEST_F(AppendRowsTest, AnImportThatWasRefusedForAWhileSaysThatAWriterWaits) {
  service_.create_store = [](grpc::ServerContext*, const v1::CreateStoreRequest& request,
                             v1::Store* store) {
    *store = request.store();
    return grpc::Status::OK;
  };
  service_.delete_store = [](grpc::ServerContext*, const auto&, auto*) { return grpc::Status::OK; };
  const TemporaryFile one("one.csv", "1\n");
  const std::vector<std::string> import = {"import",   "copy",     "--keys",
                                           one.path(), "--values", one.path()};
  std::optional<absl::Duration> delay = absl::Seconds(1);
  service_.stream_append = [&](grpc::ServerContext*, auto*) {
    return DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "rows", "IDENTITY_LIMIT", {},
                          delay);
  };
  const std::string undone = "; copy, which import had made, is deleted again";
  EXPECT_THAT(Run(import).error,
              EndsWith(undone + "; with --writer NAME, import keeps the store, and waits until the "
                                "server takes rows again"));
  delay.reset();
  EXPECT_THAT(Run(import).error, EndsWith(undone));
}

TEST_F(AppendRowsTest, AppendNeedsExactlyOneKindOfInput) {
  for (const std::vector<std::string>& input : std::vector<std::vector<std::string>>{
           {},
           {"--keys", "k.csv"},
           {"--values", "v.csv"},
           {"--keys", "k.csv", "--values", "v.csv", "--rows", "r.csv"},
           {"--rows", "r.csv", "--words", "w.txt"},
           {"--rows", "r.csv", "--values", "v.csv"},
           {"--keys", "-", "--values", "-"}}) {
    std::vector<std::string> arguments = {"append", "people"};
    arguments.insert(arguments.end(), input.begin(), input.end());
    EXPECT_EQ(Run(arguments).exit_code, ExitCode::kUsage) << ::testing::PrintToString(input);
  }
  EXPECT_THAT(Run({"append", "people"}).error, StartsWith("append needs --keys with --values"));
  EXPECT_THAT(Run({"append", "people", "--keys", "k.csv", "--rows", "r.csv"}).error,
              StartsWith("append takes only one of "));
}

}  // namespace
}  // namespace softlookup::tool
