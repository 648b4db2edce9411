// A capture whose records are read where they stand in the file gives the same archive as one that
// is compressed, whose transactions are made one by one; and so does one whose records are looked
// at without the processor's widest vectors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "events/archive/recording_file.h"
#include "formats/captures/bus_record.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "formats/io/simd_vectors.h"
#include "formats/io/zstd_stream.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint8_t kCodeKind = 1, kReadKind = 2, kWriteKind = 3, kPortKind = 4,
                       kAcknowledgeKind = 6, kHaltKind = 7;
constexpr std::uint8_t kLineFlag = 1, kWriteBackFlag = 2, kStoreFillFlag = 32, kWindowFlag = 16;

/// What a test asks of the traffic.
struct TrafficOptions {
  bool cached = false, counted = true;
  std::uint32_t disorder = 0;     ///< how far counts may stand behind
  std::uint32_t clock_step = 7;   ///< at most so much from one to the next
  std::uint32_t memory = 0x8000;  ///< bytes from 3f000h on that are accessed
};

/// Memory that the processor and, now and then, somebody else writes.
class Machine {
 public:
  Machine(unsigned seed, const TrafficOptions& traffic) : random_(seed), traffic_(traffic) {
    memory_.resize(kFirst + traffic.memory + 0x1000);
    for (std::uint8_t& byte : memory_) byte = static_cast<std::uint8_t>(pick(256));
  }

  std::vector<BusRecord> run(std::size_t count) {
    std::vector<BusRecord> records;
    while (records.size() < count) {
      if (pick(3000) == 0) enter_smm(records);
      records.push_back(next());
    }
    return records;
  }

 private:
  static constexpr std::uint32_t kFirst = 0x3f000;

  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

  BusRecord stamp(BusRecord r) {
    instructions_ += pick(3);
    clock_ += pick(traffic_.clock_step);
    r.clock = clock_;
    const std::uint32_t behind = traffic_.disorder == 0 ? 0 : pick(traffic_.disorder);
    r.instructions = traffic_.counted
                         ? instructions_ - std::min<std::uint64_t>(behind, instructions_)
                         : kNoCount;
    if (traffic_.counted && pick(50) == 0) r.iterations = pick(3);
    return r;
  }

  BusRecord next() {
    BusRecord r;
    switch (pick(200)) {
      case 0:
        r.type = kPortKind;
        r.size = 2;
        r.address = 0x1f0;
        r.data[0] = static_cast<std::uint8_t>(pick(256));
        return stamp(r);
      case 1:
        r.type = kAcknowledgeKind;
        r.size = 1;
        r.data[0] = 0x30;
        return stamp(r);
      case 2:
        r.type = kHaltKind;
        return stamp(r);
      case 3:
        memory_[kFirst + pick(traffic_.memory)] ^= 0x55;
        break;
      default:
        break;
    }
    return access();
  }

  BusRecord access() {
    BusRecord r;
    r.address = kFirst + pick(traffic_.memory);
    r.type = static_cast<std::uint8_t>(kCodeKind + pick(3));
    if (traffic_.cached && pick(2) != 0) {
      r.flags = kLineFlag;
      if (r.type == kWriteKind) r.flags = kLineFlag | kWriteBackFlag;
      if (r.type == kReadKind && pick(4) == 0) r.flags = kLineFlag | kStoreFillFlag;
      r.size = 16;
      r.address &= ~15U;
      r.burst = static_cast<std::uint8_t>(r.address / 16 % 2);
    } else {
      r.size = static_cast<std::uint8_t>(1 + pick(4 - r.address % 4));
    }
    if (r.type == kWriteKind && pick(500) == 0)
      r.flags = static_cast<std::uint8_t>(r.flags | kWindowFlag);
    for (std::uint32_t i = 0; i < r.size; ++i) {
      std::uint8_t& byte = memory_[r.address + i];
      if (r.type == kWriteKind && r.flags == 0) byte = static_cast<std::uint8_t>(pick(256));
      r.data[i] = byte;
    }
    return stamp(r);
  }

  /// The processor saves its state downwards and fetches the handler, at one boundary.
  void enter_smm(std::vector<BusRecord>& records) {
    const BusRecord at = stamp({});
    const auto put = [&](std::uint8_t type, std::uint32_t address) {
      BusRecord r = at;
      r.type = type;
      r.size = 4;
      r.address = address;
      std::copy_n(memory_.begin() + address, 4, r.data.begin());
      records.push_back(r);
    };
    for (std::uint32_t i = 1; i <= 128; ++i) put(kWriteKind, 0x40000 - 4 * i);
    put(kCodeKind, 0x38000);
  }

  std::mt19937 random_;
  TrafficOptions traffic_;
  std::vector<std::uint8_t> memory_;
  std::uint64_t instructions_ = 100;
  std::uint32_t clock_ = 0xfffff000;
};

class RunImport : public TemporaryFolder {
 protected:
  /// Imports `records` in all ways and returns the archive.
  RecordingFile import_both(const std::vector<BusRecord>& records, ImportOptions options = {}) {
    std::string bytes(records.size() * kBusRecordBytes, '\0');
    std::memcpy(bytes.data(), records.data(), bytes.size());
    const std::vector<std::uint8_t> plain(bytes.begin(), bytes.end());
    const std::vector<std::uint8_t> packed = zstd_compress(plain, {});
    store("a.bin", bytes);
    store("a.bin.zst", {packed.begin(), packed.end()});
    if (!options.initial_state) options.initial_state = CpuState{};
    options.provenance = false;
    import_capture({path("a.bin")}, options, path("runs.citcat"));
    import_capture({path("a.bin.zst")}, options, path("single.citcat"));
    EXPECT_TRUE(load("runs.citcat") == load("single.citcat"));
    {
      const NoSimdVectors none;
      import_capture({path("a.bin")}, options, path("narrow.citcat"));
    }
    EXPECT_TRUE(load("runs.citcat") == load("narrow.citcat"));
    return RecordingFile::open(path("runs.citcat"));
  }
};

TEST_F(RunImport, GivesTheSameArchiveForTrafficWithoutACache) {
  const RecordingFile file = import_both(Machine(1, {}).run(150'000));
  const Recording& recording = file.recording();
  EXPECT_GT(recording.external_writes.size(), 100U);
  const auto is_smi = [](const Interrupt& i) { return i.kind == Interrupt::Kind::smi; };
  EXPECT_TRUE(std::any_of(recording.interrupts.begin(), recording.interrupts.end(), is_smi));
}

TEST_F(RunImport, GivesTheSameArchiveForLineBursts) {
  TrafficOptions traffic;
  traffic.cached = true;
  const RecordingFile file = import_both(Machine(2, traffic).run(150'000));
  const Recording& recording = file.recording();
  EXPECT_GT(recording.totals.write_backs, 1000U);
  EXPECT_GT(recording.totals.line_fills, 1000U);
}

TEST_F(RunImport, GivesTheSameArchiveWhereClocksWrapOften) {
  TrafficOptions traffic;
  traffic.clock_step = 0x20000000;
  import_both(Machine(3, traffic).run(20'000));
}

TEST_F(RunImport, GivesTheSameArchiveWithoutCounts) {
  TrafficOptions traffic;
  traffic.counted = false;
  const RecordingFile file = import_both(Machine(4, traffic).run(50'000));
  const Recording& recording = file.recording();
  EXPECT_FALSE(recording.instructions);
}

TEST_F(RunImport, GivesTheSameArchiveWhereCountsAreOutOfOrder) {
  for (const unsigned disorder : {10U, 63U, 64U, 66U, 300U}) {
    TrafficOptions traffic;
    traffic.disorder = disorder;
    import_both(Machine(disorder, traffic).run(30'000));
  }
}

TEST_F(RunImport, GivesTheSameArchiveForAPlaceInTheMiddle) {
  TrafficOptions traffic;
  traffic.cached = true;
  const std::vector<BusRecord> records = Machine(5, traffic).run(60'000);
  ImportOptions options;
  options.start = parse_where("instruction:20000");
  import_both(records, options);
  options.stop = parse_where("instruction:40000");
  import_both(records, options);
}

TEST_F(RunImport, GivesTheSameArchiveWhereRepetitionsAndLongPausesAlternate) {
  // All ways in which clocks, counts, iterations and addresses go on from each other, short and
  // long.
  std::mt19937 random(9);
  const auto pick = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random()) % below;
  };
  std::vector<BusRecord> records;
  BusRecord r;
  for (std::size_t i = 0; i < 100'000; ++i) {
    constexpr std::uint32_t kSteps[] = {0, 1, 15, 16, 17, 0xff, 0x10000, 0x3fffffff};
    r.type = static_cast<std::uint8_t>(kCodeKind + pick(3));
    r.size = static_cast<std::uint8_t>(1 << pick(3));
    r.address = pick(4) != 0 ? r.address + kSteps[pick(7)] : pick(8) * 0x10000001U;
    r.address &= 0x0fffffffU & ~(std::uint32_t{r.size} - 1);
    r.clock += kSteps[pick(pick(50) == 0 ? 8 : 5)];
    r.instructions += kSteps[pick(pick(50) == 0 ? 8 : 5)];
    r.iterations = pick(3) == 0 ? pick(4) * pick(0x10000) : r.iterations + pick(2);
    r.data = {};
    for (std::uint32_t k = 0; k < r.size; ++k) r.data[k] = static_cast<std::uint8_t>(pick(2));
    records.push_back(r);
  }
  import_both(records);
}

TEST_F(RunImport, GivesTheSameArchiveForMoreKindsOfAccessesThanAreLookedAtTogether) {
  constexpr std::uint8_t kFlags[] = {0, 4, 8, 12};  // uncacheable, snoop
  std::mt19937 random(10);
  std::vector<BusRecord> records;
  for (std::size_t i = 0; i < 30'000; ++i) {
    BusRecord r;
    r.type = static_cast<std::uint8_t>(kCodeKind + random() % 3);
    r.size = static_cast<std::uint8_t>(1 + random() % 4);
    r.flags = kFlags[random() % 4];
    r.address = static_cast<std::uint32_t>(random() % 0x800 * 4);
    r.instructions = i / 3;
    r.clock = static_cast<std::uint32_t>(5 * i);
    records.push_back(r);
  }
  import_both(records);
}

TEST_F(RunImport, GivesTheSameArchiveWhereReadsAreMarkedAsWriteBacks) {
  std::vector<BusRecord> records = Machine(12, {}).run(20'000);
  for (std::size_t i = 5000; i < records.size(); i += 7) {
    if (records[i].type == kCodeKind || records[i].type == kReadKind)
      records[i].flags |= kWriteBackFlag;
  }
  const RecordingFile file = import_both(records);
  EXPECT_EQ(file.recording().bus.form, CacheForm::none);
}

TEST_F(RunImport, HoldsTheSameAtEveryLevelInMoreOrLessSpace) {
  const std::vector<BusRecord> records = Machine(5, {}).run(50'000);
  const auto at = [&](int level) {
    ImportOptions options;
    options.level = level;
    return import_both(records, options);
  };
  const auto hash_of = [](const RecordingFile& file) {
    Hasher128 hasher;
    const std::unique_ptr<EvidenceReader> evidence = file.evidence();
    for (BusTransaction t; evidence->next(t);) {
      ByteWriter fields;
      for (const std::uint64_t field : {t.index, t.clock, t.position.instruction})
        fields.u64(field);
      fields.u32(t.address.low32());
      fields.u8(static_cast<std::uint8_t>(t.op));
      fields.u8(t.size);
      fields.u16(t.flags);
      fields.bytes(t.data);
      hasher.update(fields.view());
    }
    return hasher.value();
  };
  const auto bytes = [&] { return std::filesystem::file_size(path("runs.citcat")); };
  const Hash128 quickest = hash_of(at(RecordingFileOptions::kFastest));
  const std::uintmax_t most = bytes();
  const Hash128 usual = hash_of(at(ImportOptions{}.level));
  const std::uintmax_t usual_bytes = bytes();
  const Hash128 smallest = hash_of(at(RecordingFileOptions::kSmallest));
  EXPECT_LT(usual_bytes, most);
  EXPECT_LT(bytes(), usual_bytes);
  EXPECT_EQ(quickest, usual);
  EXPECT_EQ(smallest, usual);
}

TEST_F(RunImport, RefusesRecordsOfZerosWhereverTheyStand) {
  // As a disk leaves them where a file was never written.
  const std::vector<BusRecord> good = Machine(11, {}).run(2000);
  for (const std::size_t at : {0U, 1U, 600U, 1999U}) {
    std::vector<BusRecord> records = good;
    records[at] = {};
    std::string bytes(records.size() * kBusRecordBytes, '\0');
    std::memcpy(bytes.data(), records.data(), bytes.size());
    store("zeros.bin", bytes);
    ImportOptions options;
    options.initial_state = CpuState{};
    try {
      import_capture({path("zeros.bin")}, options, path("zeros.citcat"));
      FAIL() << "accepted at " << at;
    } catch (const FormatError& error) {
      EXPECT_EQ(error.what(), path("zeros.bin") + ":" + std::to_string(at * kBusRecordBytes) +
                                  ": bus record: type: expected 1 to 15, 21 or 22, found 0");
    }
  }
}

TEST_F(RunImport, KeepsEventsInTheArchiveInOrderHoweverManyThereAre) {
  // Each read of the byte finds it changed by somebody else; between two reads there is another
  // access, so that they are events of their own.
  std::vector<BusRecord> records;
  constexpr std::size_t kEvents = 150'000;
  for (std::size_t i = 0; i < kEvents; ++i) {
    BusRecord r;
    r.type = kReadKind;
    r.size = 2;
    r.address = 0x1000;
    r.instructions = 2 * i;
    r.data[0] = static_cast<std::uint8_t>(i);
    r.data[1] = static_cast<std::uint8_t>(i >> 8);
    records.push_back(r);
    r.type = kPortKind;
    r.address = 0x60;
    ++r.instructions;
    records.push_back(r);
  }
  const RecordingFile file = import_both(records);
  const Recording& recording = file.recording();
  ASSERT_EQ(recording.external_writes.size(), kEvents - 1);
  ASSERT_EQ(recording.io_reads.size(), kEvents);
  for (std::size_t i = 1; i < kEvents; ++i) {
    EXPECT_EQ(recording.external_writes[i - 1].transaction, 2 * i);
    EXPECT_EQ(recording.external_writes[i - 1].data.front(), static_cast<std::uint8_t>(i));
    EXPECT_EQ(recording.io_reads[i].value, i & 0xffff);
  }
}

}  // namespace
}  // namespace citcat::test
