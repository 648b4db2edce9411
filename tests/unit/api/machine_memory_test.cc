// The machine of the C interface, where memory lies beyond 4 GiB.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "api/citcat_machine.h"
#include "events/archive/recording_file.h"
#include "unit/replay/machine/high_memory_guest.h"

namespace citcat {
namespace {

class HighMemoryMachine : public HighMemoryGuest {
 protected:
  void SetUp() override {
    HighMemoryGuest::SetUp();
    put(kCode, {0x90, 0x90});
    recording_.instructions = 2;
    RecordingFileWriter(path_).finish(recording_);
    machine_ = citcat_machine_open(path_.c_str(), 0);
    ASSERT_NE(machine_, nullptr) << citcat_machine_error(nullptr);
  }
  void TearDown() override {
    citcat_machine_close(machine_);
    std::filesystem::remove(path_);
  }

  const std::string path_ =
      ::testing::TempDir() + "citcat_high_api_" + std::to_string(::getpid()) + ".citcat";
  citcat_machine* machine_ = nullptr;
};

TEST_F(HighMemoryMachine, ItsAddressesAreTheMachines) {
  std::uint64_t physical = 0;
  ASSERT_EQ(citcat_machine_translate(machine_, kLinear, &physical), 1);
  EXPECT_EQ(physical, kBeyond | kPage);
  std::array<std::uint8_t, 8> bytes{}, known{};
  EXPECT_EQ(citcat_machine_memory(machine_, physical, bytes.data(), known.data(), 8), 8);
  EXPECT_EQ(bytes[0], 0x88);
  EXPECT_EQ(bytes[7], 0x11);
  EXPECT_EQ(citcat_machine_memory(machine_, 0xc0000000 + kPage, bytes.data(), known.data(), 8), 0)
      << "there the machine has nothing";
  EXPECT_EQ(known[0], 0);
}

}  // namespace
}  // namespace citcat
