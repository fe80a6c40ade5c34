#ifndef SOFTLOOKUP_TESTS_CLIENT_TOOL_SCRIPTED_TOOL_TEST_H_
#define SOFTLOOKUP_TESTS_CLIENT_TOOL_SCRIPTED_TOOL_TEST_H_

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/canned_answers.h"
#include "tests/client/scripted_service.h"
#include "tests/client/tool/run_tool.h"

namespace softlookup::tool {

// The tool against a scripted server that has one store.
class ScriptedToolTest : public ::testing::Test {
 protected:
  ScriptedToolTest() {
    service_.get_store = [this](grpc::ServerContext*, const v1::GetStoreRequest& request,
                                v1::Store* store) {
      if (request.name() != store_.name()) {
        return testing::DetailedStatus(grpc::StatusCode::NOT_FOUND, "no store", "STORE_NOT_FOUND");
      }
      *store = store_;
      return grpc::Status::OK;
    };
    store_.set_name("people");
    store_.set_key_dim(1);
    store_.set_value_dim(2);
  }

  Outcome Run(std::vector<std::string> arguments) {
    return RunTool(service_.address(), std::move(arguments));
  }
  nlohmann::json RunJson(std::vector<std::string> arguments) {
    return RunToolJson(service_.address(), std::move(arguments));
  }

  v1::Store store_;
  testing::CannedAnswers canned_;  // For tests that have them served.
  testing::ScriptedService service_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_TESTS_CLIENT_TOOL_SCRIPTED_TOOL_TEST_H_
