// The races that `races` tells, against those computed here from the accesses and interrupts of an
// independent simulator, all in one order.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "golden/process.h"
#include "processors/shared_stream.h"
#include "tools/host/report_renderers.h"
#include "tools/processors/race_tool.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

/// By pairs of addresses of instructions, the lower first: how often they race.
using RaceCounts = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;

/// Two processors of a simulator.
class SimulatedRaces {
 public:
  RaceCounts of(const std::vector<SharedStreamRecord>& all) {
    for (const SharedStreamRecord& r : all) {
      if (r.is_instruction()) address_[{r.processor(), r.instruction}] = r.linear;
      if (!r.is_access() || !is_locked(r)) continue;
      for (std::uint64_t a = r.d; a < std::uint64_t{r.d} + r.a; ++a) locks_.insert(a);
    }
    for (const SharedStreamRecord& r : all) {
      if (r.is_access()) access(r);
      if ((r.kind & 15) == kEvent) event(r);
    }
    return std::move(races_);
  }

 private:
  static constexpr std::uint8_t kEvent = 3, kInterrupt = 2, kStartup = 10;
  static constexpr std::uint8_t kOperand = 0, kRegister = 4, kChange = 2;
  static constexpr std::uint32_t kCommand = 0xfee00300, kCommandHigh = 0xfee00310;
  static constexpr unsigned kNmi = 2, kStart = 256;
  using Clock = std::array<std::uint64_t, 2>;
  struct Access {
    std::uint64_t time = 0, instruction = 0;
    bool any = false;
  };
  struct Byte {
    std::array<Access, 2> writes, reads;  ///< the last of each
    std::size_t writer = 2;               ///< who wrote last
  };

  static bool is_locked(const SharedStreamRecord& r) { return r.c == kOperand && r.x[36] != 0; }
  static void join(Clock& to, const Clock& from) {
    for (std::size_t p = 0; p < 2; ++p) to[p] = std::max(to[p], from[p]);
  }

  void access(const SharedStreamRecord& r) {
    if (r.c == kRegister && r.b != 0) return set_register(r);
    if (r.c != kOperand) return;
    if (r.b == kChange) {  // reads, and writes
      SharedStreamRecord part = r;
      for (part.b = 0; part.b < kChange; ++part.b) access(part);
      return;
    }
    const std::size_t p = r.processor();
    const std::uint64_t end = std::uint64_t{r.d} + r.a;
    for (std::uint64_t a = r.d; a < end; ++a) {
      const bool acquires = r.b == 0 || is_locked(r);
      if (locks_.contains(a) && acquires) join(clocks_[p], synchronized_[a]);
    }
    std::set<std::tuple<std::uint64_t, bool>> pairs;
    for (std::uint64_t a = r.d; a < end; ++a) {
      if (!locks_.contains(a)) of_byte(r, bytes_[a], pairs);
    }
    for (const auto& [other, writes] : pairs) {
      const std::uint64_t mine = address_.at({p, r.instruction});
      const std::uint64_t its = address_.at({1 - p, other});
      ++races_[std::minmax(mine, its)];
    }
    bool released = false;
    for (std::uint64_t a = r.d; a < end && r.b != 0; ++a) {
      if (!locks_.contains(a)) continue;
      join(synchronized_[a], clocks_[p]);
      released = true;
    }
    if (released) ++clocks_[p][p];
  }
  void of_byte(const SharedStreamRecord& r, Byte& byte,
               std::set<std::tuple<std::uint64_t, bool>>& pairs) {
    const std::size_t p = r.processor(), other = 1 - p;
    const auto races = [&](const Access& its) { return its.any && its.time > clocks_[p][other]; };
    if (byte.writer == other && races(byte.writes[other]))
      pairs.insert({byte.writes[other].instruction, true});
    if (r.b != 0 && races(byte.reads[other])) pairs.insert({byte.reads[other].instruction, false});
    const Access now{clocks_[p][p], r.instruction, true};
    if (r.b == 0) {
      byte.reads[p] = now;
      return;
    }
    byte.writes[p] = now;
    byte.writer = p;
    byte.reads = {};
  }
  void set_register(const SharedStreamRecord& r) {
    const std::size_t p = r.processor();
    std::uint32_t value = 0;
    std::memcpy(&value, r.x, sizeof value);
    if (r.d == kCommandHigh) destination_[p] = value >> 24;
    if (r.d != kCommand) return;
    const unsigned mode = value >> 8 & 7, shorthand = value >> 18 & 3;
    const unsigned signal = mode == 4 ? kNmi : mode >= 5 ? kStart : value & 0xff;
    for (std::size_t to = 0; to < 2; ++to) {
      const std::array<bool, 4> meant{destination_[p] == to || destination_[p] == 0xff, to == p,
                                      true, to != p};
      if (meant[shorthand]) join(sent_[{to, signal}], clocks_[p]);
    }
    ++clocks_[p][p];
  }
  void event(const SharedStreamRecord& r) {
    if (r.a == kInterrupt) join(clocks_[r.processor()], sent_[{r.processor(), r.b}]);
    if (r.a == kStartup) join(clocks_[r.processor()], sent_[{r.processor(), kStart}]);
  }

  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> address_;
  std::set<std::uint64_t> locks_;
  std::array<Clock, 2> clocks_{Clock{1, 0}, Clock{0, 1}};
  std::map<std::uint64_t, Byte> bytes_;
  std::map<std::uint64_t, Clock> synchronized_;
  std::array<std::size_t, 2> destination_{};
  std::map<std::pair<std::size_t, unsigned>, Clock> sent_;
  RaceCounts races_;
};

class SimulatedRaceTests : public TemporaryFolder {
 protected:
  RaceCounts told(const MachineData& data, char form) const {
    using citcat::testing::run_citcat;
    (void)run_citcat({"import", data.path(std::string("bus") + form + ".bin.zst"), "--internal",
                      "0=" + data.path("side.0.csv.zst"), "--internal",
                      "1=" + data.path("side.1.csv.zst"), "-o", path("rec.citcat"), "-q"});
    const auto result = run_citcat(
        {"analyze", path("rec.citcat"), "--tool", "races:top=100000", "--unchecked", "--json"});
    RaceCounts races;
    const auto json = nlohmann::json::parse(result.out);
    for (const auto& row : json.at("races").at("races")) {
      const auto address = [&](const char* column) {
        return std::stoull(row.at(column).get<std::string>(), nullptr, 16);
      };
      races[std::minmax(address("first_instruction"), address("second_instruction"))] =
          row.at("times");
    }
    return races;
  }
};

/// Interrupts by messages, to others and to itself, NMIs and SIPI; locks; bytes of one dword.
TEST_F(SimulatedRaceTests, AreThoseOfTheSimulator) {
  if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
  for (const std::string capture : {"smp_spin32_tiny", "smp_spin64_tiny"}) {
    const MachineData data(shared_file("smp") + "/" + capture);
    const RaceCounts right = SimulatedRaces().of(read_shared_stream(data.path("golden.bin.zst")));
    EXPECT_GT(right.size(), 3u);
    for (const char form : {'A', 'C'}) EXPECT_EQ(told(data, form), right) << capture << form;
  }
}

constexpr PhysAddr kPlace{0x700}, kFlag{0x740};

/// Two processors, or three, that do one thing after the other; each access has an instruction of
/// its own.
class OrderedRaces : public ::testing::Test {
 protected:
  static constexpr std::size_t kProcessors = 3;
  void access(std::uint8_t processor, PhysAddr at, std::uint16_t size, bool write,
              bool locked = false) {
    ProcessorAccess a;
    a.processor = processor;
    a.address = at;
    a.size = size;
    a.write = write;
    a.locked = locked;
    a.instruction = LinearAddr{++number_};
    a.position = {number_, 0};
    all_.push_back([a](MachineListener& to) { to.access(a); });
  }
  void write(std::uint8_t p, PhysAddr at, std::uint16_t size = 4) { access(p, at, size, true); }
  void read(std::uint8_t p, PhysAddr at, std::uint16_t size = 4) { access(p, at, size, false); }
  void lock(std::uint8_t p, PhysAddr at) {
    access(p, at, 4, false, true);
    access(p, at, 4, true, true);
  }
  void send(std::uint8_t from, std::uint16_t signal, unsigned to, bool to_one = false) {
    const ProcessorMessage message{from, signal, ApicReceivers::Set(to), to_one};
    all_.push_back([message](MachineListener& its) { its.message(message); });
  }
  void interrupt(std::uint8_t processor, std::uint16_t signal) {
    all_.push_back([=](MachineListener& to) { to.interrupted(processor, signal); });
  }
  /// How often two accesses raced.
  std::uint64_t times() {
    tools::LockedPlaces locked;
    for (const auto& each : all_) each(locked);
    const Symbols symbols;
    tools::RaceTool races(kProcessors, 100, symbols, locked, true);
    for (const auto& each : all_) each(races);
    tools::Report report;
    races.report(report);
    return tools::report_json(report).at("times");
  }

 private:
  std::uint64_t number_ = 0;
  std::vector<std::function<void(MachineListener&)>> all_;
};

TEST_F(OrderedRaces, AMessageOrdersOnlyWhoItGoesTo) {
  write(0, kPlace);
  send(0, 0x50, 1U << 0);  // to itself
  interrupt(0, 0x50);
  interrupt(1, 0x50);  // its own timer's
  read(1, kPlace);
  EXPECT_EQ(times(), 1u);
  send(0, 0x50, 1U << 1 | 1U << 2);
  interrupt(2, 0x50);
  write(2, kPlace);  // after processor 0's write, and beside processor 1's read
  EXPECT_EQ(times(), 2u);
}

TEST_F(OrderedRaces, OneOfManyTakesALowestPriorityMessage) {
  write(0, kPlace);
  send(0, 0x50, 1U << 1 | 1U << 2, true);
  interrupt(1, 0x50);
  read(1, kPlace);
  EXPECT_EQ(times(), 0u);
  interrupt(2, 0x50);
  read(2, kPlace);
  EXPECT_EQ(times(), 1u);
}

TEST_F(OrderedRaces, BytesOfOneDwordAreDifferentPlaces) {
  write(0, kPlace, 1);
  write(1, kPlace.plus32(1), 1);
  read(2, kPlace.plus32(2), 2);
  EXPECT_EQ(times(), 0u);
  write(2, kPlace.plus32(1), 2);
  EXPECT_EQ(times(), 1u);
  read(0, kPlace);
  EXPECT_EQ(times(), 2u);
}

TEST_F(OrderedRaces, AnAccessOfSeveralWordsRacesOnce) {
  write(0, kPlace.plus32(4), 8);
  write(1, kPlace, 16);
  EXPECT_EQ(times(), 1u);
}

TEST_F(OrderedRaces, APlaceOfLocksIsOneBeforeItsFirstLockedUse) {
  write(0, kPlace);
  write(0, kFlag);
  read(1, kFlag);
  read(1, kPlace);
  EXPECT_EQ(times(), 2u);
  lock(1, kFlag);
  EXPECT_EQ(times(), 0u);
}

}  // namespace
}  // namespace citcat::test
