#include "formats/kt/kt_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zstd.h>

#include <filesystem>
#include <random>

#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/kt/trace_sink.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

class StoredBytes final : public ByteSink {
 public:
  explicit StoredBytes(Bytes& target) : target_(target) {}
  void write(std::span<const std::uint8_t> bytes) override {
    target_.insert(target_.end(), bytes.begin(), bytes.end());
  }
  void finish() override {}

 private:
  Bytes& target_;
};

/// A program that loops, calls, copies and is interrupted, and the addresses it uses.
class Program {
 public:
  explicit Program(std::uint32_t seed) : random_(seed) {}

  Bytes run(int instructions) {
    Bytes kt;
    StoredBytes sink(kt);
    KtWriter writer(sink);
    for (int n = 0; n < instructions; ++n) step(writer);
    writer.flush();
    return kt;
  }

 private:
  void step(KtWriter& writer) {
    const std::uint32_t at = step_++ % 12;
    if (random_() % 500 == 0) writer.process(static_cast<std::uint32_t>(random_() % 8));
    if (random_() % 300 == 0) writer.translation(static_cast<std::uint32_t>(random_()), stack_);
    if (random_() % 200 == 0) emit(writer, static_cast<std::uint32_t>(random_()), {0xcf}, {stack_});
    switch (at) {
      case 0:
        return emit(writer, 0x1000, {0x55}, {stack_ -= 4});
      case 1:
        return emit(writer, 0x1001, {0x8b, 0x45, 8}, {stack_ + 8});
      case 2:
        return emit(writer, 0x1004, {0x8b, 0x14, 0x88}, {0x8000 + 4 * (step_ % 100)});
      case 3:
        return emit(writer, 0x1007, {0x75, 0x10}, {0x1019});
      case 4:
        return emit(writer, 0x1009, {0xf3, 0xa4}, {step_, step_ + 0x4000});
      case 5:
        return emit(writer, 0x1009, {0xf3, 0xa4}, {step_, step_ + 0x4000});
      case 6:
        return emit(writer, 0x100b, {0xe8, 1, 2, 3, 4}, {0x4031211, stack_ - 4});
      case 7:
        return emit(writer, 0x4031211, {0xc3}, {stack_ - 4});
      case 8:
        return emit(writer, 0x1010, {0x0f, 0xaf, 0xc1}, {});
      case 9:
        return emit(writer, 0x1013, {0xff, 0xd0},
                    {stack_ - 4, static_cast<std::uint32_t>(random_())});
      case 10:
        return emit(writer, 0x1015, {0x5d}, {(stack_ += 4) - 4});
      default:
        return emit(writer, 0x1016, {0xeb, 0xe8}, {0x1000});
    }
  }
  void emit(KtWriter& writer, std::uint32_t eip, const Bytes& code,
            const std::vector<std::uint32_t>& addresses) {
    writer.instruction(KtTemplate(eip, code, static_cast<unsigned>(addresses.size())),
                       addresses.empty() ? 0 : addresses[0],
                       addresses.size() < 2 ? 0 : addresses[1]);
  }

  std::mt19937 random_;
  std::uint32_t step_ = 0;
  std::uint32_t stack_ = 0xbfff0000;
};

/// Records without any sense.
Bytes noise(std::uint32_t seed, int records) {
  std::mt19937 random(seed);
  Bytes kt;
  StoredBytes sink(kt);
  KtWriter writer(sink);
  for (int n = 0; n < records; ++n) {
    KtInstruction i;
    i.eip = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 5);
    i.size = static_cast<std::uint8_t>(1 + random() % 15);
    for (std::size_t k = 0; k < i.size; ++k) i.code[k] = static_cast<std::uint8_t>(random());
    i.address_count = static_cast<std::uint8_t>(random() % 3);
    i.address = {static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random())};
    writer.instruction(i);
  }
  writer.flush();
  return kt;
}

/// The same trace as one of 64-bit mode with addresses in both halves of linear memory, every
/// hundredth instruction in compatibility mode.
Bytes widened(const Bytes& kt) {
  Bytes wide;
  StoredBytes sink(wide);
  KtWriter writer(sink, KtForm::wide);
  KtReader reader(kt, "narrow");
  std::uint64_t number = 0;
  for (KtRecord r; reader.next(r);) {
    if (r.kind == KtRecord::Kind::process) {
      writer.process(r.pid);
    } else if (r.kind == KtRecord::Kind::translation) {
      writer.translation(r.frame, std::uint64_t{0xffff8880} << 32 | r.page);
    } else {
      KtInstruction i = r.instruction;
      i.bits = ++number % 100 == 0 ? 32 : 64;
      if (i.bits == 64) i.eip_high = 0xffffffff;
      for (std::size_t a = 0; a < i.address_count && i.bits == 64; ++a) {
        i.address_high[a] = i.address[a] < 0x2000 ? 0xffffffff : 0x00007fff;
      }
      writer.instruction(i);
    }
  }
  writer.flush();
  return wide;
}

/// Records of the wide form without any sense.
Bytes wide_noise(std::uint32_t seed, int records) {
  std::mt19937_64 random(seed);
  Bytes kt;
  StoredBytes sink(kt);
  KtWriter writer(sink, KtForm::wide);
  for (int n = 0; n < records; ++n) {
    KtInstruction i;
    i.set_wide_eip(random() % 3 == 0 ? random() : random() % 5);
    i.size = static_cast<std::uint8_t>(1 + random() % 15);
    for (std::size_t k = 0; k < i.size; ++k) i.code[k] = static_cast<std::uint8_t>(random());
    i.address_count = static_cast<std::uint8_t>(random() % 3);
    for (std::size_t a = 0; a < i.address_count; ++a) i.set_wide_address(a, random());
    i.bits = static_cast<std::uint8_t>(16 << random() % 3);
    writer.instruction(i);
    if (random() % 50 == 0) writer.process(static_cast<std::uint32_t>(random()));
    if (random() % 50 == 0) writer.translation(static_cast<std::uint32_t>(random()), random());
  }
  writer.flush();
  return kt;
}

/// The form is that of what begins with a mark.
Bytes store_kt(const Bytes& kt, std::size_t piece) {
  Bytes stored;
  StoredKtSink sink(std::make_unique<StoredBytes>(stored));
  if (kt.size() >= 4 && kt[0] == 'K' && kt[1] == 'T') sink.takes_wide();
  for (std::size_t at = 0; at < kt.size(); at += piece) {
    sink.write(std::span(kt).subspan(at, std::min(piece, kt.size() - at)));
  }
  sink.finish();
  return stored;
}

Bytes instructions_in(const Bytes& stored) {
  InputStream in(stored, "trace.ktz");
  EXPECT_EQ(in.compression(), Compression::stored_kt);
  Bytes all;
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

TEST(StoredKt, GivesBackWhatWasStored) {
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const Bytes program = Program(seed).run(200000);
    EXPECT_TRUE(instructions_in(store_kt(program, 100000)) == program);
    const Bytes random = noise(seed, 20000);
    EXPECT_TRUE(instructions_in(store_kt(random, 1000)) == random);
    if (seed != 1) continue;
    const Bytes wide = widened(program), wide_random = wide_noise(seed, 20000);
    EXPECT_TRUE(instructions_in(store_kt(wide, 100000)) == wide);
    EXPECT_TRUE(instructions_in(store_kt(wide_random, 1000)) == wide_random);
  }
  EXPECT_EQ(instructions_in(store_kt({}, 1)), Bytes{});
}

TEST(StoredKt, IsTheSameInWhateverPiecesItIsGiven) {
  const Bytes narrow = Program(1).run(5000);
  for (const Bytes& kt : {narrow, widened(narrow)}) {
    const Bytes whole = store_kt(kt, kt.size());
    for (const std::size_t piece : {1U, 7U, 4096U}) EXPECT_EQ(store_kt(kt, piece), whole);
  }
}

TEST(StoredKt, IsMuchSmallerThanZstdAtItsBest) {
  const Bytes narrow = Program(1).run(200000);
  for (const Bytes& kt : {narrow, widened(Program(1).run(30000))}) {
    Bytes frame(ZSTD_compressBound(kt.size()));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), kt.data(), kt.size(), 19));
    EXPECT_LT(store_kt(kt, kt.size()).size() * 2, frame.size());
  }
}

TEST(StoredKt, IsAChainOfZstdFrames) {
  const Bytes stored = store_kt(Program(1).run(1000), 1000);
  std::size_t at = 0;
  int frames = 0;
  while (at < stored.size()) {
    const std::size_t size = ZSTD_findFrameCompressedSize(&stored[at], stored.size() - at);
    ASSERT_FALSE(ZSTD_isError(size));
    at += size;
    ++frames;
  }
  EXPECT_EQ(at, stored.size());
  EXPECT_EQ(frames, 5);  // header, one segment, end, index, seek table
}

TEST(StoredKt, NeverTakesACutFileForAWholeOne) {
  for (const Bytes& kt : {Program(1).run(300), widened(Program(1).run(100))}) {
    const Bytes stored = store_kt(kt, 1000);
    // What follows the end segment are indexes, which a stream does not need.
    const std::size_t indexes = 8 + (8 + 4 + 72 + 8) + 8 + 4 * 8 + 9;
    for (std::size_t size = kStoredKtMagicBytes; size < stored.size() - indexes; ++size) {
      const Bytes cut(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_THROW(instructions_in(cut), FormatError) << size;
    }
  }
}

TEST(StoredKt, NeverGivesOtherKtForFlippedBytes) {
  for (const Bytes& kt : {Program(1).run(300), widened(Program(1).run(100))}) {
    const Bytes stored = store_kt(kt, 1000);
    for (std::size_t i = kStoredKtMagicBytes; i < stored.size(); ++i) {
      Bytes flipped = stored;
      flipped[i] ^= 0x20;
      try {
        EXPECT_TRUE(instructions_in(flipped) == kt) << i;
      } catch (const FormatError&) {
      }
    }
  }
}

TEST(StoredKt, RefusesWhatIsNoKt) {
  EXPECT_THROW(store_kt({1, 2, 3, 4, 0x41, 0, 0, 0}, 8), FormatError);  // reserved type
  EXPECT_THROW(store_kt({1, 2, 3, 4, 0x10, 0, 0, 0, 1, 1, 1, 1}, 12), FormatError);  // no bytes
  EXPECT_THROW(store_kt({1, 2, 3, 4, 0x01, 0x90, 1, 0}, 8), FormatError);            // padding
  EXPECT_THROW(store_kt({1, 2, 3, 4, 0x80, 0, 0, 1}, 8), FormatError);               // padding
  EXPECT_THROW(store_kt({1, 2, 3, 4, 0x01}, 8), FormatError);                        // cut
}

TEST(StoredKt, RefusesWhatIsNoKtOf64Bits) {
  const auto refused = [](std::initializer_list<int> record) {
    Bytes kt(kKtWideMark.begin(), kKtWideMark.end());
    for (const int byte : record) kt.push_back(static_cast<std::uint8_t>(byte));
    EXPECT_THROW(store_kt(kt, kt.size()), FormatError);
  };
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x82, 0, 0, 0, 0, 0, 0, 0});        // reserved type
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x10, 0, 0, 0, 0, 0, 0, 0});        // no bytes
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0x90, 1, 0, 0, 0, 0, 0});     // padding
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x31, 0x90, 0, 0, 0, 0, 0, 0, 1});  // three addresses
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0, 0, 1, 0, 0, 0, 0});        // padding
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x81, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});  // no page
  refused({1, 2, 3, 4, 5, 6, 7, 8, 0x01});                                               // cut
}

TEST(KtSegment, HasTheMarkOfTheWideFormWhereTheTraceBegins) {
  const Bytes wide = widened(Program(1).run(2000));
  Bytes padded = wide;
  padded.resize(wide.size() + KtModel::kSlack);
  const Bytes records(padded.begin() + kKtWideMark.size(), padded.end());
  const auto decoded = [](KtSegmentEncoder& encoder) {
    KtSegmentDecoder decoder(encoder.finish(), "segment");
    Bytes all;
    for (Bytes piece(1); !piece.empty(); all.insert(all.end(), piece.begin(), piece.end())) {
      decoder.next(piece);
    }
    return all;
  };
  KtSegmentEncoder first(KtForm::wide, true), later(KtForm::wide, false);
  EXPECT_EQ(first.add(padded, wide.size()), wide.size());
  EXPECT_EQ(later.add(records, wide.size() - kKtWideMark.size()), wide.size() - kKtWideMark.size());
  EXPECT_EQ(first.instructions(), later.instructions());
  EXPECT_TRUE(decoded(first) == wide);
  Bytes without(wide.begin() + kKtWideMark.size(), wide.end());
  EXPECT_TRUE(decoded(later) == without);
}

/// What a segment says before its coded decisions: so many records, and runs of length zero.
Bytes segment_of_runs(std::uint64_t records, std::uint64_t runs_said, std::size_t runs_held) {
  ByteWriter out;
  out.varint(records);
  out.varint(0);  // instructions
  out.varint(0);  // KT bytes
  out.bytes(Bytes(16));
  out.varint(runs_said);
  out.bytes(Bytes(runs_held));
  out.varint(0);  // coded bytes
  return out.take();
}

std::string message_of(Bytes segment) {
  try {
    KtSegmentDecoder decoder(std::move(segment), "trace.ktz");
    Bytes records;
    decoder.next(records);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(KtSegment, RefusesMoreRunsThanItsRecordsCanEnd) {
  EXPECT_EQ(message_of(segment_of_runs(7, 9, 9)),
            "trace.ktz:19: runs: expected at most 8, found 9");
}

TEST(KtSegment, RefusesMoreRunsThanItHolds) {
  EXPECT_EQ(message_of(segment_of_runs(1 << 20, 100, 10)),
            "trace.ktz:33: runs: expected 89 bytes, found 0");
}

/// The most resident memory this process has had, in KiB.
long peak_memory() {
  rusage usage{};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

TEST(KtSegment, TakesNoMoreMemoryForItsRunsThanTheyAreStoredIn) {
  constexpr std::size_t kRuns = 64u << 20;
  Bytes segment = segment_of_runs(kRuns, kRuns, kRuns);
  const long before = peak_memory();
  EXPECT_THAT(message_of(std::move(segment)), HasSubstr("expected fewer records"));
  EXPECT_LT(peak_memory() - before, 64 << 10);
}

class StoredKtFile : public test::TemporaryFolder {};

TEST_F(StoredKtFile, IsReadFromItsSegments) {
  const Bytes kt = Program(1).run(10000);
  {
    const auto sink = open_trace_sink(path("a.ktz"));
    sink->write(kt);
    sink->finish();
  }
  const std::vector<KtSegment> segments = read_kt_index(path("a.ktz"));
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].kt_bytes, kt.size());
  KtReader from_start(path("a.ktz"));
  KtReader from_segment(path("a.ktz"), segments[0].file_offset);
  KtRecord a, b;
  std::uint64_t instructions = 0;
  while (from_start.next(a)) {
    ASSERT_TRUE(from_segment.next(b));
    ASSERT_EQ(a, b);
    instructions += a.kind == KtRecord::Kind::instruction;
  }
  EXPECT_FALSE(from_segment.next(b));
  EXPECT_EQ(instructions, segments[0].instructions);
}

TEST_F(StoredKtFile, AbandonedKeepsTheRecordsThatCameAndIsReadUpToThem) {
  const Bytes kt = Program(1).run(1000);
  open_trace_sink(path("none.ktz")).reset();
  EXPECT_FALSE(std::filesystem::exists(path("none.ktz.partial")));
  open_trace_sink(path("a.ktz"))->write(kt);
  EXPECT_FALSE(std::filesystem::exists(path("a.ktz")));
  const Bytes read = read_whole_file(path("a.ktz.partial"), std::uint64_t{1} << 30);
  EXPECT_EQ(read, kt);
  // Under another name what has no end is damaged.
  store("b.ktz", load("a.ktz.partial"));
  EXPECT_THROW(read_whole_file(path("b.ktz"), std::uint64_t{1} << 30), FormatError);
}

TEST_F(StoredKtFile, SaysThatItsIndexIsDamaged) {
  {
    const auto sink = open_trace_sink(path("a.ktz"));
    sink->write(Program(1).run(100));
    sink->finish();
  }
  const std::string whole = load("a.ktz");
  for (std::size_t cut = 1; cut < 150; ++cut) {
    store("a.ktz", whole.substr(0, whole.size() - cut));
    EXPECT_THROW(read_kt_index(path("a.ktz")), FormatError);
  }
}

}  // namespace
}  // namespace citcat
