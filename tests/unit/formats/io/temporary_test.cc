#include "formats/io/temporary.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class TemporaryTest : public test::TemporaryFolder {
 protected:
  void TearDown() override {
    tell_of_leftovers(nullptr);
    TemporaryFolder::TearDown();
  }
  /// Runs `work` in a process that is then ended as by kill -9.
  template <class Work>
  void in_a_process_that_is_killed(Work work) const {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      work();
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
  }
};

TEST_F(TemporaryTest, NoTwoHaveOneName) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) {
    const Temporary file(path("out"), Temporary::Kind::file);
    EXPECT_THAT(file.path(), StartsWith(path("out.citcat-")));
    EXPECT_TRUE(seen.insert(file.path()).second);
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(TemporaryTest, WhatAKilledProgramLeftIsRemovedByTheNextAndTold) {
  in_a_process_that_is_killed([this] {
    auto* const file = new AtomicFile(path("out"));
    file->write(test::bytes_of("half"));
    auto* const folder = new Temporary(path("out"), Temporary::Kind::folder);
    ::close(::open((folder->path() + "/inside").c_str(), O_CREAT | O_WRONLY, 0600));
  });
  store("out.citcat-notours", "of another program");
  ASSERT_EQ(names().size(), 3U);
  std::vector<std::string> told;
  tell_of_leftovers([&told](const std::string& name) { told.push_back(name); });
  { const Temporary other(path("another"), Temporary::Kind::file); }
  EXPECT_EQ(names().size(), 3U) << "of another output";
  { const Temporary next(path("out"), Temporary::Kind::file); }
  EXPECT_THAT(names(), ElementsAre("out.citcat-notours"));
  EXPECT_EQ(told.size(), 2U);
}

TEST_F(TemporaryTest, WhatAProgramIsAtWorkOnStays) {
  const Temporary file(path("out"), Temporary::Kind::file);
  const Temporary folder(path("out"), Temporary::Kind::folder);
  const pid_t child = ::fork();
  if (child == 0) {
    { const Temporary other(path("out"), Temporary::Kind::file); }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(file.path()));
  EXPECT_TRUE(std::filesystem::exists(folder.path()));
}

TEST_F(TemporaryTest, ALongNameLeavesRoomForTheRest) {
  const std::string name(255, 'n');
  AtomicFile file(path(name));
  file.write(test::bytes_of("x"));
  file.commit();
  EXPECT_EQ(load(name), "x");
}

TEST_F(TemporaryTest, ASignalRemovesFoldersAndNamesWhatIsKept) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto* const folder = new Temporary(path("archive"), Temporary::Kind::folder);
    AtomicFile inside(folder->path() + "/output");
    inside.commit();
    auto* const trace = new AtomicFile(path("trace"), AtomicFile::Unfinished::keep);
    trace->write(test::bytes_of("half"));
    remove_unfinished_files();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(names(), ElementsAre("trace.partial"));
  EXPECT_EQ(load("trace.partial"), "half");
}

}  // namespace
}  // namespace citcat
