// Commands that gdb passes on, where addresses of the machine are not those of the capture.

#include "debugger/server/monitor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "unit/replay/machine/high_memory_guest.h"

namespace citcat {
namespace {

class HighMemoryMonitor : public HighMemoryGuest {
 protected:
  void SetUp() override {
    HighMemoryGuest::SetUp();
    put(kCode, {0x48, 0x8b, 0x03, 0x48, 0x89, 0x43, 8, 0x90});  // mov rax, [rbx]; mov [rbx+8], rax
    recording_.instructions = 3;
    RecordingFileWriter(path_).finish(recording_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ =
      testing::TempDir() + "citcat_high_" + std::to_string(::getpid()) + ".citcat";
};

TEST_F(HighMemoryMonitor, PhysicalAddressesAreTheMachines) {
  const RecordingFile file = RecordingFile::open(path_);
  DebugTarget target(file, {}, false);
  Monitor monitor(target, [](const BusTransaction&) { return std::string(); });
  monitor.seek("2");
  const auto run = [&](const std::string& command) { return monitor.run(command, {}); };
  const std::string by_machine = run("last-write phys:0x100014008 8");
  EXPECT_NE(by_machine.find("8 bytes at physical 100014008"), std::string::npos) << by_machine;
  EXPECT_EQ(by_machine.find("nobody"), std::string::npos) << by_machine;
  EXPECT_EQ(run("last-write 0x8000200008 8"), by_machine) << "the same by its linear address";
  EXPECT_THROW(run("last-write phys:0xc0014008 8"), UsageError) << "the capture's address";
}

}  // namespace
}  // namespace citcat
