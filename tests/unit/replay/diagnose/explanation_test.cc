// One fault in what the bus showed of a small program: is it named first, and does its hint repair
// the run?

#include "replay/diagnose/explanation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "replay/verify/verifier.h"
#include "unit/replay/infer/registers/inferred_recording.h"
#include "unit/replay/machine/watched_guest.h"

namespace citcat::test {
namespace {

class ExplanationTest : public testing::Test {
 protected:
  /// The run as the bus showed it, with every interrupt where it was.
  void record(std::uint64_t instructions) {
    imported_ = guest_.record(instructions);
    for (std::size_t i = 0; i < imported_.recording.interrupts.size(); ++i) {
      imported_.recording.interrupts[i].position_known = true;
      imported_.recording.interrupts[i].position = guest_.positions()[i];
    }
    imported_.recording.instructions = instructions;
    ASSERT_EQ(verified({}).end, ReplayReport::End::complete) << "the run without the fault";
  }

  ReplayReport verified(const std::vector<Hint>& hints) {
    VerifierOptions verifying;
    verifying.policy.waived = reviewed_transactions(hints);
    Verifier verifier(imported_.recording,
                      std::make_unique<HintedEvidence>(imported_.read_evidence(), hints),
                      verifying);
    ReplayOptions options;
    options.evidence = [this] { return imported_.read_evidence(); };
    Replayer replayer(imported_.recording, &verifier, std::move(options));
    return verifier.finish(replayer.run());
  }

  static std::string listed(const std::vector<TriedCause>& causes) {
    std::string text;
    for (const TriedCause& t : causes) {
      text +=
          std::to_string(t.cause.price) + (t.repairs ? " repairs: " : ": ") + t.cause.text + "\n";
    }
    return text;
  }
  /// The cause ranked first, when its hints make the whole run agree.
  void expect_first(CauseKind kind) {
    ASSERT_NE(verified({}).end, ReplayReport::End::complete) << "the fault is not noticed";
    explanation_ = explain(imported_.recording, [this] { return imported_.read_evidence(); }, {});
    imported_.recording = std::exchange(explanation_.corrected, {});
    ASSERT_EQ(explanation_.rounds.size(), 1u);
    const auto& causes = explanation_.rounds.front().causes;
    ASSERT_FALSE(causes.empty());
    EXPECT_EQ(cause_name(causes.front().cause.kind), cause_name(kind)) << listed(causes);
    EXPECT_TRUE(explanation_.repaired);
    EXPECT_EQ(verified(explanation_.hints).end, ReplayReport::End::complete);
  }
  const TriedCause& first() const { return explanation_.rounds.front().causes.front(); }

  /// What the bus shows is one transaction more, before the one with this number.
  void insert(std::size_t at, const BusTransaction& shown) {
    auto& evidence = imported_.evidence;
    evidence.insert(evidence.begin() + static_cast<std::ptrdiff_t>(at), shown);
    for (std::size_t i = 0; i < evidence.size(); ++i) evidence[i].index = i;
    for (Interrupt& i : imported_.recording.interrupts) {
      if (i.transaction >= at) ++i.transaction;
    }
  }
  std::size_t write_to(std::uint32_t address) const {
    const auto found = std::find_if(
        imported_.evidence.begin(), imported_.evidence.end(),
        [&](const auto& t) { return t.op == BusOp::data_write && t.address.value == address; });
    return static_cast<std::size_t>(found - imported_.evidence.begin());
  }

  WatchedGuest guest_;
  ImportedRecording imported_;
  Explanation explanation_;
};

/// Three readings of the time-stamp counter, of which a loop's length, one bit and a byte are used.
class TimeStampTest : public ExplanationTest {
 protected:
  static constexpr std::uint64_t kStart = 0x1010;
  void SetUp() override {
    guest_.processor(CpuModel::pentium);
    // rdtsc; mov cx,20h; loop $; and al,10h; mov [0],al; rdtsc; mov [1],al; rdtsc; mov [2],al
    guest_.code({0x0f, 0x31, 0xb9, 0x20, 0x00, 0xe2, 0xfe, 0x24, 0x10, 0xa2, 0x00,
                 0x00, 0x0f, 0x31, 0xa2, 0x01, 0x00, 0x0f, 0x31, 0xa2, 0x02, 0x00});
    for (const std::uint64_t at : {0u, 36u, 38u}) guest_.internal_value({at, 0}, kStart + at);
    record(60);
  }
  /// Read number `n` gave this in EAX.
  void gave(std::size_t n, std::uint32_t eax) {
    InternalRead read = imported_.recording.internal_reads[n];
    read.eax = eax;
    imported_.recording.internal_reads.replace(n, read);
  }
  void flip(std::size_t n, std::uint32_t bits) {
    gave(n, imported_.recording.internal_reads[n].eax ^ bits);
  }
};

/// A word comes from the ports of an 8088 in two reads, and one of them was captured wrongly.
TEST_F(ExplanationTest, TheTransferOfAWideReadThatHasAWrongBitIsNamed) {
  // mov dx,3d4h; in ax,dx; in al,60h; mov [0],ax
  guest_.code({0xba, 0xd4, 0x03, 0xed, 0xe4, 0x60, 0xa3, 0x00, 0x00});
  guest_.port_read(0x3d4, 2, 0x3812);
  guest_.port_read(0x60, 1, 0x77);
  record(8);
  ASSERT_EQ(imported_.recording.io_reads.size(), 3u);
  IoReads& reads = imported_.recording.io_reads;
  IoRead changed = reads[1];
  changed.value ^= 0x20;
  reads.replace(1, changed);
  const std::uint64_t wrong = imported_.recording.io_reads[1].transaction;
  expect_first(CauseKind::captured_port_read);
  ASSERT_EQ(first().cause.hints.size(), 1u);
  EXPECT_EQ(first().cause.hints.front().transaction, wrong);
  EXPECT_EQ(first().cause.hints.front().value, 0x38u);
}

TEST_F(TimeStampTest, OneWrongBitIsNamed) {
  flip(1, 0x40);
  expect_first(CauseKind::internal_value);
  EXPECT_EQ(first().cause.hints.front().number, 1u);
  EXPECT_EQ(first().cause.hints.front().value, kStart + 36);
}

TEST_F(TimeStampTest, AnotherValueThanThePredictedIsNamedToo) {
  gave(1, 0x1077);
  expect_first(CauseKind::internal_value);
  EXPECT_EQ(first().cause.hints.front().number, 1u);
  EXPECT_EQ(first().cause.hints.front().value & 0xff, (kStart + 36) & 0xff);
}

TEST_F(TimeStampTest, ValuesThatNothingTellsApartAreCalledEquivalent) {
  gave(0, 0x1000);
  expect_first(CauseKind::internal_value);
  EXPECT_EQ(first().cause.hints.front().value, kStart);
  EXPECT_GT(first().equivalent_values, 0u) << "nothing but bit 4 is used";
  EXPECT_EQ(explanation_.rounds.front().causes.size(), 1u);
}

TEST_F(TimeStampTest, AValueWithoutAPositionIsNamedByItsNumber) {
  imported_.recording.internal_reads.change_each(
      [](InternalRead& read) { read.position_known = false; });
  flip(2, 0x80);
  expect_first(CauseKind::internal_value);
  EXPECT_EQ(first().cause.hints.front().number, 2u);
}

TEST_F(ExplanationTest, AnInstructionThatHadBeenFetchedBeforeItWasOverwrittenIsNamed) {
  // mov byte [cs:7],55h; mov al,AAh; mov [10h],al
  guest_.code({0x2e, 0xc6, 0x06, 0x07, 0x00, 0x55, 0xb0, 0xaa, 0xa2, 0x10, 0x00});
  record(200);
  const std::size_t shown = write_to(0x30010);
  ASSERT_LT(shown, imported_.evidence.size());
  imported_.evidence[shown].data[0] = 0xaa;
  expect_first(CauseKind::stale_code);
}

TEST_F(ExplanationTest, AResultThatProcessorsComputeDifferentlyIsNamed) {
  // MUL leaves SF, ZF, AF and PF undefined (Intel SDM vol. 2): another processor's go by LAHF into
  // a register, from there to memory, and are read back. mov al,3; mov bl,5; mul bl; lahf; mov
  // [10h],ah; mov dl,[10h]; mov [11h],dl
  guest_.code({0xb0, 0x03, 0xb3, 0x05, 0xf6, 0xe3, 0x9f, 0x88, 0x26, 0x10, 0x00, 0x8a, 0x16, 0x10,
               0x00, 0x88, 0x16, 0x11, 0x00});
  record(40);
  constexpr std::uint8_t kUndefined = 0xd4;
  const std::size_t stored = write_to(0x30010), again = write_to(0x30011);
  ASSERT_LT(again, imported_.evidence.size());
  for (const std::size_t at : {stored, again}) imported_.evidence[at].data[0] ^= kUndefined;
  expect_first(CauseKind::uncertain_result);
  EXPECT_EQ(blamed_transaction(first().cause), stored);
  EXPECT_EQ(explanation_.hints.front().kind, Hint::Kind::result);
}

TEST_F(ExplanationTest, AnInterruptThatWasNoneIsNamed) {
  guest_.handler({0xcf});                             // iret
  guest_.code({0x40, 0xa3, 0x10, 0x00, 0xeb, 0xfa});  // L: inc ax; mov [10h],ax; jmp L
  guest_.interrupt_at({300, 0});
  record(500);
  BusTransaction shown;
  shown.op = BusOp::interrupt_acknowledge;
  shown.size = 1;
  shown.data[0] = 8;
  constexpr std::size_t kAt = 60;
  Interrupt extra = imported_.recording.interrupts.front();
  insert(kAt, shown);
  extra.transaction = kAt;
  extra.position = {91, 0};
  auto& interrupts = imported_.recording.interrupts;
  interrupts.insert(interrupts.begin(), extra);
  expect_first(CauseKind::extra_interrupt);
  EXPECT_EQ(blamed_transaction(first().cause), kAt);
}

TEST_F(ExplanationTest, AWriteThatWasNoneIsNamed) {
  guest_.code({0x40, 0xa3, 0x10, 0x00, 0xeb, 0xfa});  // L: inc ax; mov [10h],ax; jmp L
  record(500);
  BusTransaction shown = imported_.evidence[10];
  shown.address.value = 0x3f335;
  constexpr std::size_t kAt = 60;
  insert(kAt, shown);
  expect_first(CauseKind::extra_write);
  EXPECT_EQ(blamed_transaction(first().cause), kAt);
}

/// Two interrupts in a loop, of which nothing says where they were.
class UnplacedTest : public ExplanationTest {
 protected:
  void SetUp() override {
    guest_.handler({0x50, 0x58, 0xcf});                 // push ax; pop ax; iret
    guest_.code({0x40, 0xa3, 0x10, 0x00, 0xeb, 0xfa});  // L: inc ax; mov [10h],ax; jmp L
    guest_.interrupt_at({100, 0});
    guest_.interrupt_at({300, 0});
    imported_ = guest_.record(500);
  }
  /// Number of a transaction: the `n`th after the acknowledge of an interrupt.
  std::size_t after(std::size_t interrupt, std::size_t n) const {
    return static_cast<std::size_t>(imported_.recording.interrupts[interrupt].transaction) + n;
  }
  void expect_repaired(CauseKind kind, std::uint64_t transaction) {
    const auto evidence = [this] { return imported_.read_evidence(); };
    PlacementReport search = place_interrupts(imported_);
    ASSERT_FALSE(search.complete()) << "the fault lets every interrupt be placed";
    explanation_ = explain_unplaced(imported_.recording, evidence, std::move(search), {});
    imported_.recording = std::exchange(explanation_.corrected, {});
    ASSERT_EQ(explanation_.rounds.size(), 1u);
    ASSERT_FALSE(explanation_.rounds.front().causes.empty());
    EXPECT_EQ(cause_name(first().cause.kind), cause_name(kind)) << first().cause.text;
    EXPECT_EQ(blamed_transaction(first().cause), transaction);
    EXPECT_TRUE(explanation_.repaired);
    for (std::size_t i = 0; i < guest_.positions().size(); ++i) {
      EXPECT_EQ(imported_.recording.interrupts[i].position, guest_.positions()[i]) << i;
    }
    EXPECT_EQ(verified(explanation_.hints).end, ReplayReport::End::complete);
  }
};

TEST_F(UnplacedTest, AWrongWriteBeforeTheFirstIsRepairedAndAllArePlaced) {
  const std::size_t at = 20;
  ASSERT_EQ(imported_.evidence[at].op, BusOp::data_write);
  imported_.evidence[at].data[0] ^= 0x08;
  expect_repaired(CauseKind::captured_write, at);
}

TEST_F(UnplacedTest, AWrongWriteBetweenThemIsRepairedAndAllArePlaced) {
  const std::size_t at = after(0, 40);
  ASSERT_EQ(imported_.evidence[at].op, BusOp::data_write);
  imported_.evidence[at].data[0] ^= 0x20;
  expect_repaired(CauseKind::captured_write, at);
}

TEST_F(UnplacedTest, AnInterruptThatTheCaptureLacksIsAddedWhereItWas) {
  const std::size_t at = after(0, 0);
  ASSERT_EQ(imported_.evidence[at].op, BusOp::interrupt_acknowledge);
  imported_.evidence.erase(imported_.evidence.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t i = at; i < imported_.evidence.size(); ++i) imported_.evidence[i].index = i;
  auto& interrupts = imported_.recording.interrupts;
  interrupts.erase(interrupts.begin());
  --interrupts.front().transaction;
  --interrupts.front().anchor.interrupts;
  std::size_t pushed = at;
  while (imported_.evidence[pushed].op != BusOp::data_write) ++pushed;
  expect_repaired(CauseKind::missing_interrupt, pushed);
}

TEST_F(UnplacedTest, AnInterruptThatWasNoneIsLeftOut) {
  const std::size_t at = after(0, 60);
  Interrupt extra = imported_.recording.interrupts.front();
  BusTransaction shown = imported_.evidence[after(0, 0)];
  for (std::size_t i = after(0, 0); i < at; ++i) {
    const BusTransaction& t = imported_.evidence[i];
    if (t.op == BusOp::data_write) extra.anchor.writes += t.size;
    if (t.op == BusOp::data_read) ++extra.anchor.reads;
  }
  ++extra.anchor.interrupts;
  insert(at, shown);
  extra.transaction = at;
  auto& interrupts = imported_.recording.interrupts;
  ++interrupts.back().anchor.interrupts;
  interrupts.insert(interrupts.begin() + 1, extra);
  expect_repaired(CauseKind::extra_interrupt, at);
}

/// A program whose first stores show every general register, with one of them wrong in the state.
class WrongRegisterTest : public ExplanationTest {
 protected:
  static constexpr std::uint32_t kRight = 0x0f4d;
  void SetUp() override {
    guest_.set("eax", kRight);
    guest_.set("ebx", 0x1234);
    guest_.set("ecx", 0x00ff);
    // mov [10h],ax; mov [12h],bx; add ax,cx; mov [14h],ah
    guest_.code({0xa3, 0x10, 0x00, 0x89, 0x1e, 0x12, 0x00, 0x01, 0xc8, 0x88, 0x26, 0x14, 0x00});
    record(60);
  }
  void expect_named(const char* name, std::uint32_t value) {
    expect_first(CauseKind::initial_register);
    EXPECT_EQ(first().cause.hints.front().name, name);
    EXPECT_EQ(first().cause.hints.front().value, value);
  }
};

TEST_F(WrongRegisterTest, WithItsBytesSwappedIsNamed) {
  set_register(imported_.recording.initial, "eax", 0x4d0f);
  expect_named("eax", kRight);
}

TEST_F(WrongRegisterTest, WithAnyOtherValueIsNamed) {
  set_register(imported_.recording.initial, "eax", 0xb3a2);
  expect_named("eax", kRight);
}

TEST_F(WrongRegisterTest, ExchangedWithAnotherIsNamedWithIt) {
  set_register(imported_.recording.initial, "eax", 0x1234);
  set_register(imported_.recording.initial, "ebx", kRight);
  expect_named("eax", kRight);
  EXPECT_EQ(first().cause.hints.size(), 2u);
}

TEST_F(WrongRegisterTest, ThatIsASegmentIsNamedByWhereTheBusShowsTheStore) {
  set_register(imported_.recording.initial, "es", 0x5000);  // else the two may be exchanged
  set_register(imported_.recording.initial, "ds", 0x2f51);
  expect_named("ds", 0x3000);
}

TEST_F(WrongRegisterTest, IsNotLookedForWhenTheTimeIsUp) {
  set_register(imported_.recording.initial, "eax", 0x4d0f);
  TimeBudget::Clock::time_point now{};
  TimeBudget time(20, TimeBudget::Counts::all, {},
                  [&now] { return now += std::chrono::seconds(1); });
  ExplainOptions options;
  options.time = &time;
  explanation_ = explain(
      imported_.recording, [this] { return imported_.read_evidence(); }, options);
  EXPECT_EQ(explanation_.given_up, "not through after 20 s");
  EXPECT_FALSE(explanation_.repaired);
  ASSERT_EQ(explanation_.rounds.size(), 1u);
  EXPECT_LE(explanation_.rounds.front().tried, 20u);
  EXPECT_EQ(get_register(explanation_.corrected.initial, "eax"), 0x4d0fu) << "nothing is changed";
}

TEST_F(ExplanationTest, AnSmiWhoseStoresWereNotCapturedIsNamed) {
  guest_.processor(CpuModel::p6);
  guest_.set("eflags", 0x2);
  guest_.code({0x40, 0xa3, 0x10, 0x00, 0xeb, 0xfa});  // L: inc ax; mov [10h],ax; jmp L
  guest_.put(0x38000, {0xb0, 0x5a, 0xa2, 0x20, 0x00, 0x0f, 0xaa});  // mov al,5ah; mov [20h],al; rsm
  guest_.smi_at({30, 0});
  record(90);
  auto& evidence = imported_.evidence;
  const std::uint64_t at = imported_.recording.interrupts.front().transaction;
  // In place of the SMI and its 128 stores the bus shows the fetch of its handler.
  std::erase_if(evidence, [](const BusTransaction& t) {
    return t.op == BusOp::data_write && t.address.value - 0x3fe00 < 0x200;
  });
  BusTransaction& fetch = evidence[static_cast<std::size_t>(at)];
  ASSERT_EQ(fetch.op, BusOp::smi);
  fetch.op = BusOp::code_read;
  fetch.address.value = 0x38000;
  fetch.size = 2;
  fetch.data = {0xb0, 0x5a};
  for (std::size_t i = 0; i < evidence.size(); ++i) evidence[i].index = i;
  imported_.recording.interrupts.clear();
  imported_.recording.initial.unknown = {"smbase"};  // as where no SMI shows it
  expect_first(CauseKind::missing_interrupt);
  EXPECT_EQ(first().cause.hints.front().name, "smi");
  // Nothing tells at which boundary between the stores around it.
  EXPECT_GE(first().cause.hints.front().position.instruction, 29u);
  EXPECT_LE(first().cause.hints.front().position.instruction, 31u);
}

}  // namespace
}  // namespace citcat::test
