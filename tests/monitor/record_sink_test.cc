// Port accesses in the transfers that a bus of 32 bits makes of them: Embedded Intel486 Processor
// Hardware Reference Manual, table 4-7.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/monitor/bus_test_fixture.h"

namespace citcat::monitor {
namespace {

class RecordSinkTest : public BusTest {};

TEST_F(RecordSinkTest, APortAccessIsSplitAtDwordsAndTheUpperPartComesFirst) {
  struct Case {
    std::uint32_t port;
    unsigned size;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> transfers;  ///< port, value
  };
  const std::vector<Case> cases{
      {0x3d4, 1, {{0x3d4, 0x11}}},
      {0x3d7, 1, {{0x3d7, 0x11}}},
      {0x3d4, 2, {{0x3d4, 0x2211}}},
      {0x3d5, 2, {{0x3d5, 0x2211}}},
      {0x3d6, 2, {{0x3d6, 0x2211}}},
      {0x3d7, 2, {{0x3d8, 0x22}, {0x3d7, 0x11}}},
      {0x3d4, 4, {{0x3d4, 0x44332211}}},
      {0x3d5, 4, {{0x3d8, 0x44}, {0x3d5, 0x332211}}},
      {0x3d6, 4, {{0x3d8, 0x4433}, {0x3d6, 0x2211}}},
      {0x3d7, 4, {{0x3d8, 0x443322}, {0x3d7, 0x11}}},
      {0xffff, 2, {{0x10000, 0x22}, {0xffff, 0x11}}},
  };
  for (const RecordType type : {RecordType::io_read, RecordType::io_write}) {
    for (const Case& c : cases) {
      sink_->port(type, c.port, 0x44332211, c.size);
      std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
      for (const Seen& s : seen()) {
        EXPECT_EQ(s.type, static_cast<int>(type));
        std::uint32_t value = 0;
        for (int i = s.size; i-- > 0;) value = value << 8 | s.data[static_cast<std::size_t>(i)];
        found.emplace_back(s.address, value);
      }
      EXPECT_EQ(found, c.transfers) << std::hex << c.port << ", " << c.size << " bytes";
    }
  }
}

TEST_F(RecordSinkTest, ADroppedTranslationIsSaidWithItsPositionAndItsProcessor) {
  int control[2];
  ASSERT_EQ(pipe2(control, O_NONBLOCK), 0);
  RecordSink sink(write_end_, control[1]);
  const auto said = [&] {
    char text[256];
    const ssize_t size = read(control[0], text, sizeof text);
    return std::string(text, size < 0 ? 0 : static_cast<std::size_t>(size));
  };
  sink.set_position(12, 3);
  sink.say_dropped(0x401000);
  EXPECT_EQ(said(), "value 12,DROPPED,0,00000000,00000003,00401000,00000000\n");
  sink.show_processors();
  sink.select(2);
  sink.set_position(5, 0);
  sink.say_dropped(0xffff800000401000);
  EXPECT_EQ(said(), "value-of 2 5,DROPPED,0,00000000,00000000,ffff800000401000,00000000\n");
  close(control[0]);
  close(control[1]);
}

/// Ports have no upper half, and leave that of memory as it was.
TEST_F(RecordSinkTest, TheUpperHalfOfAddressesIsSaidWhereItChangesInMemory) {
  constexpr PhysicalAddress kFar = 0x2'0000'1000, kElsewhere = 0x5'0000'1000, kNear = 0x1000;
  const std::array<std::uint8_t, 4> bytes{1, 2, 3, 4};
  const auto shown = [&](auto put) {
    const unsigned before = high_records_;
    put();
    const std::vector<Seen> records = seen();
    EXPECT_EQ(records.size(), 1u);
    return std::pair{records.empty() ? 0 : records[0].whole_address, high_records_ - before};
  };
  const auto write = [&](PhysicalAddress at) {
    return shown([&] { sink_->single(RecordType::data_write, at, bytes, 0); });
  };
  using Shown = std::pair<PhysicalAddress, unsigned>;
  EXPECT_EQ(write(kNear), (Shown{kNear, 0}));
  EXPECT_EQ(write(kFar), (Shown{kFar, 1}));
  EXPECT_EQ(write(kFar + 4), (Shown{kFar + 4, 0}));
  EXPECT_EQ(shown([&] { sink_->port(RecordType::io_write, 0x80, 1, 1); }).second, 0u);
  EXPECT_EQ(shown([&] { sink_->event(RecordType::halt, 0, 0); }).second, 0u);
  EXPECT_EQ(shown([&] { sink_->invalidate(kElsewhere, 0); }), (Shown{kElsewhere, 1}));
  EXPECT_EQ(write(kNear), (Shown{kNear, 1}));
}

}  // namespace
}  // namespace citcat::monitor
