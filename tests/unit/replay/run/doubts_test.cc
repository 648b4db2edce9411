// Images of EFLAGS that a program stores far from where a line shows them. A comparison that runs
// whole blocks comes back to each; it ends as the comparison of every instruction does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "capture/import/import.h"
#include "replay/run/plain_places.h"
#include "replay/run/replay_session.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kImageLine = 0x20000, kTestedLine = 32;
constexpr std::uint32_t kPushedGdt = 0xa000, kPushedIdt = 0xb000, kPushedHandler = 0x14000;
constexpr int kPushedVector = 0x20;
constexpr std::uint32_t kCarry = 1, kOverflow = 0x800, kTrap = 0x100;
constexpr std::uint64_t kToTheStore = 6;  ///< instructions up to it

class DoubtsTest : public TemporaryFolder, public testing::WithParamInterface<std::uint32_t> {
 protected:
  /// SHL by 3 leaves OF undefined and CF not; its image is stored, and then `turns` of LOOP run.
  /// `constant`: what looks like the image is no more than a number. `pushed_over`: an interrupt
  /// pushes the flags over it.
  static PagedGuest guest_of(std::uint32_t turns, bool constant, bool pushed_over) {
    PagedGuest guest;
    guest.recording.bus = {CacheForm::write_back, kTestedLine, 8, 0xffffffff};
    guest.add({0xb8}, {1});                   // mov eax,1
    guest.add({0xc1, 0xe0, 0x03});            // shl eax,3
    guest.add({0x9c});                        // pushf
    guest.add({0x5b});                        // pop ebx
    guest.add({0xb9}, {turns});               // mov ecx,turns
    if (constant) guest.add({0xbb}, {0x46});  // mov ebx,...: ZF and PF, and what is always set
    guest.add({0x89, 0x1d}, {kImageLine});    // mov [kImageLine],ebx
    if (pushed_over) {
      guest.add({0x31, 0xc0});              // xor eax,eax
      guest.add({0xbc}, {kImageLine + 4});  // mov esp,...
    }
    guest.add({0xe2, 0xfe});  // loop $
    if (pushed_over) {
      guest.recording.initial.gdtr = {kPushedGdt, 0xff};
      guest.put_word(kPushedGdt + 8, 0xffff);  // CS: all of memory, 32 bits
      guest.put_word(kPushedGdt + 12, 0xcf9b00);
      guest.recording.initial.idtr = {kPushedIdt, 0x7ff};
      guest.put_word(kPushedIdt + 8 * kPushedVector, 8u << 16 | (kPushedHandler & 0xffff));
      guest.put_word(kPushedIdt + 8 * kPushedVector + 4, (kPushedHandler & 0xffff0000) | 0x8e00);
      guest.put(kPushedHandler, {0x90, 0x90, 0x90});
      guest.add({0xcd, kPushedVector});  // int kPushedVector
    }
    guest.add({0x90});
    guest.add({0x90});
    return guest;
  }
  struct Compared {
    std::string reason;
    std::uint64_t at = 0, adopted = 0;
    std::vector<Adoption> adoptions;
  };
  /// The line is given up behind the loop, with `flipped` flags in the image.
  Compared compare(bool plain_first, std::uint32_t flipped, bool constant = false,
                   bool pushed_over = false) {
    const std::uint32_t turns = GetParam();
    PagedGuest guest = guest_of(turns, constant, pushed_over);
    const std::uint64_t last = kToTheStore + (constant ? 1 : 0) + (pushed_over ? 2 : 0) + turns + 1;
    const std::uint64_t shown = pushed_over ? last - 1 : last;
    const std::uint32_t image = guest.run(shown, ExecutionPath::instructions).word(kImageLine);
    guest.recording.instructions = last + 1;
    BusTransaction line;
    line.op = BusOp::data_write;
    line.flags = kLine | kWriteBack | kPositionKnown;
    line.address = PhysAddr{kImageLine};
    line.size = kTestedLine;
    line.position = {last - 1, 0};
    for (unsigned i = 0; i < 4; ++i) {
      line.data[i] = static_cast<std::uint8_t>((image ^ flipped) >> 8 * i);
    }
    RecordingFileWriter writer(path("r.citcat"));
    writer.write(line);
    writer.finish(guest.recording);
    const RecordingFile file = RecordingFile::open(path("r.citcat"));
    SessionOptions options;
    options.plain_first = plain_first;
    ReplaySession session(file, nullptr, options);
    const ReplayReport report = session.run();
    closely_ = session.verifier()->plain();
    Compared compared;
    if (report.divergence) {
      compared.reason = report.divergence->reason;
      compared.at = report.divergence->position.instruction;
    }
    compared.adoptions = session.adoptions();
    return compared;
  }
  void expect_same(const Compared& found, const Compared& expected) {
    EXPECT_EQ(found.reason, expected.reason);
    EXPECT_EQ(found.at, expected.at);
    ASSERT_EQ(found.adoptions.size(), expected.adoptions.size());
    for (std::size_t i = 0; i < found.adoptions.size(); ++i) {
      EXPECT_EQ(found.adoptions[i].address, expected.adoptions[i].address);
      EXPECT_EQ(found.adoptions[i].position, expected.adoptions[i].position);
    }
  }

  bool closely_ = false;  ///< the last comparison ended with blocks
};

TEST_P(DoubtsTest, AnImageWithAnUndefinedFlagIsTakenOver) {
  const Compared found = compare(true, kOverflow);
  EXPECT_TRUE(closely_) << "no second comparison of every instruction";
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.adoptions.size(), 1u);
  expect_same(found, compare(false, kOverflow));
}

TEST_P(DoubtsTest, AnImageWithADefinedFlagIsRefused) {
  for (const std::uint32_t flipped : {kCarry, kCarry | kOverflow, kTrap}) {
    const Compared found = compare(true, flipped);
    EXPECT_NE(found.reason, "") << flipped;
    expect_same(found, compare(false, flipped));
  }
}

TEST_P(DoubtsTest, ANumberThatLooksLikeAnImageIsRefused) {
  const Compared found = compare(true, kOverflow, true);
  EXPECT_NE(found.reason, "");
  expect_same(found, compare(false, kOverflow, true));
}

/// The line shows the image over which an interrupt pushes another one. It is not taken over any
/// more.
TEST_P(DoubtsTest, AnImageThatIsPushedOverIsExplained) {
  const Compared found = compare(true, kOverflow, false, true);
  EXPECT_TRUE(closely_) << "no second comparison of every instruction";
  EXPECT_EQ(found.reason, "");
  EXPECT_EQ(found.adoptions.size(), 0u);
  expect_same(found, compare(false, kOverflow, false, true));
}

TEST_P(DoubtsTest, AnImageWithADefinedFlagThatIsPushedOverIsRefused) {
  const Compared found = compare(true, kCarry, false, true);
  EXPECT_NE(found.reason, "");
  expect_same(found, compare(false, kCarry, false, true));
}

/// Within the first stretch before the line, and within later ones.
INSTANTIATE_TEST_SUITE_P(Distances, DoubtsTest, testing::Values(10, 40'000, 700'000),
                         [](const auto& distance) {
                           return "Turns" + std::to_string(distance.param);
                         });

BusTransaction line_at(std::uint32_t address, BusOp op, std::uint64_t instruction) {
  BusTransaction line;
  line.op = op;
  line.flags = kLine | kPositionKnown;
  if (op == BusOp::data_write) line.flags |= kWriteBack;
  line.address = PhysAddr{address};
  line.size = kTestedLine;
  line.position = {instruction, 0};
  return line;
}

class FloatingPointDoubtsTest : public TemporaryFolder {
 protected:
  /// Why the comparison ends; "" where all agrees. The line differs in these bits of byte `byte`.
  std::string compared(bool plain_first, std::uint8_t bits, std::size_t byte = 0) {
    constexpr std::uint32_t kTurns = 100;
    PagedGuest guest;
    Recording& recording = guest.recording;
    recording.bus = {CacheForm::write_back, kTestedLine, 8, 0xffffffff};
    guest.add({0xdb, 0xe3});                // fninit
    guest.add({0xd9, 0xe8});                // fld1
    guest.add({0xd9, 0xfe});                // fsin
    guest.add({0xdd, 0x1d}, {kImageLine});  // fstp qword [kImageLine]
    guest.add({0xb9}, {kTurns});            // mov ecx,kTurns
    const std::uint8_t opcode = overwrites_ ? 0x89 : 0x39;
    guest.add({opcode, 0x0d}, {kImageLine});  // mov or cmp [kImageLine],ecx
    guest.add({0xe2, 0xfe});                  // loop $
    guest.add({0x90});
    guest.add({0x90});
    constexpr std::uint64_t kLast = 6 + kTurns + 1;
    const auto memory = guest.run(kLast, ExecutionPath::instructions).memory;
    recording.instructions = kLast + 1;
    BusTransaction line = line_at(kImageLine, BusOp::data_write, kLast - 1);
    std::copy_n(memory.begin() + kImageLine, kTestedLine, line.data.begin());
    line.data[byte] ^= bits;
    RecordingFileWriter writer(path("r.citcat"));
    writer.write(line);
    writer.finish(recording);
    const RecordingFile file = RecordingFile::open(path("r.citcat"));
    SessionOptions options;
    options.plain_first = plain_first;
    ReplaySession session(file, nullptr, options);
    const ReplayReport report = session.run();
    if (plain_first) closely_ = session.verifier()->plain();
    adopted_ = session.adoptions().size();
    return report.divergence ? report.divergence->reason : "";
  }
  bool overwrites_ = false;  ///< an integer is stored over a part of the result
  bool closely_ = false;     ///< the comparison of blocks has sufficed
  std::size_t adopted_ = 0;  ///< bytes
};

/// FSIN's last bit differs from one model to the next. The line shows another than the replay's.
TEST_F(FloatingPointDoubtsTest, AResultOfAnotherModelIsTakenOver) {
  EXPECT_EQ(compared(true, 1), compared(false, 1));
  EXPECT_EQ(adopted_, 1u);
  EXPECT_TRUE(closely_) << "no comparison of every instruction";
}

TEST_F(FloatingPointDoubtsTest, ANumberBesideItIsRefused) {
  const std::string reason = compared(true, 1, 8);
  EXPECT_NE(reason, "");
  EXPECT_EQ(reason, compared(false, 1, 8));
}

TEST_F(FloatingPointDoubtsTest, ANumberStoredOverItIsRefused) {
  overwrites_ = true;
  const std::string reason = compared(true, 1);
  EXPECT_NE(reason, "");
  EXPECT_EQ(reason, compared(false, 1));
}

/// The whole of a long run with reads to compare, in which a line shows the image.
struct LongRun {
  PagedGuest guest;
  std::uint64_t stored = 0,
                shown = 0;  ///< instructions before which the image is stored, and shown
};

/// So many LOOPs before the image is stored, and so many between that and the line.
LongRun long_run(std::uint32_t before, std::uint32_t after) {
  LongRun run;
  PagedGuest& guest = run.guest;
  guest.recording.bus = {CacheForm::write_back, kTestedLine, 8, 0xffffffff};
  guest.add({0xb9}, {before});            // mov ecx,before
  guest.add({0xe2, 0xfe});                // loop $
  guest.add({0xb8}, {1});                 // mov eax,1
  guest.add({0xc1, 0xe0, 0x03});          // shl eax,3
  guest.add({0x9c});                      // pushf
  guest.add({0x5b});                      // pop ebx
  guest.add({0xb9}, {after});             // mov ecx,after
  guest.add({0x89, 0x1d}, {kImageLine});  // mov [kImageLine],ebx
  guest.add({0xe2, 0xfe});                // loop $
  guest.add({0x90});
  guest.add({0x90});
  run.stored = std::uint64_t{1} + before + 5;
  run.shown = run.stored + 1 + after + 1;
  return run;
}

class LongDoubtsTest : public TemporaryFolder {};

/// From a place of the plain comparison; and where that lies behind the store, from the beginning.
TEST_F(LongDoubtsTest, AnImageIsTakenOverWhereverTheComparisonBeginsOnceMore) {
  constexpr auto kPlace = static_cast<std::uint32_t>(PlainPlaces::kSpacing);
  for (const auto& [before, after] :
       {std::pair{kPlace + 400'000, 50u}, std::pair{kPlace - 100'000, 500'000u}}) {
    LongRun run = long_run(before, after);
    Recording& recording = run.guest.recording;
    recording.instructions = run.shown + 1;
    recording.totals.line_fills = 1;
    RecordingFileWriter writer(path("r.citcat"));
    BusTransaction fetched = line_at(PagedGuest::kMain, BusOp::code_read, 0);
    writer.write(fetched);
    BusTransaction line = line_at(kImageLine, BusOp::data_write, run.shown - 1);
    line.index = 1;
    // SHL of 1 by 3 clears CF, PF, ZF and SF; OF is as another processor may leave it.
    line.data[0] = 0x02;
    line.data[1] = kOverflow >> 8;
    writer.write(line);
    writer.finish(recording);
    const RecordingFile file = RecordingFile::open(path("r.citcat"));
    SessionOptions options;
    options.plain_first = true;
    ReplaySession session(file, nullptr, options);
    const ReplayReport report = session.run();
    EXPECT_EQ(report.divergence ? report.divergence->reason : "", "") << before;
    EXPECT_TRUE(session.verifier()->plain());
    ASSERT_EQ(session.adoptions().size(), 1u);
    EXPECT_EQ(session.adoptions()[0].address, (PhysAddr{kImageLine + 1}));
  }
}

}  // namespace
}  // namespace citcat::test
