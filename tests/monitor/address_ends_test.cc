// Where addresses end: behind the last one of 32 bits comes 0, in a page the next one may be
// anywhere, and an offset of 16 bits goes on at its segment's beginning.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

using ByteList = std::vector<std::uint8_t>;

/// Memory that is no RAM: each byte is the low one of its address.
void low_address_bytes(std::uint64_t address, void* bytes, std::uint64_t size, bool store) {
  for (std::uint64_t k = 0; k < size && !store; ++k)
    static_cast<std::uint8_t*>(bytes)[k] = static_cast<std::uint8_t>(address + k);
}

TEST_F(BusTest, FirmwareIsFetchedUpToItsLastByte) {
  memory_.set_physical_access(low_address_bytes);
  BusModel bus(memory_, *sink_, CacheModel::i486);
  bus.clear();
  bus.fetch(0xfffffffa, ByteList{0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff}, false);
  auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].address, 0xfffffff8u);
  EXPECT_EQ(records[1].address, 0xfffffffcu);
  EXPECT_EQ(records[1].size, 4);
  EXPECT_EQ(records[1].data[3], 0xff);
  // It stays in the buffer until something is written there.
  bus.fetch(0xffffffff, ByteList{0xff}, true);
  EXPECT_TRUE(seen().empty());
  bus.write(0xffffffff, ByteList{1});
  bus.fetch(0xffffffff, ByteList{0xff}, true);
  records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].address, 0xfffffffcu);
}

TEST(InterruptLog, AddressesOutside64BitModeHave32Bits) {
  std::string path = testing::TempDir() + "citcat-monitor-test-XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  InterruptLog log;
  ASSERT_TRUE(log.open(path));
  // An emulator of 64 bits prints the sum of CS's base and EIP.
  const std::string text =
      "     7: v=30 e=0000 i=0 cpl=0 IP=0008:0000000000000200 pc=0000000100000100\n"
      "EAX=00000001 EBX=00000002 ECX=00000003 EDX=00000004\n"
      "CS =0008 ffffff00 ffffffff 00cf9b00 DPL=0 CS32 [-RA]\n"
      "EFER=0000000000000000\n";
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  LoggedEvent event;
  ASSERT_EQ(log.next(event), LogItem::event);
  EXPECT_EQ(event.pc, 0x100u);
  close(fd);
  unlink(path.c_str());
}

/// Paging: linear page N is page kPage + N of RAM for the first ones, the last one is kLast, and
/// the one before 1 MiB and the two behind it are the text screen's first page.
class AddressEnds : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kDirectory = 0x300000, kTable = 0x301000, kTopTable = 0x302000,
                                 kPages = 0x200000, kLast = 0x280000, kScreen = 0xb8000,
                                 kScreenAt = 0x100000, kCode = 0x1000;

  void SetUp() override {
    RecorderFixture::SetUp();
    std::memset(ram_ + kDirectory, 0, 0x3000);
    put(kDirectory, kTable | 0x67);
    put(kDirectory + 4 * 0x3ff, kTopTable | 0x67);
    for (std::uint32_t n = 0; n < 0x40; ++n) put(kTable + 4 * n, (kPages + 0x1000 * n) | 0x67);
    for (std::uint32_t n = 0; n < 2; ++n) put(kTable + 4 * ((kScreenAt >> 12) + n), kScreen | 0x7);
    put(kTopTable + 4 * 0x3ff, kLast | 0x67);
    ASSERT_TRUE(memory_.snapshot());
    LoggedState& now = registers_.state_;
    now.cr0 = 0x80000001;
    now.cr3 = kDirectory;
    now.segment[1] = {8, 0, ~0u, 0xcf9b00};
    recorder_.emplace(memory_, *sink_, log_, registers_, CacheModel::none);
  }
  void put(std::uint32_t at, std::uint32_t value) { std::memcpy(ram_ + at, &value, 4); }

  /// Where a linear address is in RAM.
  static std::uint32_t place(std::uint32_t linear) {
    return linear >= 0xfffff000 ? kLast + (linear & 0xfff) : kPages + linear;
  }
  /// An instruction there, which lives as long as the test.
  const Insn& paged(std::uint32_t linear, ByteList bytes) {
    kept_.push_back(insn(linear, std::move(bytes)));
    kept_.back().physical = place(linear);
    return kept_.back();
  }
  void start(const Insn& next) {
    registers_.state_.ip = next.linear;
    recorder_->start(next);
  }
  /// The recording begins with this instruction, and its fetch has been seen.
  void begin(const Insn& first) {
    registers_.state_.ip = first.linear;
    recorder_->begin(first, 0);
    ASSERT_TRUE(recorder_->active());
    start(first);
    (void)seen();
  }
  std::vector<std::uint32_t> addresses(RecordType type) {
    std::vector<std::uint32_t> out;
    for (const Seen& s : seen())
      if (s.type == static_cast<int>(type)) out.push_back(s.address);
    return out;
  }

  /// But for those of page tables.
  std::vector<Seen> data_reads() {
    std::vector<Seen> out;
    for (const Seen& s : seen())
      if (s.type == static_cast<int>(RecordType::data_read) && s.address < kDirectory)
        out.push_back(s);
    return out;
  }

  std::deque<Insn> kept_;
  std::optional<Recorder> recorder_;
};

TEST_F(AddressEnds, AnInstructionGoesOnAtAddress0) {
  begin(paged(kCode, {0x90}));
  start(paged(0xfffffffe, {0x05, 0x01, 0x02, 0x03, 0x04}));  // add eax, 04030201h
  EXPECT_EQ(addresses(RecordType::code_read), (std::vector<std::uint32_t>{kLast + 0xffc, kPages}));
}

TEST_F(AddressEnds, AnOperandGoesOnAtAddress0) {
  const Insn& load = paged(kCode, {0xa1, 0xfe, 0xff, 0xff, 0xff});
  begin(load);
  const ByteList value = {1, 2, 3, 4};
  recorder_->access(load, false, 0xfffffffe, kLast + 0xffe, false, value);
  const auto records = data_reads();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].address, kLast + 0xffe);
  EXPECT_EQ(records[1].address, kPages);
  EXPECT_EQ(records[1].data[0], 3);
}

TEST_F(AddressEnds, TheSecondPageOfADevicesOperandIsWhereItsEntrySays) {
  for (const bool store : {false, true}) {
    const Insn& move = paged(kCode, {0x66, 0xa1, 0xff, 0x0f, 0x10, 0});
    begin(move);
    const std::uint32_t first_at = kTable + 4 * (kScreenAt >> 12), second_at = first_at + 4;
    // The emulator has walked to both pages.
    for (const std::uint32_t at : {first_at, second_at}) put(at, kScreen | (store ? 0x67 : 0x27));
    recorder_->access(move, store, kScreenAt + 0xfff, kScreen + 0xfff, true, ByteList{0x61, 0x62});
    std::vector<std::uint32_t> device, marked;
    for (const Seen& s : seen()) {
      if (s.address >= 0xa0000 && s.address < 0xc0000) device.push_back(s.address);
      if (s.type == static_cast<int>(RecordType::data_write) && s.address >= kTable)
        marked.push_back(s.address);
    }
    EXPECT_EQ(device, (std::vector<std::uint32_t>{kScreen + 0xfff, kScreen})) << store;
    EXPECT_EQ(marked, (std::vector<std::uint32_t>{first_at, second_at})) << store;
  }
}

TEST_F(AddressEnds, APageFaultAtAddress0FindsTheFetchInTheLastPage) {
  put(kTable, 0);  // linear page 0 is not there
  put(kTopTable + 4 * 0x3ff, kLast | 0x7);
  ASSERT_TRUE(memory_.snapshot());
  begin(paged(kCode, {0x90}));
  const std::uint32_t top_at = kTopTable + 4 * 0x3ff;
  put(top_at, kLast | 0x27);
  registers_.state_.ip = 0xfffffffe;
  constexpr std::uint32_t kIdt = 0x2000, kHandler = 0x3000, kStack = 0x8000;
  put(kPages + kIdt + 8 * 14, 8u << 16 | kHandler);
  put(kPages + kIdt + 8 * 14 + 4, 0x8e00);
  char text[512];
  const int size = std::snprintf(
      text, sizeof text,
      "     0: v=0e e=0000 i=0 cpl=0 IP=0008:fffffffe pc=fffffffe SP=0010:%08x CR2=00000000\n"
      "ESI=00000000 EDI=00000000 EBP=00000000 ESP=%08x\n"
      "CS =0008 00000000 ffffffff 00cf9b00 DPL=0 CS32 [-RA]\n"
      "SS =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
      "GDT=     00004000 0000002f\nIDT=     %08x 000007ff\n"
      "CR0=80000001 CR2=00000000 CR3=%08x CR4=00000000\nEFER=0000000000000000\n",
      kStack, kStack, kIdt, kDirectory);
  ASSERT_EQ(write(log_file_, text, static_cast<std::size_t>(size)), size);
  start(paged(kHandler, {0x90}));
  // The walk to the first part is shown, with its mark.
  bool marked = false;
  for (const Seen& s : seen())
    marked |= s.type == static_cast<int>(RecordType::data_write) && s.address == top_at;
  EXPECT_TRUE(marked);
}

TEST_F(AddressEnds, ADescriptorTableGoesOnAtAddress0) {
  constexpr std::uint32_t kGdt = 0xfffffff0, kTask = 0x5000;
  registers_.state_.gdt_base = kGdt;
  registers_.state_.gdt_limit = 0x2f;
  registers_.state_.tr = {0x18, 0x3000, 0x67, 0x8b00};
  // Selector 20h is at linear 10h: a free task segment.
  put(place(0x10), kTask << 16 | 0x67);
  put(place(0x14), 0x8900);
  const Insn& jump = paged(kCode, {0xea, 0, 0, 0, 0, 0x20, 0});
  begin(jump);
  for (const std::uint32_t at : {0x10u, 0x14u})
    recorder_->access(jump, false, at, place(at), false, {ram_ + place(at), 4});
  (void)seen();
  // It is a task switch: of the word with the T bit half is read.
  recorder_->access(jump, false, kTask + 0x64, place(kTask + 0x64), false, ByteList{0, 0, 0, 0});
  const auto records = data_reads();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].size, 2);
}

TEST_F(AddressEnds, AReturnFindsItsSelectorsBehindTheEndOfASegmentOf64KiB) {
  constexpr std::uint32_t kTop = 0xfff8;  // of the stack: EIP and CS, then EFLAGS, ESP and SS
  registers_.state_.gpr[4] = kTop;
  registers_.state_.segment[2] = {0x23, 0, 0xffff, 0xf200};
  const Insn& iret = paged(kCode, {0xcf});
  begin(iret);
  for (unsigned n = 0; n < 5; ++n) {
    const std::uint32_t at = (kTop + 4 * n) & 0xffff;
    recorder_->access(iret, false, at, place(at), false, ByteList{0, 0, 0, 0});
  }
  std::vector<int> sizes;
  for (const Seen& s : data_reads()) sizes.push_back(s.size);
  EXPECT_EQ(sizes, (std::vector<int>{4, 4, 4, 4, 2}));
}

TEST_F(AddressEnds, AWordOfAFrameThatIsShownOtherwiseMayLieInTwoPages) {
  // EFLAGS of an NMI's frame is at 7ffdh, in pages that do not follow each other in RAM.
  constexpr std::uint32_t kIdt = 0x2000, kHandler = 0x3000, kStack = 0x8002, kOther = 0x290000;
  put(kTable + 4 * 8, kOther | 0x67);
  put(kPages + kIdt + 8 * 2, 8u << 16 | kHandler);
  put(kPages + kIdt + 8 * 2 + 4, 0x8e00);
  ASSERT_TRUE(memory_.snapshot());
  begin(paged(kCode, {0x90}));
  char text[512];
  const int size =
      std::snprintf(text, sizeof text,
                    "     0: v=02 e=0000 i=0 cpl=0 IP=0008:00001001 pc=00001001 SP=0010:%08x\n"
                    "ESI=00000000 EDI=00000000 EBP=00000000 ESP=%08x\nEIP=00001001 EFL=12345602\n"
                    "CS =0008 00000000 ffffffff 00cf9b00 DPL=0 CS32 [-RA]\n"
                    "SS =0010 00000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\n"
                    "GDT=     00004000 0000002f\nIDT=     %08x 000007ff\n"
                    "CR0=80000001 CR2=00000000 CR3=%08x CR4=00000000\nEFER=0000000000000000\n",
                    kStack, kStack, kIdt, kDirectory);
  ASSERT_EQ(write(log_file_, text, static_cast<std::size_t>(size)), size);
  const std::uint8_t untouched = ram_[kPages + 0x8000];
  start(paged(kHandler, {0x90}));
  EXPECT_EQ(ram_[kPages + 0x7ffe], 0x02);
  EXPECT_EQ(ram_[kPages + 0x7fff], 0x56);
  EXPECT_EQ(ram_[kOther], 0x34);
  EXPECT_EQ(ram_[kOther + 1], 0x12);
  EXPECT_EQ(ram_[kPages + 0x8000], untouched);
  bool shown = false;
  for (const Seen& s : seen())
    shown |= s.type == static_cast<int>(RecordType::data_write) && s.address == kOther;
  EXPECT_TRUE(shown);
}

TEST_F(AddressEnds, AStateBehindTheEndOfItsSegmentsAddressesHasAnOffsetOf32Bits) {
  LongModeRegisters wide;
  registers_.long_mode_ = wide;
  registers_.state_.segment[1].base = 0xfffff000;
  registers_.state_.ip = 0x2000;
  // EIP 2000h from base FFFFF000h on is linear 1000h.
  recorder_->begin(paged(kCode, {0x90}), 0);
  std::uint32_t upper = ~0u, lower = 0;
  for (const Seen& s : seen()) {
    if (s.address == 0xfef00000 + 0x88) std::memcpy(&lower, s.data.data(), 4);
    if (s.address == 0xfef00000 + 0x8c) std::memcpy(&upper, s.data.data(), 4);
  }
  EXPECT_EQ(lower, 0x2000u);
  EXPECT_EQ(upper, 0u);
}

}  // namespace
}  // namespace citcat::monitor
