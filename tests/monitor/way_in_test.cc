// What is read on the way into a handler, and what ends it: a row for each check of INT n's
// operation (Intel SDM vol. 2, INT n; vol. 3, 6.12.1 and 6.14).

#include "monitor/delivery/way_in.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace citcat::monitor {
namespace {

constexpr std::uint64_t kIdt = 0x1000, kGdt = 0x2000, kTask = 0x3000;
constexpr unsigned kVector = 0x22;

class TableMemory final : public WayInMemory {
 public:
  std::uint64_t read_for_processor(std::uint64_t linear, unsigned size) override {
    reads.push_back(linear);
    std::uint64_t value = 0;
    for (unsigned n = 0; n < size; ++n) value |= std::uint64_t{bytes[linear + n]} << (8 * n);
    return value;
  }
  void put(std::uint64_t at, std::uint64_t value) {
    for (unsigned n = 0; n < 8; ++n) bytes[at + n] = static_cast<std::uint8_t>(value >> (8 * n));
  }
  std::map<std::uint64_t, std::uint8_t> bytes;
  std::vector<std::uint64_t> reads;
};

/// Selectors: 08h code of level 0, 10h data of level 0, 18h code of level 3, 20h conforming code of
/// level 0, 28h code that is not present, 30h data that is not present, 38h data that is read-only,
/// 40h code of 100h bytes. Handlers are at 5000h in 08h. TSS: SS0 10h, ESP0 9000h.
struct Tables {
  Tables() {
    event.vector = kVector;
    event.before.idt_base = kIdt;
    event.before.idt_limit = 0x7ff;
    event.before.gdt_base = kGdt;
    event.before.gdt_limit = 0x4f;
    event.before.tr = {0x48, kTask, 0x67, 0x8b00};
    event.before.segment[2] = {0x10, 0, 0xffffffff, 0xcf9300};
    event.before.gpr[4] = 0x7000;
    gate(0x8e00, 8);
    for (const auto& [at, value] : std::map<unsigned, std::uint64_t>{{0x08, 0x00cf9b000000ffff},
                                                                     {0x10, 0x00cf93000000ffff},
                                                                     {0x18, 0x00cffb000000ffff},
                                                                     {0x20, 0x00cf9f000000ffff},
                                                                     {0x28, 0x00cf1b000000ffff},
                                                                     {0x30, 0x00cf13000000ffff},
                                                                     {0x38, 0x00cf91000000ffff},
                                                                     {0x40, 0x00409b00000000ff}})
      memory.put(kGdt + at, value);
    stack(0x10);
  }
  void gate(std::uint32_t attributes, std::uint32_t selector, std::uint32_t offset = 0x5000) {
    memory.put(kIdt + 8 * kVector, std::uint64_t{(offset & 0xffff0000) | attributes} << 32 |
                                       selector << 16 | (offset & 0xffff));
  }
  void stack(std::uint16_t selector) {
    memory.put(kTask + 4, std::uint64_t{selector} << 32 | 0x9000);
  }

  TableMemory memory;
  LoggedEvent event;
};

struct Row {
  const char* what;
  void (*change)(Tables&);
  std::optional<Refusal> refusal;  ///< of an exception, whose error codes have bit 0 set
  std::size_t reads;
};

const Row kRows[] = {
    {"nothing", [](Tables&) {}, std::nullopt, 4},
    {"a vector behind the IDT", [](Tables& t) { t.event.before.idt_limit = 8 * kVector + 6; },
     Refusal{13, 0x113}, 0},
    {"a call gate", [](Tables& t) { t.gate(0x8c00, 8); }, Refusal{13, 0x113}, 2},
    {"a gate that is not present", [](Tables& t) { t.gate(0x0e00, 8); }, Refusal{11, 0x113}, 2},
    {"a null selector", [](Tables& t) { t.gate(0x8e00, 3); }, Refusal{13, 1}, 2},
    {"a selector behind the GDT", [](Tables& t) { t.gate(0x8e00, 0x50); }, Refusal{13, 0x51}, 2},
    {"a selector of an LDT that is not there", [](Tables& t) { t.gate(0x8e00, 0x0c); },
     Refusal{13, 0x0d}, 2},
    {"a data segment", [](Tables& t) { t.gate(0x8e00, 0x10); }, Refusal{13, 0x11}, 4},
    {"a code segment of an outer level", [](Tables& t) { t.gate(0x8e00, 0x18); }, Refusal{13, 0x19},
     4},
    {"a code segment that is not present", [](Tables& t) { t.gate(0x8e00, 0x28); },
     Refusal{11, 0x29}, 4},
    {"an offset behind its end", [](Tables& t) { t.gate(0x8e00, 0x40, 0x100); }, Refusal{13, 1}, 4},
    {"its last offset", [](Tables& t) { t.gate(0x8e00, 0x40, 0xff); }, std::nullopt, 4},
    {"the unused word of a gate of the 286", [](Tables& t) { t.gate(0x8600, 0x40, 0xffff00ff); },
     std::nullopt, 4},
    {"an inner level", [](Tables& t) { t.event.cpl = 3; }, std::nullopt, 8},
    {"a conforming segment, at which the level stays",
     [](Tables& t) {
       t.event.cpl = 3;
       t.gate(0x8e00, 0x20);
     },
     std::nullopt, 4},
    {"a task segment that ends before the stack",
     [](Tables& t) {
       t.event.cpl = 3;
       t.event.before.tr.limit = 0xa;
     },
     Refusal{10, 0x49}, 4},
    {"a null stack",
     [](Tables& t) {
       t.event.cpl = 3;
       t.stack(0);
     },
     Refusal{10, 1}, 6},
    {"a stack of another level",
     [](Tables& t) {
       t.event.cpl = 3;
       t.stack(0x13);
     },
     Refusal{10, 0x11}, 8},
    {"a stack that may not be written",
     [](Tables& t) {
       t.event.cpl = 3;
       t.stack(0x38);
     },
     Refusal{10, 0x39}, 8},
    {"a stack that is not present",
     [](Tables& t) {
       t.event.cpl = 3;
       t.stack(0x30);
     },
     Refusal{12, 0x31}, 8},
    {"virtual-8086 mode, and a conforming segment",
     [](Tables& t) {
       t.event.cpl = 3;
       t.event.before.eflags = 0x20002;
       t.gate(0x8e00, 0x20);
     },
     Refusal{13, 0x21}, 4},
};

TEST(WayIn, EndsAtTheCheckThatFailsWithWhatWasReadByThen) {
  for (const Row& row : kRows) {
    for (const bool software : {false, true}) {
      Tables t;
      row.change(t);
      t.event.software = software;
      if (software && t.event.cpl == 3)  // gates are of level 0
        t.memory.bytes[kIdt + 8 * kVector + 5] |= 0x60;
      WayIn way(t.memory, t.event, false, 0);
      const auto refusal = way.go();
      ASSERT_EQ(refusal.has_value(), row.refusal.has_value()) << row.what;
      EXPECT_EQ(t.memory.reads.size(), row.reads) << row.what;
      if (!refusal) continue;
      EXPECT_EQ(refusal->vector, row.refusal->vector) << row.what;
      EXPECT_EQ(refusal->error_code, row.refusal->error_code & ~(software ? 1u : 0u)) << row.what;
    }
  }
}

TEST(WayIn, IntNOfAnOuterLevelNeedsAGateOfItsLevel) {
  Tables t;
  t.event.cpl = 3;
  t.event.software = true;
  WayIn way(t.memory, t.event, false, 0);
  const auto refusal = way.go();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->error_code, 0x112u);
  EXPECT_EQ(t.memory.reads.size(), 2u);
}

TEST(WayIn, OfLongModeTakesCodeOf64BitsAndTheInterruptStackTable) {
  const auto refusal_of = [](std::uint64_t code, unsigned stack, std::uint64_t rsp,
                             std::uint64_t upper) {
    Tables t;
    t.event.before.gdt_limit = 0x4f;
    t.event.cpl = 3;
    t.memory.put(kIdt + 16 * kVector, 0x00008e0000085000 | std::uint64_t{stack} << 32);
    t.memory.put(kIdt + 16 * kVector + 8, upper);
    t.memory.put(kGdt + 8, code);
    t.memory.put(kTask + 4, rsp);
    t.memory.put(kTask + 0x24 + 8, rsp);
    WayIn way(t.memory, t.event, true, kTask);
    return way.go();
  };
  constexpr std::uint64_t kCode64 = 0x00af9b000000ffff, kCode32 = 0x00cf9b000000ffff;
  EXPECT_FALSE(refusal_of(kCode64, 0, 0x9000, 0));
  EXPECT_FALSE(refusal_of(kCode64, 2, 0xffff800000009000, 0xffff8000));
  EXPECT_EQ(refusal_of(kCode32, 0, 0x9000, 0)->error_code, 9u);
  EXPECT_EQ(refusal_of(kCode64, 0, 0x800000009000, 0)->vector, 12u);
  EXPECT_EQ(refusal_of(kCode64, 2, 0x800000009000, 0)->vector, 12u);
  EXPECT_EQ(refusal_of(kCode64, 0, 0x9000, 0x8000)->vector, 13u);
}

TEST(WayIn, TwoExceptionsThatContributeAreADoubleFault) {
  // Intel SDM vol. 3, table 6-5.
  EXPECT_EQ(combined(13, {11, 0x1b}).vector, 8u);
  EXPECT_EQ(combined(0, {13, 1}).vector, 8u);
  EXPECT_EQ(combined(14, {14, 2}).vector, 8u);
  EXPECT_EQ(combined(14, {13, 1}).vector, 8u);
  EXPECT_EQ(combined(13, {14, 2}).vector, 14u);
  EXPECT_EQ(combined(6, {13, 1}).vector, 13u);
  EXPECT_EQ(combined(13, {11, 0x1b}).error_code, 0u);
}

}  // namespace
}  // namespace citcat::monitor
