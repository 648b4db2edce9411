// Commands that gdb passes on, also where memory lies beyond 4 GiB.

#include "debugger/server/monitor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "unit/replay/machine/high_memory_guest.h"
#include "unit/temporary_folder.h"

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
  const std::string by_machine = run("last-write phys:0x6300014008 8");
  EXPECT_NE(by_machine.find("8 bytes at physical 6300014008"), std::string::npos) << by_machine;
  EXPECT_EQ(by_machine.find("nobody"), std::string::npos) << by_machine;
  EXPECT_EQ(run("last-write 0x8000200008 8"), by_machine) << "the same by its linear address";
  EXPECT_EQ(run("last-write 8000200008 8"), by_machine) << "hexadecimal without 0x too";
  EXPECT_EQ(run("last-write phys:6300014008 8"), by_machine);
  EXPECT_NE(run("last-write phys:0x14008 8").find("nobody"), std::string::npos)
      << "another address with the same low half";
}

/// Real mode: INT 13h, whose handler leaves by RETF 2 so that its flags stay, as many of a BIOS do;
/// then INT 14h, whose handler takes its frame off and jumps.
class RealModeMonitor : public test::TemporaryFolder {
 protected:
  void SetUp() override { RecordingFileWriter(path("r.citcat")).finish(program()); }
  static Recording program() {
    Recording recording;
    for (std::uint32_t at = 0; at < 0x9000; ++at) recording.image.set(PhysAddr{at}, 0);
    const auto put = [&](std::uint32_t at, std::initializer_list<int> bytes) {
      for (const int b : bytes) recording.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
    };
    put(4 * 0x13, {0x00, 0x05, 0, 0, 0x00, 0x06, 0, 0});
    put(0x500, {0x40, 0xca, 2, 0});              // inc ax; retf 2
    put(0x600, {0x83, 0xc4, 6, 0xe9, 0x00, 2});  // add sp, 6; jmp 806h
    put(0x800, {0xcd, 0x13, 0x90, 0xcd, 0x14});  // int 13h; nop; int 14h
    put(0x805, {0xf4, 0x90, 0x90});              // hlt, which nobody comes to; nop; nop
    CpuState& s = recording.initial;
    s.model = CpuModel::p6;
    s.ram_bytes = 0x100000;
    s.cr0 = 0x10;
    s.eip = 0x800;
    s.eflags = 2;
    s.gpr[kEsp] = 0x7000;
    s.segment.fill({0, 0, 0xffff, 0x93, false});
    s.segment[kCs] = {0, 0, 0xffff, 0x9b, false};
    s.idtr = {0, 0x3ff};
    recording.instructions = 8;
    return recording;
  }
};

TEST_F(RealModeMonitor, AHandlerIsLeftWithoutAnIretToo) {
  const RecordingFile file = RecordingFile::open(path("r.citcat"));
  DebugTarget target(file, {}, false);
  Monitor monitor(target, [](const BusTransaction&) { return std::string(); });
  const auto where = [&](const std::string& position) {
    monitor.seek(position);
    return monitor.run("where", {});
  };
  const auto is_in = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  EXPECT_TRUE(is_in(where("1"), "in INT 13h, entered at instruction 0")) << where("1");
  EXPECT_TRUE(is_in(where("2"), "in INT 13h")) << where("2");
  EXPECT_TRUE(is_in(where("3"), "in no interrupt or exception")) << where("3");
  EXPECT_TRUE(is_in(where("5"), "in INT 14h")) << where("5");
  EXPECT_FALSE(is_in(where("5"), "in INT 13h")) << where("5");
  EXPECT_TRUE(is_in(where("6"), "in no interrupt or exception")) << where("6");
}

/// The beginning is before an interrupt that comes there.
TEST_F(RealModeMonitor, TheBeginningIsBeforeWhatIsDeliveredThere) {
  Recording recording = program();
  Interrupt interrupt;
  interrupt.vector = 0x13;
  interrupt.position_known = true;
  recording.interrupts.push_back(interrupt);
  recording.initial.eflags |= 1u << 9;
  RecordingFileWriter(path("at_0.citcat")).finish(recording);
  const RecordingFile file = RecordingFile::open(path("at_0.citcat"));
  DebugTarget target(file, {}, false);
  Monitor monitor(target, [](const BusTransaction&) { return std::string(); });
  for (const char* const place : {"begin", "0"}) {
    monitor.seek("3");
    monitor.seek(place);
    EXPECT_EQ(target.next_instruction(), LinearAddr{0x800}) << place;
    EXPECT_NE(monitor.run("where", {}).find("in no interrupt"), std::string::npos) << place;
    target.step();
    EXPECT_EQ(target.next_instruction(), LinearAddr{0x500}) << place;
  }
}

/// 64 bits: the handler of UD2 copies its frame to below it and returns by the copy, as Linux does
/// where it makes room to push something for the interrupted code.
TEST_F(LongModeGuest, AHandlerThatMovedItsFrameIsLeftByItsReturn) {
  put(kCode, {0x0f, 0x0b, 0x90, 0x90});        // ud2; nop; nop
  put(kHandler, {0x48, 0x83, 0x04, 0x24, 2});  // add qword [rsp], 2
  constexpr std::uint32_t kPushes = 5, kPushBytes = 4;
  for (std::uint32_t i = 0; i < kPushes; ++i) {
    put(kHandler + 5 + kPushBytes * i, {0xff, 0x74, 0x24, 0x20});  // push qword [rsp+20h]
  }
  put(kHandler + 5 + kPushBytes * kPushes, {0x48, 0xcf});  // iretq
  recording_.instructions = 9;
  const std::string path =
      testing::TempDir() + "citcat_moved_" + std::to_string(::getpid()) + ".citcat";
  RecordingFileWriter(path).finish(recording_);
  const RecordingFile file = RecordingFile::open(path);
  std::filesystem::remove(path);
  DebugTarget target(file, {}, false);
  Monitor monitor(target, [](const BusTransaction&) { return std::string(); });
  const auto where = [&](const char* position) {
    monitor.seek(position);
    return monitor.run("where", {});
  };
  EXPECT_NE(where("6").find("in exception 06h"), std::string::npos) << where("6");
  EXPECT_NE(where("8").find("in no interrupt or exception"), std::string::npos) << where("8");
}

}  // namespace
}  // namespace citcat
