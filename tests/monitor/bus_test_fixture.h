#pragma once
// Guest RAM and a pipe for records, without an emulator.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "monitor/bus/bus_model.h"
#include "monitor/bus/guest_memory.h"
#include "monitor/bus/record_sink.h"

namespace citcat::monitor {

/// Guest RAM in a memory file of its own name, and the records that come out.
class BusTest : public ::testing::TestWithParam<CacheModel> {
 protected:
  static constexpr std::size_t kRam = 5 << 20;

  void SetUp() override {
    const int fd = memfd_create("citcat-test-ram", 0);
    ASSERT_EQ(ftruncate(fd, kRam), 0);
    ram_ =
        static_cast<std::uint8_t*>(mmap(nullptr, kRam, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    ASSERT_TRUE(memory_.find("citcat-test-ram"));
    for (std::size_t k = 0; k < kRam; ++k) ram_[k] = static_cast<std::uint8_t>(k * 7 + (k >> 8));
    ASSERT_TRUE(memory_.snapshot());
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
    records_ = ends[0];
    control_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(control_, 0);
    sink_.emplace(ends[1], control_);
    write_end_ = ends[1];
  }
  void TearDown() override {
    munmap(ram_, kRam);
    close(records_);
    close(write_end_);
    close(control_);
  }

  /// The last megabyte of RAM is the machine's from 4 GiB on.
  static constexpr std::uint32_t kHighRam = 4 << 20;
  void place_high_memory() {
    static std::uint8_t* beyond;
    beyond = ram_ + kHighRam;
    ASSERT_TRUE(
        memory_.find_high([](std::uint64_t, std::uint64_t*, bool) -> void* { return beyond; },
                          [](void*, std::uint64_t, bool, std::uint64_t) {}));
    ASSERT_EQ(memory_.low_bytes(), kHighRam);
  }

  struct Seen {
    int type;
    std::uint32_t address;  ///< its lower half
    int size, flags;
    std::array<std::uint8_t, 16> data;
    std::uint64_t instructions;
    std::uint32_t iterations;
    PhysicalAddress whole_address;
  };
  /// All records since the last time, but for those of type 22: they are in the addresses of the
  /// others.
  std::vector<Seen> seen() {
    constexpr int kHigh = 22;
    sink_->flush();
    std::vector<Seen> out;
    std::uint8_t r[40];
    while (read(records_, r, sizeof r) == sizeof r) {
      Seen s{r[20], 0, r[21], r[22], {}, 0, 0, 0};
      std::memcpy(&s.instructions, r, 8);
      std::memcpy(&s.address, r + 12, 4);
      if (s.type == kHigh) {
        ++high_records_;
        upper_ = PhysicalAddress{s.address} << 32;
        continue;
      }
      s.whole_address = upper_ | s.address;
      std::memcpy(&s.iterations, r + 16, 4);
      std::memcpy(s.data.data(), r + 24, 16);
      out.push_back(s);
    }
    return out;
  }
  void load(BusModel& bus, std::uint32_t address, std::size_t size) {
    bus.read(address, {ram_ + address, size});
  }
  void store(BusModel& bus, std::uint32_t address, std::vector<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), ram_ + address);
    bus.write(address, bytes);
  }

  GuestMemory memory_;
  std::uint8_t* ram_ = nullptr;
  PhysicalAddress upper_ = 0;
  unsigned high_records_ = 0;
  int records_ = -1, write_end_ = -1, control_ = -1;
  std::optional<RecordSink> sink_;
};

}  // namespace citcat::monitor
