#include "formats/kt/kt_note.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "formats/kt/kt_note_reader.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(KtCounter, KnowsRepeatedStringsByTheirPrefixAndOpcode) {
  EXPECT_TRUE(is_repeated_string(Bytes{0xf3, 0xa4}));
  EXPECT_TRUE(is_repeated_string(Bytes{0x66, 0xf2, 0x2e, 0xae}));
  EXPECT_TRUE(is_repeated_string(Bytes{0xf3, 0x26, 0x6c}));
  EXPECT_FALSE(is_repeated_string(Bytes{0xa4}));
  EXPECT_FALSE(is_repeated_string(Bytes{0xf3, 0x90}));              // pause
  EXPECT_FALSE(is_repeated_string(Bytes{0xf3, 0xc3}));              // repz ret
  EXPECT_FALSE(is_repeated_string(Bytes{0xf3, 0x0f, 0x6f, 0xa4}));  // movdqu
  EXPECT_FALSE(is_repeated_string(Bytes{0xf3, 0x66}));
  EXPECT_FALSE(is_repeated_string({}));
}

struct Step {
  std::uint32_t eip;
  Bytes code;
  unsigned addresses;
  std::uint64_t instruction;
  std::uint32_t iteration;
};

TEST(KtCounter, CountsARepOnceAndOneThatWasInterruptedWhenItIsDone) {
  const Bytes movs{0xf3, 0xa4}, nop{0x90}, iret{0xcf};
  KtCounter counter;
  const std::vector<Step> steps = {
      {0x100, nop, 0, 0, 0},  {0x101, movs, 2, 1, 0}, {0x101, movs, 2, 1, 1},
      {0x103, nop, 0, 2, 0},  {0x104, movs, 0, 3, 0},                          // a count of zero
      {0x106, movs, 2, 4, 0}, {0x106, movs, 2, 4, 1}, {0x900, iret, 1, 4, 0},  // interrupted
      {0x106, movs, 2, 5, 0}, {0x108, nop, 0, 6, 0},  {0x100, nop, 0, 7, 0},
  };
  for (const Step& s : steps) {
    const KtPlace place = counter.next(s.eip, s.code, s.addresses);
    EXPECT_EQ(place.instruction, s.instruction) << std::hex << s.eip;
    EXPECT_EQ(place.iteration, s.iteration) << std::hex << s.eip;
  }
}

std::uint32_t any(std::mt19937& random) { return static_cast<std::uint32_t>(random()); }

KtNote random_note(std::mt19937& random, const KtNote& before) {
  KtNote note;
  note.kind = static_cast<KtNote::Kind>(random() % KtNote::kKinds);
  note.at = before.at + random() % 3 * (random() % 1000);
  note.place.instruction = before.place.instruction + random() % 5 * (random() % 100000);
  note.place.iteration = random() % 3 == 0 ? any(random) : 0;
  if (note.kind == KtNote::Kind::place) {
    note.place.bits = static_cast<std::uint8_t>(random() % 3 * 16);
  } else {
    note.where = any(random);
    note.size = any(random) % 9;
    note.value = any(random);
  }
  return note;
}

TEST(KtNotes, AreReadAsTheyWereWritten) {
  std::mt19937 random(5);
  std::vector<KtNote> notes;
  KtNote before;
  before.at = 12345;
  for (int i = 0; i < 1000; ++i) notes.push_back(before = random_note(random, before));
  const Bytes frame = encode_kt_notes(notes, 12345);
  EXPECT_EQ(decode_kt_notes(frame, 12345, "x", 0), notes);
  for (std::size_t cut = 0; cut < frame.size(); ++cut) {
    EXPECT_THROW(decode_kt_notes(std::span(frame).first(cut), 12345, "x", 0), FormatError) << cut;
  }
}

using KtNoteFiles = test::TemporaryFolder;

KtInstruction numbered(std::uint32_t number) {
  KtInstruction i;
  i.eip = number;
  i.code[0] = 0x90;
  return i;
}

TEST_F(KtNoteFiles, LeadToEveryPositionAcrossSegmentsHoweverTheKtIsHandedOver) {
  constexpr std::uint32_t kCount = 2'500'000, kFirst = 1'000'000'000;
  for (const bool told : {true, false}) {
    const auto sink = open_trace_sink(path("t.kt.zst"));
    KtWriter writer(*sink);
    KtNote begin;
    begin.place = {kFirst, 0, 32};
    writer.note(begin);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (told && !writer.has_room()) {
        KtNote here;
        here.place = {kFirst + i, 0, 32};
        here.implied = true;
        writer.note(here);
        writer.flush();
      }
      if (i % 100'000 == 50'000) {
        KtNote event;
        event.kind = KtNote::Kind::port_write;
        event.place.instruction = kFirst + i;
        event.where = i;
        writer.note(event);
      }
      writer.instruction(numbered(i));
    }
    writer.flush();
    sink->finish();
    const std::vector<KtSegment> segments = read_kt_index(path("t.kt.zst"));
    ASSERT_GT(segments.size(), 1U);
    std::size_t notes = 0;
    for (const KtSegment& s : segments) {
      EXPECT_EQ(s.place.instruction, kFirst + s.first_instruction) << told;
      EXPECT_EQ(s.place.bits, 32) << told;
      for (const KtNote& n : read_kt_notes(path("t.kt.zst"), s)) {
        EXPECT_GE(n.at, s.kt_offset);
        EXPECT_LE(n.at, s.kt_offset + s.kt_bytes);
        ++notes;
      }
    }
    EXPECT_EQ(notes, 26U) << told;  // the place of the beginning, and 25 events
    KtNoteReader reader(path("t.kt.zst"));
    const KtSegment* const found = reader.seek(kFirst + kCount - 1, 0);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->file_offset, segments.back().file_offset);
  }
}

TEST_F(KtNoteFiles, OfTheFirstVersionHaveNoPlaces) {
  // One frame of two records, and the index as it was.
  Bytes kt;
  for (int i = 0; i < 2; ++i) kt.insert(kt.end(), {1, 0, 0, 0, 1, 0x90, 0, 0});
  const auto sink = open_trace_sink(path("new.kt.zst"));
  sink->write(kt);
  sink->finish();
  const KtSegment segment = read_kt_index(path("new.kt.zst")).front();
  const std::string frame = load("new.kt.zst").substr(0, segment.stored_bytes);
  ByteWriter body;
  for (const char c : std::string("CCKTINDX")) body.u8(static_cast<std::uint8_t>(c));
  body.u32(1);
  for (const std::uint64_t v : {std::uint64_t{2}, std::uint64_t{16}, std::uint64_t{0},
                                segment.stored_bytes, std::uint64_t{16}}) {
    body.u64(v);
  }
  body.u64(hash64(body.view()));
  const Bytes index = skippable_frame(kSkippableMagic, body.view());
  ByteWriter table;
  table.u32(static_cast<std::uint32_t>(segment.stored_bytes));
  table.u32(16);
  table.u32(static_cast<std::uint32_t>(index.size()));
  table.u32(0);
  table.u32(2);
  table.u8(0);
  table.u32(0x8f92eab1);
  const Bytes seek_table = skippable_frame(0x184d2a5e, table.view());
  store("old.kt.zst", frame + std::string(index.begin(), index.end()) +
                          std::string(seek_table.begin(), seek_table.end()));
  const std::vector<KtSegment> old = read_kt_index(path("old.kt.zst"));
  ASSERT_EQ(old.size(), 1U);
  EXPECT_FALSE(old.front().placed);
  EXPECT_EQ(old.front().instructions, 2U);
  KtNoteReader reader(path("old.kt.zst"));
  EXPECT_FALSE(reader.places());
  EXPECT_EQ(reader.seek(1, 0), nullptr);
  EXPECT_EQ(reader.next(16), nullptr);
}

}  // namespace
}  // namespace citcat
