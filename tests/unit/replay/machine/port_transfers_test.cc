// Port accesses of every width, alignment and form on every bus: the replay puts together what was
// read in parts, and the comparison takes each part for itself. How a bus splits them is written
// down here by hand:
// - 8088, 8086, 80286: 8086 Family User's Manual, 2-10; the odd words of an 80286 are those of its
//   single-step tests (docs/silicon.md).
// - 386, 486: 80386 Hardware Reference Manual, table 3-4; Embedded Intel486 Processor Hardware
//   Reference Manual, table 4-7, "Transfer Bus Cycles for Bytes, Words and Dwords", with BS16# and
//   BS8#.
// - Pentium, P6: as on a bus of 32 bits; later processors may begin with the lower dword (Intel SDM
//   vol. 1, 18.3).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events/derive/recording_builder.h"
#include "events/machine/cpu_traits.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"
#include "unit/kept_evidence.h"
#include "unit/replay/machine/both_paths.h"

namespace citcat {
namespace {

struct Part {
  std::uint32_t offset, size;
};
using Parts = std::vector<Part>;

/// Parts of words and dwords at addresses that are 0, 1, 2 and 3 more than a multiple of four.
struct BusRow {
  const char* name;
  CpuModel model;
  std::uint32_t bus_bytes;
  Parts word[4];
  Parts dword[4];  ///< none before the 386
};

const Parts kByteByByte{{0, 1}, {1, 1}};
const Parts kWord{{0, 2}};
const Parts kUpperByteFirst{{1, 1}, {0, 1}};

const std::vector<BusRow> kBuses{
    {"I8088", CpuModel::i8088, 1, {kByteByByte, kByteByByte, kByteByByte, kByteByByte}, {}},
    {"I8086", CpuModel::i8086, 2, {kWord, kByteByByte, kWord, kByteByByte}, {}},
    {"I80286", CpuModel::i286, 2, {kWord, kByteByByte, kWord, kByteByByte}, {}},
    {"I386SX",
     CpuModel::i386,
     2,
     {kWord, kByteByByte, kWord, kUpperByteFirst},
     {{{0, 2}, {2, 2}}, {{3, 1}, {0, 1}, {1, 2}}, {{2, 2}, {0, 2}}, {{1, 2}, {3, 1}, {0, 1}}}},
    {"I386EXWithBS8",
     CpuModel::i386,
     2,
     {kByteByByte, kByteByByte, kByteByByte, kUpperByteFirst},
     {{{0, 1}, {1, 1}, {2, 1}, {3, 1}},
      {{3, 1}, {0, 1}, {1, 1}, {2, 1}},
      {{2, 1}, {3, 1}, {0, 1}, {1, 1}},
      {{1, 1}, {2, 1}, {3, 1}, {0, 1}}}},
    {"I386DX",
     CpuModel::i386,
     4,
     {kWord, kWord, kWord, kUpperByteFirst},
     {{{0, 4}}, {{3, 1}, {0, 3}}, {{2, 2}, {0, 2}}, {{1, 3}, {0, 1}}}},
    {"I486",
     CpuModel::i486,
     4,
     {kWord, kWord, kWord, kUpperByteFirst},
     {{{0, 4}}, {{3, 1}, {0, 3}}, {{2, 2}, {0, 2}}, {{1, 3}, {0, 1}}}},
    {"I486WithBS16",
     CpuModel::i486,
     4,
     {kWord, kByteByByte, kWord, kUpperByteFirst},
     {{{0, 2}, {2, 2}}, {{3, 1}, {0, 1}, {1, 2}}, {{2, 2}, {0, 2}}, {{1, 2}, {3, 1}, {0, 1}}}},
    {"I486WithBS8",
     CpuModel::i486,
     4,
     {kByteByByte, kByteByByte, kByteByByte, kUpperByteFirst},
     {{{0, 1}, {1, 1}, {2, 1}, {3, 1}},
      {{3, 1}, {0, 1}, {1, 1}, {2, 1}},
      {{2, 1}, {3, 1}, {0, 1}, {1, 1}},
      {{1, 1}, {2, 1}, {3, 1}, {0, 1}}}},
    {"Pentium",
     CpuModel::pentium,
     8,
     {kWord, kWord, kWord, kUpperByteFirst},
     {{{0, 4}}, {{3, 1}, {0, 3}}, {{2, 2}, {0, 2}}, {{1, 3}, {0, 1}}}},
    {"P6LowerDwordFirst",
     CpuModel::p6,
     8,
     {kWord, kWord, kWord, kByteByByte},
     {{{0, 4}}, {{0, 3}, {3, 1}}, {{0, 2}, {2, 2}}, {{0, 1}, {1, 3}}}},
};

enum class Form : std::uint8_t { immediate, dx, string, repeated };
constexpr Form kForms[] = {Form::immediate, Form::dx, Form::string, Form::repeated};

struct SeenAccess {
  bool out = false;
  Form form = Form::immediate;
  std::uint32_t size = 1, alignment = 0;
  Parts parts;

  std::uint32_t count() const { return form == Form::repeated ? 3 : 1; }
  std::uint16_t port() const {
    return static_cast<std::uint16_t>((form == Form::immediate ? 0x50 : 0x3d4) + alignment);
  }
  /// What crosses the bus: a different byte everywhere.
  static std::uint8_t byte(std::uint32_t iteration, std::uint32_t i) {
    return static_cast<std::uint8_t>(0x91 + 0x10 * iteration + i);
  }
  static std::uint32_t value(std::uint32_t iteration, std::uint32_t size) {
    std::uint32_t value = 0;
    for (std::uint32_t i = size; i-- > 0;) value = value << 8 | byte(iteration, i);
    return value;
  }
  std::vector<std::uint8_t> code() const {
    std::vector<std::uint8_t> bytes;
    if (form == Form::repeated) bytes.push_back(0xf3);
    if (size == 4) bytes.push_back(0x66);
    const int base = form == Form::immediate ? 0xe4 : form == Form::dx ? 0xec : 0x6c;
    bytes.push_back(static_cast<std::uint8_t>(base + (out ? 2 : 0) + (size == 1 ? 0 : 1)));
    if (form == Form::immediate) bytes.push_back(static_cast<std::uint8_t>(port()));
    return bytes;
  }
  bool is_string() const { return form == Form::string || form == Form::repeated; }
  std::string text() const {
    constexpr const char* kNames[] = {"imm8", "dx", "string", "rep string"};
    return std::string(out ? "out " : "in ") + kNames[static_cast<int>(form)] + ", " +
           std::to_string(size) + " bytes, alignment " + std::to_string(alignment);
  }
};

constexpr std::uint32_t kPortCode = 0x1000, kPortData = 0x3000, kOldEax = 0x55443322;

/// nop, the access, hlt in real mode, and what the bus shows of them.
class PortGuest {
 public:
  PortGuest(const BusRow& bus, SeenAccess access, bool counted)
      : bus_(bus), access_(std::move(access)), counted_(counted) {
    const std::vector<std::uint8_t> code = access_.code();
    fetch(0, {0x90});
    fetch(1, code);
    for (std::uint32_t n = 0; n < access_.count(); ++n) iterate(n);
    at_ = {2, 0};
    fetch(static_cast<std::uint32_t>(1 + code.size()), {0xf4});
    show(BusOp::halt, 0, {});
  }

  std::vector<BusTransaction> shown;

  std::vector<std::size_t> port_transactions() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < shown.size(); ++i) {
      if (shown[i].op == BusOp::io_read || shown[i].op == BusOp::io_write) found.push_back(i);
    }
    return found;
  }

  struct Result {
    ReplayReport report;
    VerifyTotals totals;
    CpuState cpu;
    std::vector<std::uint8_t> memory;  ///< from kPortData
    bool matches() const { return report.end == ReplayReport::End::complete; }
  };
  /// Imports `shown`, replays and compares.
  Result run(ExecutionPath path) const {
    std::vector<BusTransaction> evidence;
    test::KeptEvidence kept(evidence);
    BuilderOptions building;
    building.bus = {CacheForm::none, 0, bus_.bus_bytes, 0xfffff};
    RecordingBuilder builder(building, &kept);
    std::uint64_t index = 0;
    for (BusTransaction t : shown) {
      t.index = index++;
      builder.add(t);
    }
    Recording recording = builder.finish();
    recording.initial = initial();
    return replay(recording, std::move(evidence), path);
  }

 private:
  class Kept final : public EvidenceReader {
   public:
    explicit Kept(std::vector<BusTransaction> all) : all_(std::move(all)) {}
    bool next(BusTransaction& out) override {
      if (at_ == all_.size()) return false;
      out = all_[at_++];
      return true;
    }

   private:
    std::vector<BusTransaction> all_;
    std::size_t at_ = 0;
  };

  CpuState initial() const {
    CpuState state;
    state.model = bus_.model;
    for (const auto& [name, value] :
         std::initializer_list<std::pair<const char*, std::uint32_t>>{{"cs", kPortCode >> 4},
                                                                      {"ds", kPortData >> 4},
                                                                      {"es", kPortData >> 4},
                                                                      {"ip", 0},
                                                                      {"cx", 3}}) {
      set_register(state, name, value);
    }
    set_register(state, "dx", access_.port());
    state.gpr[kEax] = access_.out ? SeenAccess::value(0, 4) : kOldEax;
    return state;
  }

  Result replay(const Recording& recording, std::vector<BusTransaction> evidence,
                ExecutionPath path) const {
    VerifierOptions verifying;
    verifying.plain = path == ExecutionPath::blocks;
    Verifier verifier(recording, std::make_unique<Kept>(std::move(evidence)), verifying);
    ReplayOptions options;
    options.path = path;
    Replayer replayer(recording, &verifier, options);
    Result result;
    result.report = verifier.finish(replayer.run());
    result.totals = verifier.totals();
    result.cpu = replayer.machine().save();
    for (std::uint32_t i = 0; i < access_.size * access_.count(); ++i) {
      result.memory.push_back(
          replayer.machine().memory().defined_byte(PhysAddr{kPortData + i}).value_or(0));
    }
    return result;
  }

  void iterate(std::uint32_t n) {
    at_ = {1, access_.form == Form::repeated ? n : 0};
    const std::uint32_t data = kPortData + n * access_.size;
    if (access_.is_string() && access_.out) move(BusOp::data_read, data, n);
    for (const Part& part : access_.parts) {
      std::vector<std::uint8_t> bytes;
      for (std::uint32_t i = 0; i < part.size; ++i) {
        bytes.push_back(SeenAccess::byte(n, part.offset + i));
      }
      show(access_.out ? BusOp::io_write : BusOp::io_read, access_.port() + part.offset, bytes);
    }
    if (access_.is_string() && !access_.out) move(BusOp::data_write, data, n);
  }
  void move(BusOp op, std::uint32_t address, std::uint32_t n) {
    for (std::uint32_t i = 0; i < access_.size; ++i)
      show(op, address + i, {SeenAccess::byte(n, i)});
  }
  void fetch(std::uint32_t offset, const std::vector<std::uint8_t>& bytes) {
    at_ = {offset == 0 ? 0u : at_.instruction == 0 ? 1u : at_.instruction, 0};
    for (std::uint32_t i = 0; i < bytes.size(); ++i) {
      show(BusOp::code_read, kPortCode + offset + i, {bytes[i]});
    }
  }
  void show(BusOp op, std::uint32_t address, const std::vector<std::uint8_t>& bytes) {
    BusTransaction& t = shown.emplace_back();
    t.op = op;
    t.address = PhysAddr{address};
    t.size = static_cast<std::uint8_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), t.data.begin());
    if (counted_) {
      t.position = at_;
      t.flags = kPositionKnown;
    }
  }

  const BusRow& bus_;
  SeenAccess access_;
  bool counted_;
  Position at_;
};

class PortTransfers : public testing::TestWithParam<std::size_t> {
 protected:
  static const BusRow& bus() { return kBuses[GetParam()]; }

  /// Calls `check(access, counted, path)` for the whole matrix of this bus.
  template <class F>
  static void for_each_access(F&& check) {
    for (const std::uint32_t size : {1u, 2u, 4u}) {
      for (std::uint32_t alignment = 0; alignment < 4; ++alignment) {
        const Parts parts = size == 1   ? Parts{{0, 1}}
                            : size == 2 ? bus().word[alignment]
                                        : bus().dword[alignment];
        if (parts.empty()) continue;
        for (const Form form : kForms) {
          const bool strings = form == Form::string || form == Form::repeated;
          const bool has_strings = cpu_traits(bus().model).instructions >= InstructionSet::i286;
          if (strings && !has_strings) continue;
          for (const bool out : {false, true}) {
            check(SeenAccess{out, form, size, alignment, parts});
          }
        }
      }
    }
  }
  /// Without counts and with them, by instructions and by blocks.
  template <class F>
  static void for_each_way(const SeenAccess& access, F&& check) {
    for (const bool counted : {false, true}) {
      for (const auto path : {ExecutionPath::instructions, ExecutionPath::blocks}) {
        SCOPED_TRACE(access.text() + (counted ? ", counted" : "") +
                     (path == ExecutionPath::blocks ? ", by blocks" : ""));
        check(PortGuest(bus(), access, counted), path);
      }
    }
  }

  /// One of the four ways for each access. Every form and direction takes all four, one for each
  /// alignment.
  template <class F>
  static void for_a_way(const SeenAccess& access, F&& check) {
    const unsigned way = (static_cast<unsigned>(access.form) + access.alignment + access.out) % 4;
    const bool counted = way >= 2;
    const auto path = way % 2 == 0 ? ExecutionPath::instructions : ExecutionPath::blocks;
    SCOPED_TRACE(access.text() + ", way " + std::to_string(way));
    check(PortGuest(bus(), access, counted), path);
  }

  /// The transactions at the port that a test changes: one for each access, another one for each
  /// form and alignment. CITCAT_ACCEPTANCE=full: all.
  static std::vector<std::size_t> changed_ones(const SeenAccess& access, const PortGuest& guest) {
    const std::vector<std::size_t> all = guest.port_transactions();
    const char* const wanted = std::getenv("CITCAT_ACCEPTANCE");
    if (wanted != nullptr && std::string_view(wanted) == "full") return all;
    return {all[(static_cast<std::size_t>(access.form) * 5 + access.alignment) % all.size()]};
  }

  static void expect_agreement(const SeenAccess& access, const PortGuest::Result& found) {
    EXPECT_TRUE(found.matches()) << found.report.divergence->reason << ": expected "
                                 << found.report.divergence->expected << ", found "
                                 << found.report.divergence->found;
    const CheckCount& count = access.out ? found.totals.io_writes : found.totals.io_reads;
    EXPECT_EQ(count.checked, access.parts.size() * access.count());
    EXPECT_EQ(count.equal, count.checked);
    EXPECT_EQ(access.out ? found.report.io_writes : found.report.io_reads, access.count());
    if (access.out) return;
    if (access.is_string()) {
      for (std::uint32_t i = 0; i < found.memory.size(); ++i) {
        EXPECT_EQ(found.memory[i], SeenAccess::byte(i / access.size, i % access.size)) << i;
      }
    } else {
      const std::uint32_t mask = access.size == 4 ? ~0u : (1u << 8 * access.size) - 1;
      EXPECT_EQ(found.cpu.gpr[kEax], (kOldEax & ~mask) | SeenAccess::value(0, access.size));
    }
  }
};

TEST_P(PortTransfers, OfEveryWidthAlignmentAndFormAreTheAccessThatTheInstructionMakes) {
  for_each_access([](const SeenAccess& access) {
    for_each_way(access, [&](const PortGuest& guest, ExecutionPath path) {
      expect_agreement(access, guest.run(path));
    });
  });
}

/// As monitors above the bus show them.
TEST_P(PortTransfers, MayBeShownAsOneWhateverTheBus) {
  for_each_access([](SeenAccess access) {
    access.parts = {{0, access.size}};
    for_a_way(access, [&](const PortGuest& guest, ExecutionPath path) {
      expect_agreement(access, guest.run(path));
    });
  });
}

TEST_P(PortTransfers, DifferWhereOneOfThemIsMissing) {
  for_each_access([](const SeenAccess& access) {
    for_a_way(access, [&](const PortGuest& guest, ExecutionPath path) {
      for (const std::size_t at : changed_ones(access, guest)) {
        PortGuest changed = guest;
        changed.shown.erase(changed.shown.begin() + static_cast<std::ptrdiff_t>(at));
        EXPECT_FALSE(changed.run(path).matches()) << at;
      }
    });
  });
}

TEST_P(PortTransfers, DifferInEachBitOfEachByteThatIsWritten) {
  for_each_access([](const SeenAccess& access) {
    if (!access.out) return;
    const PortGuest guest(bus(), access, true);
    SCOPED_TRACE(access.text());
    for (const std::size_t at : changed_ones(access, guest)) {
      for (std::uint32_t i = 0; i < guest.shown[at].size; ++i) {
        PortGuest changed = guest;
        changed.shown[at].data[i] ^= static_cast<std::uint8_t>(1u << (at + i) % 8);
        const PortGuest::Result found = changed.run(ExecutionPath::instructions);
        ASSERT_FALSE(found.matches()) << at;
        EXPECT_EQ(found.report.divergence->transaction, at);
      }
    }
  });
}

TEST_P(PortTransfers, DifferAtAnotherPort) {
  for_each_access([](const SeenAccess& access) {
    const PortGuest guest(bus(), access, true);
    SCOPED_TRACE(access.text());
    for (const std::size_t at : changed_ones(access, guest)) {
      PortGuest changed = guest;
      changed.shown[at].address = changed.shown[at].address.plus32(1);
      EXPECT_FALSE(changed.run(ExecutionPath::instructions).matches()) << at;
    }
  });
}

TEST_P(PortTransfers, DifferInTheOtherDirection) {
  for_each_access([](const SeenAccess& access) {
    PortGuest guest(bus(), access, true);
    SCOPED_TRACE(access.text());
    for (const std::size_t at : changed_ones(access, guest)) {
      PortGuest changed = guest;
      changed.shown[at].op = access.out ? BusOp::io_read : BusOp::io_write;
      EXPECT_FALSE(changed.run(ExecutionPath::instructions).matches()) << at;
    }
  });
}

/// The capture ends between two transfers: all that it shows agrees, and the access is not made.
TEST_P(PortTransfers, EndTheReplayInFrontOfAnAccessThatIsCutOff) {
  for_each_access([](const SeenAccess& access) {
    for_a_way(access, [&](const PortGuest& guest, ExecutionPath path) {
      const std::vector<std::size_t> ports = guest.port_transactions();
      for (std::size_t n = 0; n + 1 < access.parts.size(); ++n) {
        PortGuest cut = guest;
        cut.shown.resize(ports[n] + 1);
        const PortGuest::Result found = cut.run(path);
        EXPECT_TRUE(found.matches()) << n << " " << found.report.divergence->reason;
        EXPECT_EQ(found.report.instructions, 1u);
        EXPECT_EQ((access.out ? found.totals.io_writes : found.totals.io_reads).equal, n + 1);
        EXPECT_EQ(found.cpu.eip, 1u);
      }
    });
  });
}

INSTANTIATE_TEST_SUITE_P(, PortTransfers, testing::Range(std::size_t{0}, kBuses.size()),
                         [](const auto& row) { return kBuses[row.param].name; });

/// What is refused although its bytes are the right ones.
struct Wrong {
  const char* what;
  CpuModel model;
  std::uint32_t bus_bytes, size, alignment;
  Parts parts;
};

TEST(PortTransfersThatNoBusMakes, AreRefused) {
  const std::vector<Wrong> wrong{
      {"the upper byte first", CpuModel::i8088, 1, 2, 0, {{1, 1}, {0, 1}}},
      {"the upper byte first", CpuModel::i286, 2, 2, 3, {{1, 1}, {0, 1}}},
      {"an aligned word in bytes", CpuModel::i8088, 2, 2, 0, {{0, 1}, {1, 1}}},
      {"an aligned word in bytes", CpuModel::i286, 2, 2, 2, {{0, 1}, {1, 1}}},
      {"an aligned word in bytes", CpuModel::pentium, 8, 2, 0, {{0, 1}, {1, 1}}},
      {"a dword in words", CpuModel::pentium, 8, 4, 0, {{0, 2}, {2, 2}}},
      {"the upper word of one dword first", CpuModel::i386, 2, 4, 0, {{2, 2}, {0, 2}}},
      {"a word across two words of the bus", CpuModel::i386, 2, 4, 1, {{3, 1}, {0, 2}, {2, 1}}},
      {"three bytes on 16 bits", CpuModel::i386, 2, 4, 1, {{3, 1}, {0, 3}}},
      {"the upper dword in the middle", CpuModel::i386, 2, 4, 1, {{0, 1}, {3, 1}, {1, 2}}},
      {"a byte twice", CpuModel::i386, 2, 4, 0, {{0, 2}, {0, 2}}},
  };
  for (const Wrong& w : wrong) {
    const BusRow row{"", w.model, w.bus_bytes, {}, {}};
    for (const bool out : {false, true}) {
      const SeenAccess access{out, Form::dx, w.size, w.alignment, w.parts};
      SCOPED_TRACE(std::string(w.what) + ": " + access.text());
      EXPECT_FALSE(PortGuest(row, access, true).run(ExecutionPath::instructions).matches());
      EXPECT_FALSE(PortGuest(row, access, false).run(ExecutionPath::instructions).matches());
    }
  }
}

/// mov al,[0]; out dx,ax; mov bl,[0]; out dx,al; hlt, and another bus master writes to [0] behind
/// so much of the ports.
std::uint32_t bl_after(CpuModel model, std::uint32_t bus_bytes, PortUnit unit, std::uint64_t io) {
  Recording recording;
  recording.bus = {CacheForm::none, 0, bus_bytes, 0xfffff};
  recording.port_unit = unit;
  recording.initial.model = model;
  set_register(recording.initial, "cs", kPortCode >> 4);
  set_register(recording.initial, "ds", kPortData >> 4);
  set_register(recording.initial, "dx", 0x3d5);
  const std::uint8_t code[] = {0xa0, 0, 0, 0xef, 0x8a, 0x1e, 0, 0, 0xee, 0xf4};
  recording.image.set(PhysAddr{kPortCode}, code);
  recording.image.set(PhysAddr{kPortData}, 1);
  ExternalWrite write;
  write.address = PhysAddr{kPortData};
  write.data = {2};
  write.anchor.io = io;
  recording.external_writes.push_back(write);
  Replayer replayer(recording, nullptr, {});
  replayer.run();
  return replayer.machine().save().gpr[kEbx] & 0xff;
}

TEST(AnchorsOfPorts, PlaceWhatComesBehindASplitAccess) {
  EXPECT_EQ(bl_after(CpuModel::i8088, 1, PortUnit::bytes, 2), 2u);
  EXPECT_EQ(bl_after(CpuModel::i8088, 1, PortUnit::bytes, 3), 1u);
  EXPECT_EQ(bl_after(CpuModel::i286, 2, PortUnit::bytes, 2), 2u);
  EXPECT_EQ(bl_after(CpuModel::i486, 4, PortUnit::bytes, 2), 2u);
}

/// Archives of earlier versions count transactions.
TEST(AnchorsOfPorts, PlaceWhatComesBehindASplitAccessInOldArchives) {
  EXPECT_EQ(bl_after(CpuModel::i8088, 1, PortUnit::transactions, 2), 2u);
  EXPECT_EQ(bl_after(CpuModel::i8088, 1, PortUnit::transactions, 3), 1u);
  EXPECT_EQ(bl_after(CpuModel::i286, 2, PortUnit::transactions, 2), 2u);
  EXPECT_EQ(bl_after(CpuModel::i486, 4, PortUnit::transactions, 1), 2u);
  EXPECT_EQ(bl_after(CpuModel::i486, 4, PortUnit::transactions, 2), 1u);
}

}  // namespace
}  // namespace citcat
