// Traces for other programs, one for each processor: sorted by the time that they tell, they are in
// the order in which an independent simulator ran the instructions.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <vector>

#include "golden/process.h"
#include "processors/shared_stream.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/drmemtrace_reader.h"

namespace citcat::test {
namespace {

using citcat::testing::ProcessResult;
using citcat::testing::run_citcat;
using drmemtrace::DrInstruction;
using drmemtrace::DrTrace;

constexpr std::size_t kProcessors = 2;

/// The last accesses to a dword, as places in the simulator's order.
struct LastAccesses {
  std::uint64_t write = 0;
  std::array<std::uint64_t, kProcessors> read{};
};

class ExportedOrder : public ::testing::TestWithParam<std::string> {
 protected:
  MachineData data() const { return MachineData(shared_file("smp") + "/" + GetParam()); }

  void SetUp() override {
    good({"import", data().path("busA.bin.zst"), "--internal", "0=" + data().path("side.0.csv.zst"),
          "--internal", "1=" + data().path("side.1.csv.zst"), "-o", "two.citcat"});
  }
  /// The traces of both, in one folder.
  DrTrace exported() const {
    good({"replay", "two.citcat", "-o", "run.drmemtrace"});
    return drmemtrace::read_drmemtrace(folder_.path() / "run.drmemtrace");
  }
  std::string file(const std::string& name) const {
    return citcat::testing::read_file(folder_.path() / name);
  }
  void good(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run_citcat(arguments, folder_.path());
    ASSERT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.err << result.out;
  }

 private:
  citcat::testing::TemporaryFolder folder_;
};

/// Where the simulator has each instruction: that of a processor at an address, behind the last.
class SimulatorOrder {
 public:
  explicit SimulatorOrder(const std::string& path) : records_(read_shared_stream(path)) {}

  /// 0: it has none.
  std::uint64_t next(std::size_t processor, std::uint64_t address) {
    std::size_t& at = at_[processor];
    for (; at < records_.size(); ++at) {
      const SharedStreamRecord& r = records_[at];
      if (r.is_instruction() && r.processor() == processor && r.linear == address) return ++at;
    }
    return 0;
  }

 private:
  std::vector<SharedStreamRecord> records_;
  std::array<std::size_t, kProcessors> at_{};
};

TEST_P(ExportedOrder, OfDrmemtraceIsThatOfTheSimulator) {
  const DrTrace trace = exported();
  EXPECT_TRUE(trace.problems.empty()) << trace.problems.front();
  SimulatorOrder order(data().path("golden.bin.zst"));
  std::map<std::uint64_t, LastAccesses> dwords;
  std::array<std::uint64_t, kProcessors> instructions{};
  std::uint64_t conflicts = 0;
  for (const DrInstruction& i : trace.instructions) {
    if (!i.fetched()) continue;
    ASSERT_LT(i.cpu, kProcessors);
    ++instructions[i.cpu];
    const std::uint64_t now = order.next(i.cpu, i.address);
    ASSERT_NE(now, 0U) << i.cpu << " " << std::hex << i.address;
    for (const DrInstruction::Access& access : i.accesses) {
      LastAccesses& last = dwords[access.address / 4];
      EXPECT_LE(last.write, now) << "processor " << i.cpu << " at " << std::hex << i.address;
      if (!access.write) {
        last.read[i.cpu] = now;
        continue;
      }
      const std::uint64_t other = last.read[1 - i.cpu];
      EXPECT_LE(other, now) << "processor " << i.cpu << " at " << std::hex << i.address;
      if (other != 0) ++conflicts;
      last.write = now;
    }
  }
  for (const std::uint64_t count : instructions) EXPECT_GT(count, 20000U);
  EXPECT_GT(conflicts, 100U);
}

/// What a file for Perfetto says of its time (protos/perfetto/trace/trace_packet.proto).
struct TimeLine {
  std::set<std::uint32_t> sequences;
  std::set<std::uint64_t> tracks;
  std::uint64_t last = 0;
  bool goes_back = false;
};

void read_packet(protozero::pbf_reader packet, TimeLine& line) {
  constexpr protozero::pbf_tag_type kTimestamp = 8, kSequence = 10, kDescriptor = 60, kUuid = 1;
  while (packet.next()) {
    if (packet.tag() == kTimestamp) {
      const std::uint64_t time = packet.get_uint64();
      line.goes_back |= time < line.last;
      line.last = time;
    } else if (packet.tag() == kSequence) {
      line.sequences.insert(packet.get_uint32());
    } else if (packet.tag() == kDescriptor) {
      protozero::pbf_reader track = packet.get_message();
      if (track.next(kUuid)) line.tracks.insert(track.get_uint64());
    } else {
      packet.skip();
    }
  }
}

TimeLine read_time_line(const std::string& bytes) {
  constexpr protozero::pbf_tag_type kPacket = 1;
  TimeLine line;
  protozero::pbf_reader trace(bytes);
  while (trace.next(kPacket)) read_packet(trace.get_message(), line);
  return line;
}

TEST_P(ExportedOrder, OfPerfettoIsByTheClockOfTheBus) {
  good({"replay", "two.citcat", "-o", "run.perfetto-trace"});
  const std::vector<MonitorRecord> records = data().records('A');
  std::set<std::uint32_t> sequences;
  std::set<std::uint64_t> tracks;
  std::size_t all_tracks = 0;
  for (const char* const name : {"run.0.perfetto-trace", "run.1.perfetto-trace"}) {
    const TimeLine line = read_time_line(file(name));
    EXPECT_FALSE(line.goes_back) << name;
    // Both run to the end of the capture, give or take a few clocks of the bus.
    EXPECT_NEAR(static_cast<double>(line.last), records.back().clk, 0.02 * records.back().clk)
        << name;
    sequences.insert(line.sequences.begin(), line.sequences.end());
    tracks.insert(line.tracks.begin(), line.tracks.end());
    all_tracks += line.tracks.size();
  }
  EXPECT_EQ(sequences.size(), kProcessors);
  EXPECT_EQ(tracks.size(), all_tracks);
}

std::vector<std::string> small_captures() {
  if (shared_file("smp").empty()) return {};
  return {"smp_spin32_tiny", "smp_spin64_tiny"};
}

INSTANTIATE_TEST_SUITE_P(, ExportedOrder, ::testing::ValuesIn(small_captures()),
                         [](const auto& capture) { return capture.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExportedOrder);

}  // namespace
}  // namespace citcat::test
