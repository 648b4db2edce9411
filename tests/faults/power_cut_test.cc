// Power cuts: what a command writes is written down call by call, and the power then cut after each
// of them, with any part of what was not flushed on the disk. An output's name then shows the old
// file or the whole new one; an archive that was added to reads as before, or with what was added.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "events/archive/container.h"
#include "events/archive/recording_file.h"
#include "faults/disk_model.h"
#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

class PowerCuts : public CitcatTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers have the calls that the shim wants";
#endif
    import_sample("r.citcat");
  }
  std::string folder() const { return std::filesystem::canonical(file("")).string(); }

  /// Runs the command; what it did to files.
  std::vector<DiskStep> steps_of(const std::string& arguments) const {
    const ProcessResult result = run_shell(
        "exec env LD_PRELOAD=" CITCAT_FAULT_SHIM " CITCAT_SHIM_LOG=log \"$CITCAT\" " + arguments,
        file(""));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const std::vector<DiskStep> steps = read_disk_log(read_file(file("log")), folder());
    std::filesystem::remove(file("log"));
    EXPECT_GE(steps.size(), 4U);  // write, flush, rename, flush of the folder
    return steps;
  }

  /// Cuts the power after each step, with all, none and some of what is not safe.
  void for_each_cut(DiskModel disk, const std::vector<DiskStep>& steps, const std::string& name,
                    const std::function<void(const std::optional<std::string>&)>& check) const {
    std::mt19937 random(20261125);
    std::size_t step = 0;
    for (;; ++step) {
      for (const unsigned luck : {0U, 100U, 50U, 50U, 50U, 90U, 90U, 10U}) {
        SCOPED_TRACE("after " + std::to_string(step) + " of " + std::to_string(steps.size()) +
                     " steps, luck " + std::to_string(luck));
        check(disk.after_cut(folder() + "/" + name, random, luck));
        if (HasFailure()) return;
      }
      if (step == steps.size()) return;
      disk.make(steps[step]);
    }
  }
};

TEST_F(PowerCuts, LeaveTheOldOutputOrTheWholeNewOne) {
  for (const char* command :
       {"replay r.citcat -q -o out", "slim r.citcat -q -o out", "repair r.citcat -q -o out"}) {
    for (const bool exists : {false, true}) {
      SCOPED_TRACE(command);
      DiskModel disk;
      if (exists) {
        write_file(file("out"), "old");
        disk.add(folder() + "/out", "old");
      }
      const std::vector<DiskStep> steps = steps_of(command);
      const std::string whole = read_file(file("out"));
      bool seen_new = false;
      for_each_cut(disk, steps, "out", [&](const std::optional<std::string>& left) {
        EXPECT_TRUE(exists ? left == "old" || left == whole : !left || left == whole)
            << (left ? left->size() : 0);
        seen_new |= left == whole;
      });
      EXPECT_TRUE(seen_new);
      std::filesystem::remove(file("out"));
    }
  }
}

TEST_F(PowerCuts, LeaveAnArchiveThatWasAddedToReadable) {
  // The second time behind an append that was interrupted.
  for (const bool interrupted : {false, true}) {
    const std::string before = read_file(file("r.citcat"));
    const std::string identity = RecordingFile::open(file("r.citcat")).identity().hex();
    if (interrupted) write_file(file("r.citcat"), before + std::string(1000, 'x'));
    DiskModel disk;
    disk.add(folder() + "/r.citcat", read_file(file("r.citcat")));
    const std::vector<DiskStep> steps = steps_of("checkpoint r.citcat --every 100 -q");
    const std::string after = read_file(file("r.citcat"));
    ASSERT_GT(after.size(), before.size());
    std::size_t with = 0, without = 0;
    for_each_cut(disk, steps, "r.citcat", [&](const std::optional<std::string>& left) {
      ASSERT_TRUE(left);
      EXPECT_EQ(left->substr(0, before.size()), before);
      write_file(file("cut.citcat"), *left);
      const RecordingFile found = RecordingFile::open(file("cut.citcat"));
      EXPECT_EQ(found.identity().hex(), identity);
      for (const ChunkInfo& chunk : found.checkpoints()) found.checkpoint(chunk);
      ++(found.checkpoints().empty() ? without : with);
    });
    EXPECT_GT(without, 0U);
    EXPECT_GT(with, 0U);
    write_file(file("r.citcat"), before);
  }
}

TEST(DiskModel, HoldsWhatWasFlushedAndAnyPartOfTheRest) {
  DiskModel disk;
  using Kind = DiskStep::Kind;
  disk.add("/a", "old");
  disk.make({Kind::write, "/b", "", 0, "new"});
  std::mt19937 random(1);
  bool torn = false, none = false;
  for (int i = 0; i < 200; ++i) {
    const auto left = disk.after_cut("/b", random, 50);
    torn |= left == "n";
    none |= !left;
  }
  EXPECT_TRUE(torn);
  EXPECT_TRUE(none);
  disk.make({Kind::rename, "/b", "/a", 0, ""});
  bool empty = false;
  for (int i = 0; i < 200; ++i) empty |= disk.after_cut("/a", random, 0) == "";
  EXPECT_TRUE(empty) << "a name may come before the bytes that nobody flushed";
  disk.make({Kind::flush, "/a", "", 0, ""});
  disk.make({Kind::flush_folder, "/", "", 0, ""});
  EXPECT_EQ(disk.after_cut("/a", random, 0), "new");
}

}  // namespace
}  // namespace citcat::testing
