// Listings as analysers print them, one line a bus cycle: random traffic written as text comes
// back.

#include <gtest/gtest.h>

#include <fstream>

#include "capture/bus/source.h"
#include "tests/unit/capture/bus/bus_generators.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

struct Listing {
  const char* bus;
  TrafficRules rules;
  unsigned address_digits;
  const char* map;
  unsigned (*status)(BusOp op);
};

std::string hexadecimal(std::uint64_t value, unsigned digits) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*llX", static_cast<int>(digits),
                static_cast<unsigned long long>(value));
  return text;
}

class StateListing : public test::TemporaryFolder, public testing::WithParamInterface<Listing> {
 protected:
  void write_line(std::ostream& out, std::uint32_t address, unsigned enables, std::uint64_t data,
                  unsigned status) {
    out << line_++ << "," << hexadecimal(address, GetParam().address_digits) << ","
        << hexadecimal(data, 2 * GetParam().rules.bus_bytes) << "," << hexadecimal(status, 2) << ","
        << hexadecimal(~enables & 15, 1) << ",\"disassembly\"\n";
  }

  void write_transaction(std::ostream& out, const BusTransaction& t, Random& random) {
    const unsigned bus = GetParam().rules.bus_bytes;
    const unsigned status = GetParam().status(t.op);
    if (t.op == BusOp::interrupt_acknowledge) {
      write_line(out, 4, 1, 0x55, status);
      write_line(out, 0, 1, t.data[0], status);
    } else if (!t.is_memory() && t.op != BusOp::io_read && t.op != BusOp::io_write) {
      const unsigned flush = t.data[0] == 1 ? 2 : 8;
      write_line(out, 0, t.op == BusOp::halt ? 4 : t.op == BusOp::shutdown ? 1 : flush, 0, status);
    } else {
      std::uint64_t data = random() & (bus == 1 ? 0xff : 0xffffffff);
      const unsigned lane = t.address.low32() & (bus - 1);
      for (unsigned i = 0; i < t.size; ++i) {
        const unsigned shift = 8 * (lane + i);
        data = (data & ~(std::uint64_t{0xff} << shift)) | std::uint64_t{t.data[i]} << shift;
      }
      write_line(out, t.address.low32() & ~(bus - 1), ((1u << t.size) - 1) << lane, data, status);
    }
  }

  unsigned line_ = 0;
};

TEST_P(StateListing, GivesTheTransactionsItWasWrittenFrom) {
  Random random(1);
  std::vector<BusTransaction> traffic;
  while (traffic.size() < 500)
    for (const BusTransaction& t : random_traffic(GetParam().rules, random)) traffic.push_back(t);
  std::ofstream out(path("listing.csv"));
  out << "State Number,ADDR,DATA,STAT,BE,Mnemonic\n";
  for (const BusTransaction& t : traffic) write_transaction(out, t, random);
  out.close();
  CaptureOptions options;
  options.channel_map_path = path("map.json");
  store("map.json", GetParam().map);
  const auto capture = open_capture({path("listing.csv")}, options);
  BusTransaction t;
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    ASSERT_TRUE(capture->next(t)) << i;
    ASSERT_EQ(t.op, traffic[i].op) << i;
    ASSERT_EQ(t.address, traffic[i].address) << i;
    ASSERT_EQ(t.size, traffic[i].size) << i;
    ASSERT_EQ(t.data, traffic[i].data) << i;
  }
  EXPECT_FALSE(capture->next(t));
}

INSTANTIATE_TEST_SUITE_P(
    Buses, StateListing,
    testing::Values(Listing{"8088",
                            {.bus_bytes = 1, .address_mask = 0xfffff, .shutdowns = false},
                            5,
                            R"({"bus": "8088-states", "lanes": {"A": "ADDR", "D": "DATA"},
                    "pins": {"S0": "STAT0", "S1": "STAT1", "S2": "STAT2"}})",
                            status_8086},
                    Listing{
                        "486",
                        {.bus_bytes = 4, .address_mask = 0xffffffff, .flushes = true},
                        8,
                        R"({"bus": "486-states", "lanes": {"A": "ADDR", "D": "DATA", "BE": "BE"},
                    "pins": {"WR": "STAT0", "DC": "STAT1", "MIO": "STAT2"}})",
                        definition_486}),
    [](const auto& test) { return std::string("I") + test.param.bus; });

}  // namespace
}  // namespace citcat::test
