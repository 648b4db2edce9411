// decode(generate(x)) == x for every processor bus: 10,000 random lists of transactions each, drawn
// as waveforms by generators that share nothing with the decoders.

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "capture/bus/channel_map.h"
#include "tests/unit/capture/bus/bus_generators.h"

namespace citcat::test {
namespace {

struct BusCase {
  const char* bus;
  TrafficRules rules;
  std::function<std::unique_ptr<Wave>(const Traffic&, Random&)> generate;
  bool split_halves = false;
};

std::ostream& operator<<(std::ostream& out, const BusCase& c) { return out << c.bus; }

unsigned list_count() {
  const char* given = std::getenv("CITCAT_PROPERTY_LISTS");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 10000;
}

/// Some accesses cut at the middle of their word, as 16-bit devices on a 32-bit bus do it.
Traffic split_some(const Traffic& traffic, Random& random) {
  Traffic out;
  for (const BusTransaction& t : traffic) {
    const unsigned low = 2 - std::min(2u, t.address.offset_in(4));
    const bool data = t.is_memory() || t.op == BusOp::io_read || t.op == BusOp::io_write;
    if (!data || low == 0 || t.size <= low || draw(random, 2) == 0) {
      out.push_back(t);
      continue;
    }
    BusTransaction first = t, second = t;
    first.size = static_cast<std::uint8_t>(low);
    second.size = static_cast<std::uint8_t>(t.size - low);
    second.address = t.address.plus32(low);
    for (unsigned i = 0; i < t.size; ++i) {
      if (i >= low) first.data[i] = 0;
      second.data[i] = i < second.size ? t.data[i + low] : std::uint8_t{0};
    }
    out.push_back(first);
    out.push_back(second);
  }
  return out;
}

Traffic decode(Wave& wave, const char* bus) {
  ChannelMap map;
  map.bus = bus;
  const BusMatch match = choose_bus(wave.info(), map, CpuModel::unknown);
  const PinAssignment assignment = assign_pins(match, map);
  const auto decoder = match.bus->make(wave.info(), {*match.bus, assignment});
  Traffic found;
  BusTransaction t;
  SampleBlock block;
  while (wave.next(block)) {
    decoder->decode(block);
    while (decoder->take(t)) found.push_back(t);
  }
  decoder->finish();
  while (decoder->take(t)) found.push_back(t);
  return found;
}

std::string text_of(const BusTransaction& t) {
  std::string text(bus_op_name(t.op));
  char number[64];
  std::snprintf(number, sizeof number, " %08x size %u flags %x:", t.address.u32(), t.size,
                static_cast<unsigned>(t.flags & ~kClockKnown));
  text += number;
  for (const std::uint8_t byte : t.bytes()) {
    std::snprintf(number, sizeof number, " %02x", byte);
    text += number;
  }
  return text;
}

class BusProperty : public testing::TestWithParam<BusCase> {};

TEST_P(BusProperty, DecodingAWaveformGivesTheTransactionsItWasDrawnFrom) {
  const BusCase& bus = GetParam();
  for (unsigned seed = 0; seed < list_count(); ++seed) {
    Random random(seed);
    Traffic traffic = random_traffic(bus.rules, random);
    if (bus.split_halves) traffic = split_some(traffic, random);
    const auto wave = bus.generate(traffic, random);
    Traffic found;
    try {
      found = decode(*wave, bus.bus);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what();
    }
    ASSERT_EQ(found.size(), traffic.size()) << "seed " << seed;
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(text_of(found[i]), text_of(traffic[i])) << "seed " << seed << " number " << i;
  }
}

constexpr TrafficRules kRules8088{.bus_bytes = 1, .address_mask = 0xfffff, .shutdowns = false};
constexpr TrafficRules kRules8086{.bus_bytes = 2, .address_mask = 0xfffff, .shutdowns = false};
constexpr TrafficRules kRules286{.bus_bytes = 2, .address_mask = 0xffffff};
constexpr TrafficRules kRules386sx{.bus_bytes = 2, .address_mask = 0x3ffffff};
constexpr TrafficRules kRules386dx{.bus_bytes = 4, .address_mask = 0xffffffff};
constexpr TrafficRules kRules486{.bus_bytes = 4,
                                 .address_mask = 0xffffffff,
                                 .line_bytes = 16,
                                 .flushes = true,
                                 .uncacheable_reads = true};
constexpr TrafficRules kRulesPentium{.bus_bytes = 8,
                                     .address_mask = 0xffffffff,
                                     .line_bytes = 32,
                                     .line_writes = true,
                                     .flushes = true,
                                     .uncacheable_reads = true};
constexpr TrafficRules traced(TrafficRules rules, unsigned known_to) {
  rules.branch_targets = known_to;
  return rules;
}
auto pentium(Tracing tracing) {
  return [tracing](const Traffic& list, Random& rng) { return draw_pentium(list, tracing, rng); };
}

/// What the pins counted before each acknowledge.
TEST(PulseCounts, OfAcknowledgesAreThoseOfThePinsBeforeThem) {
  for (const Tracing tracing : {Tracing::completions, Tracing::branches}) {
    std::uint64_t interrupts = 0;
    for (unsigned seed = 0; seed < 2000; ++seed) {
      Random random(seed);
      Traffic traffic = random_traffic(kRulesPentium, random);
      std::uint64_t counted = draw(random, 50);
      for (BusTransaction& t : traffic) t.position.instruction = counted += draw(random, 9);
      const auto wave = draw_pentium(traffic, tracing, random);
      const Traffic found = decode(*wave, "pentium");
      ASSERT_EQ(found.size(), traffic.size()) << "seed " << seed;
      for (std::size_t i = 0; i < found.size(); ++i) {
        const bool acknowledge = traffic[i].op == BusOp::interrupt_acknowledge;
        ASSERT_EQ(found[i].has(kPositionKnown), acknowledge) << "seed " << seed;
        if (!acknowledge) continue;
        ++interrupts;
        ASSERT_EQ(found[i].position, traffic[i].position) << "seed " << seed << " number " << i;
      }
    }
    EXPECT_GT(interrupts, 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllBuses, BusProperty,
    testing::Values(
        BusCase{"8088-max", kRules8088,
                [](const Traffic& list, Random& rng) { return draw_8086_max(list, 1, rng); }},
        BusCase{"8086-max", kRules8086,
                [](const Traffic& list, Random& rng) { return draw_8086_max(list, 2, rng); }},
        BusCase{"8088-min", kRules8088,
                [](const Traffic& list, Random& rng) { return draw_8086_min(list, 1, rng); }},
        BusCase{"8086-min", kRules8086,
                [](const Traffic& list, Random& rng) { return draw_8086_min(list, 2, rng); }},
        BusCase{"80286", kRules286, draw_286}, BusCase{"386sx", kRules386sx, draw_386sx},
        BusCase{"386dx", kRules386dx, draw_386dx, true}, BusCase{"486", kRules486, draw_486},
        BusCase{"pentium", traced(kRulesPentium, 1), pentium(Tracing::low_bits)},
        BusCase{"pentium", traced(kRulesPentium, 8), pentium(Tracing::no_low_bits)},
        BusCase{"k5", traced(kRulesPentium, 1), pentium(Tracing::k5)}));

}  // namespace
}  // namespace citcat::test
