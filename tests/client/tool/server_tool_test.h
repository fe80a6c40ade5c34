#ifndef SOFTLOOKUP_TESTS_CLIENT_TOOL_SERVER_TOOL_TEST_H_
#define SOFTLOOKUP_TESTS_CLIENT_TOOL_SERVER_TOOL_TEST_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/tool/npy_writer.h"
#include "tests/client/tool/run_tool.h"
#include "tests/client/tool/temporary_file.h"
#include "tests/testing/server_process.h"

namespace softlookup::tool {

// A .npy file of `cols` columns that is gone when the test is.
class NpyFile : public testing::TemporaryFile {
 public:
  NpyFile(std::uint32_t cols, const std::vector<float>& elements)
      : TemporaryFile("matrix.npy"), elements_(elements) {
    const auto rows = static_cast<std::uint32_t>(elements.size() / cols);
    EXPECT_TRUE(WriteNpy(path(), {elements_, rows, cols}).ok());
  }

  const std::vector<float>& elements() const { return elements_; }

 private:
  const std::vector<float> elements_;
};

// The tool against the real server.
class ServerToolTest : public ::testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments,
              std::optional<std::size_t> terminal_width = std::nullopt) {
    return RunTool(server_.grpc_address(), std::move(arguments), terminal_width);
  }
  nlohmann::json RunJson(std::vector<std::string> arguments) {
    return RunToolJson(server_.grpc_address(), std::move(arguments));
  }

  const testing::ServerProcess server_;
};

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_TESTS_CLIENT_TOOL_SERVER_TOOL_TEST_H_
