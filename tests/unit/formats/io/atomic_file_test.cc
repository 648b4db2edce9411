#include "formats/io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

class AtomicFileTest : public test::TemporaryFolder {};
using Names = std::vector<std::string>;

TEST_F(AtomicFileTest, ShowsTheOldFileUntilItIsCommitted) {
  store("out", "old");
  AtomicFile file(path("out"));
  file.write(test::bytes_of("new content"));
  EXPECT_EQ(load("out"), "old");
  file.commit();
  EXPECT_EQ(load("out"), "new content");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(AtomicFileTest, LeavesNothingBehindWhenAbandoned) {
  { AtomicFile(path("out")).write(test::bytes_of("half")); }
  EXPECT_EQ(names(), Names{});
}

TEST_F(AtomicFileTest, KeepsAnUnfinishedTraceUnderANameThatSaysSo) {
  store("out.kt", "old");
  { AtomicFile(path("out.kt"), AtomicFile::Unfinished::keep).write(test::bytes_of("half")); }
  EXPECT_EQ(load("out.kt"), "old");
  EXPECT_EQ(load("out.kt.partial"), "half");
}

TEST_F(AtomicFileTest, ReplacesTheTargetOfALinkAndKeepsTheLink) {
  store("target", "old");
  std::filesystem::create_symlink("target", path("link"));
  AtomicFile file(path("link"));
  file.write(test::bytes_of("new"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(load("target"), "new");
}

TEST_F(AtomicFileTest, WritesDirectlyToWhatIsNoFile) {
  AtomicFile file("/dev/null");
  file.write(test::bytes_of("gone"));
  file.commit();
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

TEST_F(AtomicFileTest, FollowsNoLinkThatLiesWhereItPutsUnfinishedFiles) {
  store("precious", "mine");
  std::filesystem::create_symlink("precious", path("out.partial"));
  { AtomicFile(path("out"), AtomicFile::Unfinished::keep).write(test::bytes_of("half")); }
  EXPECT_EQ(load("precious"), "mine");
  EXPECT_FALSE(std::filesystem::is_symlink(path("out.partial")));
  EXPECT_EQ(load("out.partial"), "half");
}

TEST_F(AtomicFileTest, WhatWasKeptOfAnAttemptGoesWhenTheWholeIsThere) {
  { AtomicFile(path("out"), AtomicFile::Unfinished::keep).write(test::bytes_of("half")); }
  AtomicFile again(path("out"), AtomicFile::Unfinished::keep);
  again.write(test::bytes_of("whole"));
  again.commit();
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(AtomicFileTest, IsNotLockedAnyLongerWhenItIsCommitted) {
  AtomicFile file(path("out"));
  file.write(test::bytes_of("x"));
  file.commit();
  const int descriptor = ::open(path("out").c_str(), O_RDONLY);
  EXPECT_EQ(::flock(descriptor, LOCK_EX | LOCK_NB), 0);
  ::close(descriptor);
}

TEST_F(AtomicFileTest, TwoThatWriteOneNameDoNotMix) {
  AtomicFile first(path("out"), AtomicFile::Unfinished::keep);
  AtomicFile second(path("out"), AtomicFile::Unfinished::keep);
  first.write(test::bytes_of("first "));
  second.write(test::bytes_of("second "));
  first.write(test::bytes_of("whole"));
  second.write(test::bytes_of("whole"));
  first.commit();
  EXPECT_EQ(load("out"), "first whole");
  second.commit();
  EXPECT_EQ(load("out"), "second whole");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(AtomicFileTest, APrivateFileStaysPrivate) {
  store("out", "old");
  ::chmod(path("out").c_str(), 0600);
  AtomicFile file(path("out"));
  file.commit();
  struct stat status {};
  ASSERT_EQ(::stat(path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(AtomicFileTest, FoldersAndLinksThatLeadInACircleAreNoOutputs) {
  std::filesystem::create_symlink("circle", path("circle"));
  EXPECT_THROW(AtomicFile(path("circle")), IoError);
  EXPECT_THROW(AtomicFile(path(".")), IoError);
  EXPECT_TRUE(std::filesystem::is_symlink(path("circle")));
}

TEST_F(AtomicFileTest, ALinkToNothingYetIsFollowed) {
  std::filesystem::create_symlink("target", path("link"));
  AtomicFile file(path("link"));
  file.write(test::bytes_of("new"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(load("target"), "new");
}

TEST_F(AtomicFileTest, GivesTheUsualPermissions) {
  store("ordinary", "");
  AtomicFile file(path("out"));
  file.commit();
  EXPECT_EQ(std::filesystem::status(path("out")).permissions(),
            std::filesystem::status(path("ordinary")).permissions());
}

TEST_F(AtomicFileTest, SaysWhyItCannotWrite) {
  EXPECT_THROW(AtomicFile(path("no/such/folder/out")), IoError);
  AtomicFile full("/dev/full");
  EXPECT_THROW(full.write(test::bytes_of("x")), IoError);
}

TEST_F(AtomicFileTest, IsRemovedByASignalHandler) {
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(path("out"));
    file.write(test::bytes_of("half"));
    remove_unfinished_files();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(names(), Names{});
}

}  // namespace
}  // namespace citcat
