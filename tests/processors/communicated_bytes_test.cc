// The bytes that `sharing`, the tool and the table, says processors communicate equal those
// computed from the accesses of an independent simulator, all in one order: operands, deliveries of
// interrupts, and page walks.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "golden/process.h"
#include "processors/shared_stream.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using Routes = std::array<std::uint64_t, 2>;  ///< bytes from processor 0 to 1, and from 1 to 0

/// The processor that reads, its position, and the position at which the other one wrote.
using Moment = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
/// Bytes that one reads and the other wrote last, each once.
using Moments = std::map<Moment, std::uint64_t>;

Moments moments_of_simulator(const std::string& path) {
  constexpr std::uint8_t kOperand = 0, kWalk = 1, kWrite = 1;
  struct Written {
    std::size_t by = 0;
    std::uint64_t at = 0;
    bool told = false;
  };
  std::unordered_map<std::uint64_t, Written> memory;
  Moments moments;
  for (const SharedStreamRecord& r : read_shared_stream(path)) {
    if (!r.is_access() || (r.c != kOperand && r.c != kWalk)) continue;
    for (std::uint64_t a = r.d; a < std::uint64_t{r.d} + r.a; ++a) {
      if (r.b == kWrite) {
        memory[a] = {r.processor(), r.instruction, false};
        continue;
      }
      const auto written = memory.find(a);
      if (written == memory.end() || written->second.by == r.processor()) continue;
      if (!written->second.told) ++moments[{r.processor(), r.instruction, written->second.at}];
      written->second.told = true;
    }
  }
  return moments;
}

Routes routes_of(const Moments& moments) {
  Routes routes{};
  for (const auto& [moment, bytes] : moments) routes.at(1 - std::get<0>(moment)) += bytes;
  return routes;
}

/// Pairs of instructions that race, and how often.
using Races = std::map<std::pair<std::string, std::string>, std::uint64_t>;

class CommunicatedBytes : public TemporaryFolder {
 protected:
  void import(const MachineData& data, char form) const {
    using citcat::testing::run_citcat;
    (void)run_citcat({"import", data.path(std::string("bus") + form + ".bin.zst"), "--internal",
                      "0=" + data.path("side.0.csv.zst"), "--internal",
                      "1=" + data.path("side.1.csv.zst"), "-o", path("rec.citcat"), "-q"});
  }
  nlohmann::json told(const MachineData& data, char form, const std::string& tool) const {
    import(data, form);
    using citcat::testing::run_citcat;
    const auto result =
        run_citcat({"analyze", path("rec.citcat"), "--tool", tool, "--unchecked", "--json"});
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out);
  }
  Routes routes_told(const MachineData& data, char form) const {
    const auto json = told(data, form, "sharing");
    Routes routes{};
    for (const auto& row : json.at("sharing").at("routes"))
      routes.at(row.at("route") == "0->1" ? 0 : 1) = row.at("bytes");
    return routes;
  }
  Moments moments_queried(const MachineData& data, char form) const {
    import(data, form);
    using citcat::testing::run_citcat;
    const auto result =
        run_citcat({"sql", path("rec.citcat"), "--unchecked", "--json",
                    "select processor, position, writer_position, sum(size) bytes from sharing "
                    "group by 1, 2, 3"});
    EXPECT_EQ(result.err, "");
    Moments moments;
    for (const auto& row : nlohmann::json::parse(result.out)) {
      moments[{row.at("processor"), row.at("position"), row.at("writer_position")}] =
          row.at("bytes");
    }
    return moments;
  }
  Races races_told(const MachineData& data, char form) const {
    const auto json = told(data, form, "races:top=100000");
    Races races;
    for (const auto& row : json.at("races").at("races")) {
      const std::string a = row.at("first_instruction"), b = row.at("second_instruction");
      races[std::minmax(a, b)] = row.at("times");
    }
    return races;
  }
};

std::vector<std::string> compared_captures() {
  const char* const wanted = std::getenv("CITCAT_ACCEPTANCE");
  if (wanted != nullptr && std::strcmp(wanted, "full") == 0)
    return {"smp_spin32_tiny", "smp_spin64_tiny", "smp_lin64_poke", "smp_lin64_threads"};
  return {"smp_spin32_tiny"};
}

TEST_F(CommunicatedBytes, AreThoseOfTheSimulator) {
  if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
  for (const std::string& capture : compared_captures()) {
    const MachineData data(shared_file("smp") + "/" + capture);
    const Moments moments = moments_of_simulator(data.path("golden.bin.zst"));
    const Routes right = routes_of(moments);
    EXPECT_GT(right[0], 100u);
    // Behind caches most accesses are not on the bus, and conflict in the same order all the same.
    for (const char form : {'A', 'C'}) {
      EXPECT_EQ(routes_told(data, form), right) << capture << form;
      EXPECT_EQ(moments_queried(data, form), moments) << capture << form;
    }
  }
}

/// Without caches every access has its place on the bus. Behind caches the same ones race.
TEST_F(CommunicatedBytes, RaceBehindCachesAsWithoutThem) {
  if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
  for (const std::string& capture : compared_captures()) {
    const MachineData data(shared_file("smp") + "/" + capture);
    const Races right = races_told(data, 'A');
    EXPECT_GT(right.size(), 5u);
    EXPECT_EQ(races_told(data, 'C'), right) << capture;
  }
}

}  // namespace
}  // namespace citcat::test
