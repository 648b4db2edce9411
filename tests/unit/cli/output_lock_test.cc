#include "cli/record/output_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutputLockTest : public TemporaryFolder {
 protected:
  std::string refusal(const std::string& output) {
    try {
      const OutputLock lock(path(output));
    } catch (const IoError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(OutputLockTest, IsThereAsLongAsItIsHeldAndKeepsOthersAway) {
  {
    const OutputLock lock(path("x"));
    EXPECT_THAT(names(), ElementsAre("x.lock"));
    EXPECT_THAT(refusal("x"), HasSubstr("another recording is writing this file"));
    EXPECT_EQ(refusal("y"), "");
  }
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(refusal("x"), "");
}

TEST_F(OutputLockTest, WhatAKilledRecordingHasLeftIsTaken) {
  store("x.lock", "citcat record\n");
  EXPECT_EQ(refusal("x"), "");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(OutputLockTest, AFileOfSomebodyElseStaysAsItIs) {
  store("x.lock", "precious\n");
  EXPECT_THAT(refusal("x"), HasSubstr("x.lock: expected a lock of citcat's"));
  EXPECT_EQ(load("x.lock"), "precious\n");
  std::filesystem::create_directory(path("y.lock"));
  EXPECT_THAT(refusal("y"), HasSubstr("y.lock: "));
  EXPECT_TRUE(std::filesystem::is_directory(path("y.lock")));
}

TEST_F(OutputLockTest, ALinkIsNotFollowed) {
  for (const bool dangling : {true, false}) {
    if (!dangling) store("target", "precious\n");
    std::filesystem::create_symlink(path("target"), path("x.lock"));
    EXPECT_THAT(refusal("x"), HasSubstr("x.lock: "));
    EXPECT_TRUE(std::filesystem::is_symlink(path("x.lock")));
    EXPECT_EQ(std::filesystem::exists(path("target")), !dangling);
    EXPECT_EQ(load("target"), dangling ? "" : "precious\n");
    std::filesystem::remove(path("x.lock"));
  }
}

TEST_F(OutputLockTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THAT(refusal("none/x"), HasSubstr("No such file"));
}

}  // namespace
}  // namespace citcat
