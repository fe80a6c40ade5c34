#include "client/cli/help_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>

namespace softlookup::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class HelpFormatterTest : public ::testing::Test {
 protected:
  std::string HelpAt(std::size_t width) {
    app_.formatter(std::make_shared<HelpFormatter>(width));
    return app_.help();
  }

  CLI::App app_{"One two three four five six seven eight nine ten eleven.", "app"};
  std::string text_;
  bool flag_ = false;
};

TEST_F(HelpFormatterTest, TextBesideAnOptionBreaksBetweenWords) {
  app_.add_option("--name", text_, "One two three four five six seven eight nine");
  EXPECT_THAT(HelpAt(60), HasSubstr("  --name TEXT                 One two three four five six\n"
                                    "                              seven eight nine\n"));
}

TEST_F(HelpFormatterTest, WhatAnOptionNeedsAndExcludesFollowsItsText) {
  CLI::Option* name = app_.add_option("--name", text_, "A name");
  CLI::Option* loud = app_.add_flag("--loud", flag_, "To be loud");
  CLI::Option* quiet = app_.add_flag("--quiet", flag_, "To be quiet");
  quiet->needs(name);
  quiet->excludes(loud);
  const std::string help = HelpAt(60);
  EXPECT_THAT(help, HasSubstr("  --quiet                     To be quiet\n"
                              "                              Needs: --name Excludes: --loud\n"));
  EXPECT_THAT(help, HasSubstr("  --loud                      To be loud\n"
                              "                              Excludes: --quiet\n"));
  EXPECT_THAT(help, HasSubstr("  --name TEXT                 A name\n"));
}

TEST_F(HelpFormatterTest, TheDescriptionIsFilled) {
  EXPECT_THAT(HelpAt(40),
              StartsWith("One two three four five six seven eight\nnine ten eleven.\n"));
}

TEST_F(HelpFormatterTest, FootersAreFilledAndTheirListsAndCommandsStay) {
  app_.footer(
      "One two three four five six seven eight nine\nten.\n\nAs in:\n  1  short  line\n"
      "  22 one two three four five six seven eight\n  3  one two three four five six seven eight\n"
      "end");
  EXPECT_THAT(HelpAt(40), HasSubstr("\nOne two three four five six seven eight\nnine ten.\n\n"
                                    "As in:\n  1  short  line\n"
                                    "  22 one two three four five six seven eight\n"
                                    "  3  one two three four five six seven\n     eight\n"
                                    "end\n"));
}

}  // namespace
}  // namespace softlookup::cli
