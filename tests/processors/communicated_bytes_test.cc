// What `sharing` says that processors communicate is what an independent simulator's accesses, all
// of them in one order, make it: operands, what deliveries of interrupts read and write, and page
// walks.

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "golden/process.h"
#include "processors/shared_stream.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using Routes = std::array<std::uint64_t, 2>;  ///< bytes from processor 0 to 1, and from 1 to 0

/// Bytes that one reads and the other wrote last, each once.
Routes routes_of_simulator(const std::string& path) {
  constexpr std::uint8_t kOperand = 0, kWalk = 1, kWrite = 1;
  struct Written {
    std::size_t by = 0;
    bool told = false;
  };
  std::unordered_map<std::uint64_t, Written> memory;
  Routes routes{};
  for (const SharedStreamRecord& r : read_shared_stream(path)) {
    if (!r.is_access() || (r.c != kOperand && r.c != kWalk)) continue;
    for (std::uint64_t a = r.d; a < std::uint64_t{r.d} + r.a; ++a) {
      if (r.b == kWrite) {
        memory[a] = {r.processor(), false};
        continue;
      }
      const auto written = memory.find(a);
      if (written == memory.end() || written->second.by == r.processor()) continue;
      if (!written->second.told) ++routes.at(written->second.by);
      written->second.told = true;
    }
  }
  return routes;
}

class CommunicatedBytes : public TemporaryFolder {
 protected:
  Routes routes_told(const MachineData& data) const {
    using citcat::testing::run_citcat;
    (void)run_citcat({"import", data.path("busA.bin.zst"), "--internal",
                      "0=" + data.path("side.0.csv.zst"), "--internal",
                      "1=" + data.path("side.1.csv.zst"), "-o", path("rec.citcat"), "-q"});
    const auto told =
        run_citcat({"analyze", path("rec.citcat"), "--tool", "sharing", "--unchecked", "--json"});
    Routes routes{};
    const auto json = nlohmann::json::parse(told.out);
    for (const auto& row : json.at("sharing").at("routes"))
      routes.at(row.at("route") == "0->1" ? 0 : 1) = row.at("bytes");
    return routes;
  }
};

TEST_F(CommunicatedBytes, AreThoseOfTheSimulator) {
  if (shared_file("smp").empty()) GTEST_SKIP() << "without the shared captures";
  const char* const wanted = std::getenv("CITCAT_ACCEPTANCE");
  std::vector<std::string> captures{"smp_spin32_tiny"};
  if (wanted != nullptr && std::strcmp(wanted, "full") == 0)
    captures.insert(captures.end(), {"smp_spin64_tiny", "smp_lin64_poke", "smp_lin64_threads"});
  for (const std::string& capture : captures) {
    const MachineData data(shared_file("smp") + "/" + capture);
    const Routes right = routes_of_simulator(data.path("golden.bin.zst"));
    EXPECT_GT(right[0], 100u);
    EXPECT_EQ(routes_told(data), right) << capture;
  }
}

}  // namespace
}  // namespace citcat::test
