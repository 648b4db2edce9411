#include "events/packed_events.h"

#include <gtest/gtest.h>

#include <random>

#include "events/external_write.h"
#include "events/internal_read.h"
#include "events/io_reads.h"

namespace citcat {
namespace {

// Makes events of every sort: counts that go back, values wider than their size, any distance.

class RandomEvents {
 public:
  /// Mostly small.
  std::uint64_t number() { return random_() >> (random_() & 63); }
  bool one_in(unsigned n) { return random_() % n == 0; }
  Position position(Position before) {
    before.instruction += one_in(8) ? number() : random_() % 16;
    before.iteration = one_in(4) ? static_cast<std::uint32_t>(number()) : 0;
    return before;
  }
  void make(IoRead& read) {
    read.size = static_cast<std::uint8_t>(1 + random_() % 4);
    read.value = static_cast<std::uint32_t>(number());
    if (one_in(4)) read.port = static_cast<std::uint16_t>(number());
    read.position_known = !one_in(8);
    read.position = position(read.position);
    read.transaction += one_in(4) ? number() : 1;
  }
  void make(InternalRead& read) {
    read.op = static_cast<InternalRead::Op>(random_() % 6);
    read.position_known = !one_in(8);
    read.position = position(read.position);
    if (one_in(4)) read.ip = number();
    read.eax += static_cast<std::uint32_t>(number());
    if (one_in(8)) read.edx = static_cast<std::uint32_t>(number());
    if (one_in(8)) read.ebx = static_cast<std::uint32_t>(number());
    if (one_in(8)) read.ecx = static_cast<std::uint32_t>(number());
  }
  void make(BusAnchor& anchor) {
    if (one_in(3)) anchor.writes += number();
    if (one_in(3)) anchor.io += number();
    if (one_in(3)) anchor.interrupts += number();
    anchor.reads += number();
  }
  void make(ExternalWrite& write) {
    write.address.value = one_in(3) ? number() : write.address.value + write.data.size();
    if (one_in(3)) write.data.resize(random_() % 40);
    for (std::uint8_t& byte : write.data) byte = static_cast<std::uint8_t>(random_());
    write.position_known = !one_in(8);
    write.position = position(write.position);
    make(write.anchor);
    write.window_begin = write.anchor;
    if (one_in(2)) make(write.window_begin);
    write.window_begin.reads -= random_() % 3;
    write.transaction += one_in(4) ? number() : 1;
  }

 private:
  std::mt19937_64 random_{20261125};
};

template <class Events>
class PackedEventsTest : public ::testing::Test {
 protected:
  using Event = typename Events::Event;
  static std::vector<Event> some(std::size_t count) {
    RandomEvents random;
    std::vector<Event> events;
    Event event;
    for (std::size_t i = 0; i < count; ++i) {
      random.make(event);
      events.push_back(event);
    }
    return events;
  }
  static Events packed(const std::vector<Event>& events) { return Events(events); }
};

using Sorts = ::testing::Types<IoReads, InternalReads, ExternalWrites>;
TYPED_TEST_SUITE(PackedEventsTest, Sorts);

TYPED_TEST(PackedEventsTest, GiveWhatWasPutInOneAfterTheOtherAndEachAlone) {
  const auto events = this->some(1000);
  const TypeParam all = this->packed(events);
  ASSERT_EQ(all.size(), events.size());
  std::size_t n = 0;
  for (const auto& event : all) EXPECT_EQ(event, events[n++]);
  EXPECT_EQ(n, events.size());
  PackedCursor<TypeParam> cursor(all);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(all[i], events[i]);
    EXPECT_EQ(cursor[i], events[i]);
    EXPECT_EQ(cursor[i * 7 % events.size()], events[i * 7 % events.size()]);
    EXPECT_EQ(all.from(i).index(), i);
  }
  EXPECT_EQ(all.front(), events.front());
  EXPECT_EQ(all.back(), events.back());
  EXPECT_TRUE(all.from(events.size()) == all.end());
}

TYPED_TEST(PackedEventsTest, AreCutAtEitherEnd) {
  const auto events = this->some(100);
  using Vector = std::vector<typename TypeParam::Event>;
  for (const std::size_t count : {0, 1, 15, 16, 17, 99, 100, 200}) {
    const auto at = static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, events.size()));
    TypeParam kept = this->packed(events);
    kept.truncate(count);
    EXPECT_EQ(kept, this->packed({events.begin(), events.begin() + at}));
    TypeParam rest = this->packed(events);
    EXPECT_EQ(rest.take_first(count), Vector(events.begin(), events.begin() + at));
    EXPECT_EQ(rest, this->packed({events.begin() + at, events.end()}));
    EXPECT_TRUE(rest.empty() || rest.back() == events.back());
  }
}

TYPED_TEST(PackedEventsTest, ChangeLikeAVector) {
  const auto others = this->some(300);
  auto events = this->some(50);
  TypeParam all = this->packed(events);
  PackedCursor<TypeParam> cursor(all);
  for (std::size_t i = 0; i < 50; i += 7) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    EXPECT_EQ(cursor[i], events[i]);
    events[i] = others[100 + i];
    all.replace(i, others[100 + i]);
    EXPECT_EQ(cursor[i], events[i]);
    events.insert(events.begin() + at, others[200 + i]);
    all.insert(i, others[200 + i]);
    EXPECT_EQ(cursor[i], events[i]);
    events.erase(events.begin() + at / 2);
    all.erase(i / 2);
    events.back() = others[i];
    all.change_back([&](auto& event) { event = others[i]; });
    EXPECT_EQ(all, this->packed(events)) << i;
    EXPECT_EQ(all.back(), events.back());
    EXPECT_EQ(cursor[events.size() - 1], events.back());
  }
  for (auto& event : events) event.position.instruction += 3;
  all.change_each([](auto& event) { event.position.instruction += 3; });
  EXPECT_EQ(all, this->packed(events));
  while (events.size() > 1) {
    events.pop_back();
    all.truncate(events.size());
    events.back() = others[events.size()];
    all.change_back([&](auto& event) { event = others[events.size()]; });
    ASSERT_EQ(all, this->packed(events));
  }
}

TYPED_TEST(PackedEventsTest, AreReadOnAfterMoreWereAppended) {
  const auto events = this->some(40);
  TypeParam all;
  PackedCursor<TypeParam> cursor(all);
  auto next = all.begin();
  for (std::size_t i = 0; i < events.size(); ++i) {
    all.push_back(events[i]);
    if (i == 0) {
      next = all.begin();
    } else {
      ++next;
    }
    EXPECT_EQ(*next, events[i]);
    EXPECT_EQ(cursor[i], events[i]);
    all.push_back(all.back());
    all.truncate(i + 1);
    EXPECT_EQ(all.back(), events[i]);
  }
}

/// Counts how often it packs.
struct CountedCodec {
  using Event = ExternalWrite;
  static inline int packed = 0;
  static void pack(const Event& event, const Event& before, PackedWriter& out) {
    ++packed;
    ExternalWriteCodec::pack(event, before, out);
  }
  static void unpack(PackedReader& in, Event& event) { ExternalWriteCodec::unpack(in, event); }
};

TEST(PackedEvents, GrowAtTheEndWithoutBeingPackedAgain) {
  PackedEvents<CountedCodec> events = {ExternalWrite{}, ExternalWrite{}};
  CountedCodec::packed = 0;
  for (int i = 0; i < 1000; ++i) {
    events.change_back([](ExternalWrite& write) { write.data.push_back(1); });
  }
  events.push_back({});
  EXPECT_EQ(CountedCodec::packed, 1);
  EXPECT_EQ(events[1].data.size(), 1000u);
}

TEST(PackedEvents, OfAProgramThatPollsTakeAFewBytesEach) {
  constexpr std::size_t kEvents = 100000;
  IoReads ports;
  InternalReads times;
  ExternalWrites changes;
  IoRead port;
  port.port = 0x1f7;
  InternalRead time;
  time.position_known = true;
  time.ip = 0xc0101234;
  ExternalWrite change;
  change.address = PhysAddr{0x2000};
  change.data = {1, 2};
  std::uint64_t clock = 0x123456789;
  for (std::size_t i = 0; i < kEvents; ++i) {
    port.position.instruction = time.position.instruction = change.position.instruction = 3 * i;
    port.transaction = 2 * i;
    clock += 61 + i * 7919 % 13;
    time.eax = static_cast<std::uint32_t>(clock);
    time.edx = static_cast<std::uint32_t>(clock >> 32);
    time.ecx = static_cast<std::uint32_t>(kEvents - i);
    change.anchor.reads = change.transaction = i + 1;
    change.window_begin.reads = i;
    ports.push_back(port);
    times.push_back(time);
    changes.push_back(change);
  }
  const auto bytes = [](const auto& events) {
    return static_cast<double>(events.stored_bytes()) / kEvents;
  };
  EXPECT_LT(bytes(ports), 5);
  EXPECT_LT(bytes(times), 7);
  EXPECT_LT(bytes(changes), 12);
}

}  // namespace
}  // namespace citcat
