#include "replay/diagnose/emulator_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace citcat {
namespace {

using testing::HasSubstr;

std::string_view known(std::vector<std::uint8_t> code, unsigned bits = 32) {
  return emulator_difference(code, bits);
}

TEST(EmulatorDifferences, AreFoundByOpcodeFormAndOperation) {
  EXPECT_THAT(known({0x8e, 0xc8}), HasSubstr("MOV to CS"));
  EXPECT_EQ(known({0x8e, 0xd8}), "");
  EXPECT_THAT(known({0xf7, 0xc8, 1, 0, 0, 0}), HasSubstr("TEST"));
  EXPECT_EQ(known({0xf7, 0xd8}), "");
  EXPECT_THAT(known({0xd3, 0x20}), HasSubstr("by zero"));
  EXPECT_EQ(known({0xd3, 0xe0}), "");
  EXPECT_THAT(known({0xff, 0x18}), HasSubstr("far transfers"));
  EXPECT_EQ(known({0xff, 0x10}), "");
  EXPECT_THAT(known({0x0f, 0xc7, 0x08}), HasSubstr("CMPXCHG8B"));
}

TEST(EmulatorDifferences, AreFoundBehindPrefixes) {
  EXPECT_THAT(known({0x66, 0x2e, 0x8e, 0x08}), HasSubstr("MOV to CS"));
  EXPECT_THAT(known({0x48, 0x0f, 0xbc, 0xc0}, 64), HasSubstr("BSF"));
  EXPECT_EQ(known({0x48, 0x0f, 0xbc, 0xc0}, 32), "") << "DEC, and not REX";
  EXPECT_EQ(known({0x66, 0x67}), "");
  EXPECT_EQ(known({}), "");
}

}  // namespace
}  // namespace citcat
