#include "formats/io/log.h"

#include <gtest/gtest.h>

#include "formats/io/error.h"

namespace citcat::test {
namespace {

TEST(LogSetting, GivesALevelToAModule) {
  EXPECT_EQ(log_level("", "session"), LogLevel::off);
  EXPECT_EQ(log_level("session:debug", "session"), LogLevel::debug);
  EXPECT_EQ(log_level("session:debug", "place"), LogLevel::off);
  EXPECT_EQ(log_level("place:info,session:debug", "place"), LogLevel::info);
}

TEST(LogSetting, GivesALevelWithoutAModuleToAll) {
  EXPECT_EQ(log_level("info", "session"), LogLevel::info);
  EXPECT_EQ(log_level("debug,session:off", "session"), LogLevel::off);
  EXPECT_EQ(log_level("debug,session:off", "place"), LogLevel::debug);
}

TEST(LogSetting, IsRefusedWhereItNamesWhatIsNotThere) {
  const std::vector<std::string> modules{"place", "session"};
  EXPECT_NO_THROW(check_log_setting("", modules));
  EXPECT_NO_THROW(check_log_setting("info,place:debug,session:off", modules));
  for (const char* wrong : {"loud", "session:", "session:loud", "engine:info", ",info", ":"}) {
    EXPECT_THROW(check_log_setting(wrong, modules), UsageError) << wrong;
  }
}

}  // namespace
}  // namespace citcat::test
