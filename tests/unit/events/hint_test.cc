#include "events/hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/io/error.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;

Hint hint_of(Hint::Kind kind) {
  Hint hint;
  hint.kind = kind;
  return hint;
}

/// One of every kind, each with all that it may say.
std::vector<Hint> all_kinds() {
  std::vector<Hint> hints;
  Hint h = hint_of(Hint::Kind::memory);
  h.address.value = 0x12345;
  h.data = {0xb2};
  h.because = "read wrongly";
  hints.push_back(h);
  h = hint_of(Hint::Kind::register_value);
  h.name = "eax";
  h.value = 0xffffffff;
  hints.push_back(h);
  for (const Hint::Kind kind :
       {Hint::Kind::external_write, Hint::Kind::added_captured_write, Hint::Kind::result}) {
    h = hint_of(kind);
    h.position = {77, 3};
    h.transaction = 9;
    h.address.value = 0xfffffffe;
    h.data = {1, 2};
    hints.push_back(h);
  }
  hints.back().write_back = true;
  h = hint_of(Hint::Kind::no_external_write);
  h.transaction = 9;
  h.address.value = 4;
  hints.push_back(h);
  h = hint_of(Hint::Kind::port_read);
  h.transaction = 5;
  h.value = 0x61;
  hints.push_back(h);
  h = hint_of(Hint::Kind::internal_read);
  h.position = {5, 0};
  h.value = std::uint64_t{1} << 40;
  hints.push_back(h);
  h.number = 0;
  hints.push_back(h);
  h = hint_of(Hint::Kind::interrupt);
  h.transaction = 6;
  h.position = {8, 0};
  h.value = 8;
  hints.push_back(h);
  h.kind = Hint::Kind::added_interrupt;
  h.name = "nmi";
  hints.push_back(h);
  for (const Hint::Kind kind : {Hint::Kind::no_interrupt, Hint::Kind::no_captured_write}) {
    h = hint_of(kind);
    h.transaction = 6;
    hints.push_back(h);
  }
  h = hint_of(Hint::Kind::captured_write);
  h.transaction = 6;
  h.address.value = 0x10;
  h.data = {3};
  hints.push_back(h);
  return hints;
}

TEST(HintFile, ComesBackAsItWasWritten) {
  const HintFile file{"00112233445566778899aabbccddeeff", all_kinds()};
  const HintFile read = parse_hints(hints_text(file), "h.json");
  EXPECT_EQ(read.recording, file.recording);
  EXPECT_EQ(read.hints, file.hints);
}

TEST(HintFile, SaysWhereItIsWrong) {
  const auto refusal = [](const std::string& text) {
    try {
      parse_hints(text, "h.json");
    } catch (const FormatError& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refusal("{\"citcat_hints\": 1, \"hints\": ["), HasSubstr("h.json:30: expected JSON"));
  EXPECT_THAT(refusal("{\"hints\": []}"), HasSubstr("expected a file of hints"));
  EXPECT_THAT(refusal("{\"citcat_hints\": 2, \"hints\": []}"), HasSubstr("version 1"));
  EXPECT_THAT(refusal("{\"citcat_hints\": 1, \"hints\": [{\"kind\": \"guess\"}]}"),
              HasSubstr("\"kind\": expected a kind of hint, found guess"));
  EXPECT_THAT(refusal("{\"citcat_hints\": 1, \"hints\": [{\"kind\": \"memory\", \"address\": "
                      "\"0x10000000000000\", \"data\": \"00\"}]}"),
              HasSubstr("\"address\": expected a number of 52 bits"));
  EXPECT_THAT(refusal("{\"citcat_hints\": 1, \"hints\": [{\"kind\": \"memory\", \"address\": 1, "
                      "\"data\": \"0\"}]}"),
              HasSubstr("two hexadecimal digits"));
}

Recording some_recording() {
  Recording r;
  r.image.set(PhysAddr{0x12345}, 0xb0);
  Interrupt interrupt;
  interrupt.vector = 9;
  interrupt.position_known = true;
  interrupt.position = {4, 0};
  interrupt.transaction = 6;
  r.interrupts.push_back(interrupt);
  ExternalWrite w;
  w.address.value = 4;
  w.data = {7};
  w.position_known = true;
  w.position = {3, 0};
  w.transaction = 9;
  r.external_writes.push_back(w);
  IoRead read;
  read.value = 0x60;
  read.transaction = 5;
  r.io_reads.push_back(read);
  InternalRead counter;
  counter.op = InternalRead::Op::rdpmc;
  r.internal_reads.push_back(counter);
  return r;
}

TEST(Hint, ChangesTheRecordingAndTakesItBack) {
  for (const Hint& hint : all_kinds()) {
    if (hint.concerns_evidence()) continue;
    SCOPED_TRACE(std::string(hint_kind_name(hint.kind)));
    Recording r = some_recording();
    const auto take_back = apply_hint(hint, r);
    const Recording before = some_recording();
    const auto same = [&] {
      return r.image.byte(PhysAddr{0x12345}) == before.image.byte(PhysAddr{0x12345}) &&
             r.initial == before.initial && r.interrupts.size() == before.interrupts.size() &&
             r.interrupts.front().position == before.interrupts.front().position &&
             r.interrupts.front().vector == before.interrupts.front().vector &&
             r.external_writes.size() == before.external_writes.size() &&
             r.external_writes.front().data == before.external_writes.front().data &&
             r.io_reads.front().value == before.io_reads.front().value &&
             r.internal_reads.size() == 1 && r.internal_reads.front().eax == 0 &&
             r.internal_reads.front().edx == 0 && r.adoptions.empty();
    };
    const bool changed = r.interrupts.empty() || r.external_writes.empty() || !same();
    EXPECT_TRUE(changed);
    take_back(r);
    EXPECT_TRUE(same());
  }
}

TEST(Hint, ChangesAScheduleAndNotTheRecordingItCameFrom) {
  for (const Hint& hint : all_kinds()) {
    SCOPED_TRACE(std::string(hint_kind_name(hint.kind)));
    const Recording r = some_recording();
    Schedule schedule = r;
    const auto take_back = apply_hint(hint, schedule);
    Recording expected = some_recording();
    apply_hint(hint, expected);
    EXPECT_EQ(schedule.interrupts.size(), expected.interrupts.size());
    EXPECT_EQ(schedule.external_writes.size(), expected.external_writes.size());
    EXPECT_EQ(schedule.io_reads.front().value, expected.io_reads.front().value);
    EXPECT_EQ(schedule.internal_reads.size(), expected.internal_reads.size());
    EXPECT_EQ(schedule.internal_reads.front().eax, expected.internal_reads.front().eax);
    EXPECT_EQ(r.interrupts.front().position, some_recording().interrupts.front().position);
    take_back(schedule);
    EXPECT_EQ(schedule.interrupts.size(), r.interrupts.size());
    EXPECT_EQ(schedule.interrupts.front().anchor, r.interrupts.front().anchor);
    EXPECT_EQ(schedule.external_writes.front().data, r.external_writes.front().data);
    EXPECT_EQ(schedule.io_reads.front().value, r.io_reads.front().value);
  }
}

TEST(Hint, OfAnInternalReadByItsNumberKeepsWhatItIs) {
  Recording r = some_recording();
  Hint hint = hint_of(Hint::Kind::internal_read);
  hint.number = 0;
  hint.value = 0x500000007;
  apply_hint(hint, r);
  EXPECT_EQ(r.internal_reads.front().op, InternalRead::Op::rdpmc);
  EXPECT_EQ(r.internal_reads.front().eax, 7u);
  EXPECT_EQ(r.internal_reads.front().edx, 5u);
  hint.number = 1;
  EXPECT_THROW(apply_hint(hint, r), UsageError);
}

TEST(Hint, IsRefusedWhereTheRecordingHasNothingLikeIt) {
  for (const Hint::Kind kind : {Hint::Kind::no_external_write, Hint::Kind::port_read,
                                Hint::Kind::interrupt, Hint::Kind::no_interrupt}) {
    Recording r = some_recording();
    Hint hint = hint_of(kind);
    hint.transaction = 1234;
    EXPECT_THROW(apply_hint(hint, r), UsageError) << hint_kind_name(kind);
  }
}

class Writes final : public EvidenceReader {
 public:
  bool next(BusTransaction& out) override {
    if (at_ == 4) return false;
    out = {};
    out.index = at_;
    out.op = BusOp::data_write;
    out.address.value = static_cast<std::uint32_t>(at_);
    out.size = 1;
    out.position.instruction = 10 + at_++;
    out.flags = kPositionKnown;
    return true;
  }

 private:
  std::uint64_t at_ = 0;
};

TEST(HintedEvidence, ReplacesLeavesOutAndInserts) {
  Hint changed = hint_of(Hint::Kind::captured_write),
       dropped = hint_of(Hint::Kind::no_captured_write);
  changed.transaction = 1;
  changed.address.value = 0x100;
  changed.data = {5, 6};
  dropped.transaction = 2;
  Hint added = hint_of(Hint::Kind::added_captured_write);
  added.transaction = 2;
  added.address.value = 0x200;
  added.data = {7};
  added.position = {11, 0};
  HintedEvidence evidence(std::make_unique<Writes>(), {changed, dropped, added});
  std::vector<std::uint32_t> addresses;
  std::vector<std::uint64_t> positions;
  for (BusTransaction t; evidence.next(t);) {
    addresses.push_back(t.address.low32());
    positions.push_back(t.position.instruction);
  }
  EXPECT_EQ(addresses, (std::vector<std::uint32_t>{0, 0x100, 0x200, 3}));
  EXPECT_EQ(positions, (std::vector<std::uint64_t>{10, 11, 11, 13}));
}

}  // namespace
}  // namespace citcat
