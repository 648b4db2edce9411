// Command lines of emulators as they are recorded.

#include "cli/record/adapted_command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "cli/record/emulator_command.h"
#include "cli/record/emulator_program.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using Words = std::vector<std::string>;

Words with_machine(Words words) {
  words.insert(words.end(), {"-machine", "smm=off"});
  return words;
}

TEST(AdaptedCommand, LeavesAloneWhatCanBeRecorded) {
  const Words words{"qemu-system-x86_64",
                    "-machine",
                    "pc,smm=off",
                    "-cpu",
                    "Nehalem,+aes",
                    "-m",
                    "size=4G,slots=2",
                    "-smp",
                    "1",
                    "-accel",
                    "tcg",
                    "-nographic",
                    "disk.img",
                    "-append",
                    "accel=kvm -smp 2"};
  const AdaptedCommand adapted = adapted_command(words, kMostRecordedProcessors);
  EXPECT_EQ(adapted.command, words);
  EXPECT_TRUE(adapted.changes.empty());
}

TEST(AdaptedCommand, WritesWhatOlderEmulatorsTookAsItIsWrittenNow) {
  const AdaptedCommand adapted = adapted_command(
      {"qemu-system-x86_64", "-localtime", "-no-kvm", "-machine", "smm=off", "-usbdevice", "tablet",
       "-realtime", "mlock=off", "-no-acpi", "disk.img", "-sdl"},
      kMostRecordedProcessors);
  EXPECT_EQ(adapted.command, (Words{"qemu-system-x86_64", "-rtc", "base=localtime", "-machine",
                                    "smm=off", "-usb", "-device", "usb-tablet", "-machine",
                                    "acpi=off", "disk.img", "-display", "sdl"}));
  EXPECT_EQ(adapted.changes.size(), 6u);
}

TEST(AdaptedCommand, KeepsSeveralProcessorsThatShareABus) {
  const std::vector<std::string> words{
      "qemu-system-x86_64", "-machine", "smm=off", "-m", "8G", "-smp", "sockets=2,cores=2"};
  const AdaptedCommand adapted = adapted_command(words, kMostRecordedProcessors);
  EXPECT_EQ(adapted.command, words);
  EXPECT_EQ(adapted.processors, 4u);
  const AdaptedCommand one = adapted_command(words, 1);
  EXPECT_EQ(one.processors, 1u);
  EXPECT_EQ(one.command.back(), "1");
  EXPECT_EQ(one.changes, std::vector<std::string>{
                             "-smp sockets=2,cores=2: -smp 1 in its place, since the driver's dump "
                             "and QEMU's log are of one processor"});
}

TEST(AdaptedCommand, ReplacesWhatCannotAndSaysSo) {
  const struct {
    Words given, adapted;
  } cases[] = {
      {{"-enable-kvm"}, {}},
      {{"-accel", "kvm"}, {}},
      {{"--accel", "hvf"}, {}},
      {{"-accel", "tcg,thread=multi,tb-size=64"}, {"-accel", "tcg,tb-size=64"}},
      {{"-machine", "q35,accel=kvm:tcg,kernel_irqchip=on"}, {"-machine", "q35"}},
      {{"-M", "accel=kvm"}, {}},
      {{"-smp", "20"}, {"-smp", "14"}},
      {{"-smp", "cpus=1,maxcpus=4"}, {"-smp", "1"}},
      {{"-smp", "2,maxcpus=4"}, {"-smp", "2"}},
      {{"-smp", "sockets=4,cores=8"}, {"-smp", "14"}},
      {{"-m", "1T"}, {"-m", "64G"}},
      {{"-m", "size=100G,slots=3"}, {"-m", "64G"}},
      {{"-m", "70000.5M"}, {"-m", "64G"}},
      {{"-object", "memory-backend-file,id=a,size=1G,mem-path=/x"}, {}},
      {{"-numa", "node,memdev=a"}, {}},
      {{"-mem-prealloc"}, {}},
      {{"-d", "int"}, {}},
      {{"-D", "file"}, {}},
      {{"-plugin", "other.so"}, {}},
      {{"-daemonize"}, {}},
      {{"-S"}, {}},
      {{"-preconfig"}, {}},
  };
  for (const auto& c : cases) {
    Words given{"qemu-system-x86_64"}, adapted{"qemu-system-x86_64"};
    given.insert(given.end(), c.given.begin(), c.given.end());
    adapted.insert(adapted.end(), c.adapted.begin(), c.adapted.end());
    const AdaptedCommand result = adapted_command(with_machine(given), kMostRecordedProcessors);
    EXPECT_EQ(result.command, with_machine(adapted)) << c.given[0];
    EXPECT_FALSE(result.changes.empty()) << c.given[0];
  }
}

TEST(AdaptedCommand, RefusesMachinesThatBeginInTheMiddle) {
  for (const Words& given : {Words{"qemu", "-loadvm", "x"}, Words{"qemu", "-incoming", "defer"},
                             Words{"qemu", "-icount", "shift=3,rr=replay,rrfile=x"}})
    EXPECT_THROW((void)adapted_command(given, kMostRecordedProcessors), UsageError) << given[1];
  EXPECT_EQ(adapted_command({"qemu", "-icount", "shift=3"}, 1).command[2], "shift=3");
}

TEST(AdaptedCommand, KeepsDoubledCommas) {
  const auto adapted = adapted_command(
      {"qemu-system-x86_64", "-machine", "pc,firmware=a,,b.fd,smm=off,accel=kvm"}, 1);
  EXPECT_EQ(adapted.command,
            (Words{"qemu-system-x86_64", "-machine", "pc,firmware=a,,b.fd,smm=off"}));
  EXPECT_EQ(adapted.changes.size(), 1u);
}

TEST(AdaptedCommand, KeepsSystemManagementModeOfOneProcessor) {
  for (const Words& given : {Words{"qemu"}, Words{"qemu", "-machine", "q35,smm=on"},
                             Words{"qemu", "-M", "smm=auto", "-smp", "1"}}) {
    const AdaptedCommand result = adapted_command(given, kMostRecordedProcessors);
    EXPECT_EQ(result.command, given);
    EXPECT_TRUE(result.changes.empty());
  }
}

TEST(AdaptedCommand, LeavesSystemManagementModeOfSeveralProcessorsOut) {
  for (const Words& given : {Words{"qemu", "-smp", "2"}, Words{"qemu", "-smp", "2", "-M", "q35"},
                             Words{"qemu", "-machine", "q35,smm=on", "-smp", "2"},
                             Words{"qemu", "-M", "smm=off", "-M", "smm=auto", "-smp", "2"}}) {
    const AdaptedCommand result = adapted_command(given, kMostRecordedProcessors);
    EXPECT_EQ(result.command, with_machine(given));
    EXPECT_EQ(result.changes.size(), 1u);
  }
}

TEST(AdaptedCommand, TakesFromProcessorsWhatNoReplayHolds) {
  const auto has = [](const std::string& model, const std::string& part) {
    return ("," + model + ",").find("," + part + ",") != std::string::npos;
  };
  for (const char* same :
       {"qemu64", "pentium3", "Conroe,+xsave,+xsaveopt", "Westmere,-aes", "help"})
    EXPECT_EQ(recordable_processor(same, true), same);
  for (const char* model : {"max", "Haswell", "EPYC-v4", "qemu64,+avx", "Nehalem,avx2=on"}) {
    const std::string recorded = recordable_processor(model, true);
    EXPECT_TRUE(has(recorded, "-avx")) << recorded;
    EXPECT_TRUE(has(recorded, "-la57")) << recorded;
    EXPECT_FALSE(has(recorded, "+avx") || has(recorded, "avx2=on")) << recorded;
    EXPECT_FALSE(has(recorded, "-xsave")) << recorded;
    EXPECT_TRUE(has(recordable_processor(model, false), "-xsave"));
  }
  EXPECT_TRUE(recordable_processor("host,+aes", true).starts_with("max,+aes,-"));
  // What is taken away already is not named twice.
  const std::string once = recordable_processor("max,-avx", true);
  EXPECT_EQ(once.find("-avx,"), once.rfind("-avx,"));
}

TEST(AdaptedCommand, TakesKvmsOwnNameForSoftwareEmulation) {
  EXPECT_EQ(adapted_command({"/usr/bin/kvm"}, kMostRecordedProcessors).command[0],
            "qemu-system-x86_64");
  EXPECT_EQ(adapted_command({"./emulator"}, kMostRecordedProcessors).command[0], "./emulator");
}

TEST(EmulatorVersion, IsThatOfQemu) {
  EXPECT_EQ(emulator_version("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright"),
            std::pair(10, 0));
  EXPECT_EQ(emulator_version("QEMU emulator version 7.2.22"), std::pair(7, 2));
  EXPECT_EQ(emulator_version("bochs 2.7"), std::nullopt);
  EXPECT_EQ(emulator_version(""), std::nullopt);
}

TEST(LikelyStart, FitsTheMachine) {
  const Words window{"qemu", "-append", "quiet memmap=64K$0x6000000"};
  EXPECT_EQ(likely_start(window, "exit:ls"), "driver");
  EXPECT_EQ(likely_start({"qemu", "-append", "quiet"}, "exit:ls"), "process:ls");
  EXPECT_EQ(likely_start({"qemu"}, "count:5"), "reset");
  EXPECT_EQ(likely_start({"qemu"}, ""), "reset");
}

TEST(RamBytes, AreWhatTheEmulatorMakesOfItsOption) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  EXPECT_EQ(bytes_of_ram("128"), 128 * kMiB);
  EXPECT_EQ(bytes_of_ram("3.5G"), 3584 * kMiB);
  EXPECT_EQ(bytes_of_ram("1.25g,slots=2,maxmem=4G"), 1280 * kMiB);
  EXPECT_EQ(bytes_of_ram("slots=2,size=1048576K"), 1024 * kMiB);
  EXPECT_EQ(bytes_of_ram("268435456B"), 256 * kMiB);
  EXPECT_EQ(bytes_of_ram("0"), 128 * kMiB);
  EXPECT_EQ(bytes_of_ram("100.3M"), 105177088u);  // rounded up to 8 KiB
  EXPECT_EQ(bytes_of_ram("3.5"), std::nullopt);
  EXPECT_EQ(bytes_of_ram("1GiB"), std::nullopt);
  EXPECT_EQ(bytes_of_ram("0x100M"), std::nullopt);
  EXPECT_EQ(ram_bytes({"qemu", "-m", "1G", "-m", "2G"}), 2048 * kMiB);
  EXPECT_EQ(ram_bytes({"qemu"}), 128 * kMiB);
  EXPECT_THROW((void)ram_bytes({"qemu", "-m", "lots"}), UsageError);
}

TEST(CheckCommand, RefusesTheDriverWithoutAWindow) {
  RecordArguments arguments;
  arguments.start = "driver";
  arguments.command = {"qemu", "-kernel", CITCAT_SOURCE_DIR "/README.md", "-append", "quiet"};
  EXPECT_THROW(check_command(arguments), UsageError);
  arguments.command.back() += " memmap=64K$0x6000000";
  EXPECT_NO_THROW(check_command(arguments));
  // What a boot loader tells the kernel is not known here.
  arguments.command = {"qemu", "-m", "1G"};
  EXPECT_NO_THROW(check_command(arguments));
}

TEST(FindEmulator, TakesNoOtherThanThatOfTheSuiteThatWasChosen) {
  setenv("CITCAT_QEMU_SUITE", "no-such-suite", 1);
  try {
    find_emulator("qemu-system-x86_64");
    ADD_FAILURE() << "expected IoError";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("no QEMU of no-such-suite has been fetched"),
              std::string::npos)
        << error.what();
  }
  unsetenv("CITCAT_QEMU_SUITE");
}

}  // namespace
}  // namespace citcat
