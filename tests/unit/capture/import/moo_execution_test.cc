// Tests of the 8086 and its relatives as captures: a queue that is filled before the first row, and
// looked at behind the last one.

#include "capture/import/moo_execution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "capture/import/moo_capture.h"
#include "formats/io/error.h"
#include "tests/unit/capture/moo_builder.h"
#include "tests/unit/capture/shared_data.h"

namespace citcat {
namespace {

using test::MooRow;
using test::MooTestOf8086;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// MooRow::queue, MooRow::bus.
constexpr std::uint8_t kFirst = 1, kNext = 3;
constexpr std::uint8_t kWrite = 4, kCode = 6;

MooTest read(const std::string& processor, const MooTestOf8086& one) {
  const std::string bytes = test::moo_file(processor, {one.bytes()});
  return parse_moo({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "t.MOO")
      .tests.at(0);
}

/// MOV [BX],AL at 1000:0101, which fills the queue with one byte and two words; the cycle of its
/// store, and the fetch that follows.
MooTestOf8086 store_of_8086() {
  MooTestOf8086 one;
  one.cs = 0x1000;
  one.ip = 0x0101;
  one.ds = 0x2000;
  one.queue = {'\x88', '\x07', '\x90', '\x90', '\x90'};
  one.last_queue = {'\x90', '\x90', '\x90', '\x90'};
  one.rows = {
      {.queue = kFirst, .queue_byte = 0x88},
      {.queue = kNext, .queue_byte = 0x07},
      {.address = 0x10106, .pins1 = 0, .bus = kCode, .t_state = 1},
      {.pins1 = 0, .bus = kCode, .t_state = 2},
      {.pins1 = 0, .data = 0x9090, .t_state = 3},
      {.t_state = 4},
      {.address = 0x20000, .pins1 = 1, .bus = kWrite, .t_state = 1},
      {.bus = kWrite, .t_state = 2},
      {.data = 0x5a5a, .t_state = 3},
  };
  return one;
}

std::vector<BusTransaction> of(const std::vector<BusTransaction>& all, BusOp op) {
  std::vector<BusTransaction> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found),
               [&](const BusTransaction& t) { return t.op == op; });
  return found;
}

TEST(MooExecution, BeginsWithFetchesOfWhatTheQueueHolds) {
  const auto all = executed_transactions(read("8086", store_of_8086()), CpuModel::i8086, 2);
  const auto fetches = of(all, BusOp::code_read);
  ASSERT_EQ(fetches.size(), 4u);
  EXPECT_EQ(fetches[0].address.value, 0x10101u);
  EXPECT_THAT(fetches[0].bytes(), ElementsAre(0x88));
  EXPECT_EQ(fetches[1].address.value, 0x10102u);
  EXPECT_THAT(fetches[1].bytes(), ElementsAre(0x07, 0x90));
  EXPECT_THAT(fetches[2].bytes(), ElementsAre(0x90, 0x90));
  EXPECT_EQ(fetches[3].address.value, 0x10106u);
  EXPECT_EQ(fetches[3].clock, 2u);
}

TEST(MooExecution, TellsTheInstructionAndTheOneBehindIt) {
  const auto starts = of(executed_transactions(read("8086", store_of_8086()), CpuModel::i8086, 2),
                         BusOp::instruction_start);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].position, (Position{0, 0}));
  EXPECT_THAT(starts[0].bytes(), ElementsAre(0x88, 0x07));
  EXPECT_EQ(starts[1].position, (Position{1, 0}));
  EXPECT_EQ(starts[1].address.value, 0x10103u);
}

TEST(MooExecution, ByteEnablesChooseTheLanes) {
  MooTestOf8086 one = store_of_8086();
  one.rows[6].address = 0x20001;
  one.rows[6].pins1 = 0;
  one.rows[8].data = 0x1234;
  const auto odd =
      of(executed_transactions(read("8086", one), CpuModel::i8086, 2), BusOp::data_write);
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].address.value, 0x20001u);
  EXPECT_THAT(odd[0].bytes(), ElementsAre(0x12));
  one.rows[6].address = 0x20000;
  const auto word =
      of(executed_transactions(read("8086", one), CpuModel::i8086, 2), BusOp::data_write);
  EXPECT_THAT(word.at(0).bytes(), ElementsAre(0x34, 0x12));
  one.rows[6].address = 0x20001;
  one.rows[6].pins1 = 1;
  EXPECT_THROW(executed_transactions(read("8086", one), CpuModel::i8086, 2), FormatError);
}

TEST(MooExecution, ACycleThatTheRowsCutOffIsLeftOut) {
  MooTestOf8086 one = store_of_8086();
  one.rows.pop_back();
  EXPECT_TRUE(
      of(executed_transactions(read("8086", one), CpuModel::i8086, 2), BusOp::data_write).empty());
}

TEST(MooExecution, WaitStatesDelayTheData) {
  MooTestOf8086 one = store_of_8086();
  one.rows[8] = {.data = 0x1111, .bus = kWrite, .t_state = 3};
  one.rows.push_back({.data = 0x5a5a, .t_state = 5});
  const auto written =
      of(executed_transactions(read("8086", one), CpuModel::i8086, 2), BusOp::data_write);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_THAT(written[0].bytes(), ElementsAre(0x5a));
}

// The first of the suites for the 8088 begin where the first byte has just been taken and the fetch
// of the second one is going on.
TEST(MooExecution, MayBeginWithinAFetchAndAnEmptyQueue) {
  MooTestOf8086 one;
  one.cs = 0x1000;
  one.ip = 0x0100;
  one.ds = 0x2000;
  one.has_queue = false;
  one.rows = {
      {.address = 0x10101, .bus = kCode, .t_state = 2, .queue = kFirst, .queue_byte = 0x88},
      {.address = 0x10101, .data = 0x07, .t_state = 3},
      {.t_state = 4},
      {.address = 0x10102, .bus = kCode, .t_state = 1, .queue = kNext, .queue_byte = 0x07},
      {.bus = kCode, .t_state = 2},
      {.data = 0x90, .t_state = 3},
  };
  const auto all = executed_transactions(read("8088", one), CpuModel::i8088, 1);
  const auto fetches = of(all, BusOp::code_read);
  ASSERT_EQ(fetches.size(), 3u);
  EXPECT_EQ(fetches[0].address.value, 0x10100u);
  EXPECT_EQ(fetches[1].address.value, 0x10101u);
  EXPECT_THAT(fetches[1].bytes(), ElementsAre(0x07));
  EXPECT_EQ(of(all, BusOp::instruction_start).size(), 2u);
}

TEST(MooExecution, RefusesAQueueThatTheRowsDoNotLeave) {
  MooTestOf8086 one = store_of_8086();
  one.last_queue = {'\x90', '\x90', '\x90'};
  try {
    executed_transactions(read("8086", one), CpuModel::i8086, 2);
    FAIL() << "nothing thrown";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("expected the queue that the rows leave (90h 90h 90h 90h)"));
  }
}

TEST(MooExecution, AFetchThatTheLastRowCompletesHasNotReachedTheQueue) {
  MooTestOf8086 one = store_of_8086();
  one.rows.resize(5);
  one.last_queue = {'\x90', '\x90'};
  EXPECT_EQ(
      of(executed_transactions(read("8086", one), CpuModel::i8086, 2), BusOp::code_read).size(),
      4u);
}

TEST(MooExecution, RefusesAByteThatWasNotFetched) {
  MooTestOf8086 one = store_of_8086();
  one.rows[1].queue_byte = 0x17;
  EXPECT_THROW(executed_transactions(read("8086", one), CpuModel::i8086, 2), FormatError);
}

TEST(MooExecution, TheStateSaysThatThereIsNoCoprocessor) {
  const MooTest one = read("8086", store_of_8086());
  EXPECT_EQ(initial_state_of(one, MooCpu::i8086).model, CpuModel::i8086);
  EXPECT_NE(initial_state_of(one, MooCpu::i8086).cr0 & kNoCoprocessor, 0u);
}

// The processor's own record: what it left in memory is what it wrote on the bus, and everything it
// fetched or had fetched is in the memory before.
TEST(MooExecution, AgreesWithMemoryBeforeAndAfterEveryTestOfAn8086) {
  const std::string folder = test::shared_file("moo/8086-real");
  if (folder.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  std::size_t tests = 0, written = 0, fetched = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().find(".MOO") == std::string::npos) continue;
    const MooFile file = read_moo(entry.path());
    EXPECT_EQ(file.cpu, MooCpu::i8086);
    for (const MooTest& one : file.tests) {
      std::map<std::uint32_t, std::uint8_t> before, after;
      for (const MooByte& byte : one.initial.ram) before[byte.address] = byte.value;
      after = before;
      for (const BusTransaction& t : transactions_of(one, file.cpu)) {
        for (std::uint32_t i = 0; i < t.size; ++i) {
          const std::uint32_t at = t.address.low32() + i;
          if (t.op == BusOp::data_write) after[at] = t.data[i];
          if (t.op != BusOp::code_read || before.count(at) == 0) continue;
          ++fetched;
          // Behind the instruction the rig answers with NOP, whatever memory holds.
          const bool is_filler = t.data[i] == 0x90;
          ASSERT_TRUE(is_filler || before[at] == t.data[i]) << entry.path() << " " << one.name;
        }
        if (t.op == BusOp::data_write) ++written;
      }
      for (const MooByte& byte : one.final.ram) {
        ASSERT_EQ(after[byte.address], byte.value) << entry.path() << " " << one.name;
      }
      ++tests;
    }
  }
  EXPECT_GT(tests, 9000u);
  EXPECT_GT(written, 1000u);
  EXPECT_GT(fetched, 20000u);
}

}  // namespace
}  // namespace citcat
