#include "cli/record/output_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "formats/io/error.h"
#include "formats/io/temporary.h"
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

/// A second Ctrl-C, or SIGTERM, ends the program without its destructors.
TEST_F(OutputLockTest, GoesWithTheRestWhereASignalEndsTheProgram) {
  const pid_t child = fork();
  if (child == 0) {
    const OutputLock lock(path("x"));
    remove_unfinished_files();
    _exit(std::filesystem::exists(path("x.lock")) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(OutputLockTest, WhatAKilledRecordingHasLeftIsTaken) {
  store("x.lock", "citcat record\n");
  EXPECT_EQ(refusal("x"), "");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(OutputLockTest, AFileOfSomebodyElseStaysAsItIs) {
  store("x.lock", "precious\n");
  EXPECT_THAT(refusal("x"), HasSubstr("x.lock: expected a lock file of citcat"));
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
