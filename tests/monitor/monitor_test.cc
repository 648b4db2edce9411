// The monitor's parts without an emulator: what they put on the bus is read back from a pipe.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "monitor/bus/bus_model.h"
#include "monitor/bus/guest_memory.h"
#include "monitor/bus/record_sink.h"
#include "monitor/instructions/insn_class.h"
#include "monitor/log/interrupt_log.h"
#include "monitor/options/trigger.h"
#include "monitor/state/fpu_pointers.h"
#include "tests/monitor/bus_test_fixture.h"

namespace citcat::monitor {
namespace {

InsnClass classified(std::initializer_list<std::uint8_t> bytes, CodeSize size = CodeSize::bits32) {
  const std::vector<std::uint8_t> copy(bytes);
  return classify(copy, size);
}

TEST(InsnClass, KnowsPortAccessesWithTheirSizeAndPort) {
  EXPECT_EQ(classified({0xec}).kind, InsnKind::in);
  EXPECT_EQ(classified({0xec}).operand_bytes, 1);
  EXPECT_TRUE(classified({0xec}).port_in_dx);
  EXPECT_EQ(classified({0xed}).operand_bytes, 4);
  EXPECT_EQ(classified({0x66, 0xed}).operand_bytes, 2);
  EXPECT_EQ(classified({0xed}, CodeSize::bits16).operand_bytes, 2);
  EXPECT_EQ(classified({0xe6, 0x80}).kind, InsnKind::out);
  EXPECT_EQ(classified({0xe6, 0x80}).port, 0x80);
  EXPECT_FALSE(classified({0xe6, 0x80}).port_in_dx);
}

TEST(InsnClass, TellsRepeatedStringInstructionsFromSingleOnes) {
  EXPECT_TRUE(classified({0xf3, 0xa4}).repeated);
  EXPECT_FALSE(classified({0xa4}).repeated);
  EXPECT_EQ(classified({0xf3, 0x66, 0xab}).kind, InsnKind::stos);
  // F3 before anything else is no repetition.
  EXPECT_FALSE(classified({0xf3, 0x0f, 0x10, 0x00}).repeated);
}

TEST(InsnClass, KnowsBranchesWhichMayFollowThemselves) {
  for (const auto& bytes : {std::vector<std::uint8_t>{0xeb, 0xfe},
                            {0xe2, 0xfe},
                            {0x74, 0xfe},
                            {0x0f, 0x84, 0, 0, 0, 0},
                            {0xff, 0xe0},
                            {0xc3}})
    EXPECT_TRUE(classify(bytes, CodeSize::bits32).branch) << std::hex << int{bytes[0]};
  EXPECT_FALSE(classified({0xff, 0x00}).branch);  // INC
  EXPECT_FALSE(classified({0x89, 0xc0}).branch);
}

TEST(InsnClass, TakesOperandSizesOfPortsFromTheCodeSegment) {
  const std::vector<std::uint8_t> in_dx{0xed}, prefixed{0x66, 0xed};
  EXPECT_EQ(classify(in_dx, CodeSize::bits32).operand_bytes, 4);
  EXPECT_EQ(classify(in_dx, CodeSize::bits16).operand_bytes, 2);
  EXPECT_EQ(classify(prefixed, CodeSize::bits16).operand_bytes, 4);
}

TEST(InsnClass, KnowsTheReturnOfAllRegisters) {
  EXPECT_EQ(classified({0x61}).kind, InsnKind::pop_all);
  EXPECT_EQ(classified({0x60}).kind, InsnKind::plain);
}

TEST(InsnClass, KnowsWhatMarksDescriptorsAsAccessed) {
  EXPECT_TRUE(classified({0x8e, 0xd8}).marks_descriptor);              // MOV DS,AX
  EXPECT_TRUE(classified({0x0f, 0xb2, 0x24, 0x24}).marks_descriptor);  // LSS
  EXPECT_TRUE(classified({0xc5, 0x00}).marks_descriptor);              // LDS
  EXPECT_TRUE(classified({0x1f}).marks_descriptor);                    // POP DS
  EXPECT_TRUE(classified({0x0f, 0xa1}).marks_descriptor);              // POP FS
  EXPECT_FALSE(classified({0x0f, 0x00, 0xd8}).marks_descriptor);       // LTR: a dword, busy
  EXPECT_FALSE(classified({0x0f, 0x00, 0xd0}).marks_descriptor);       // LLDT
  EXPECT_FALSE(classified({0x8c, 0x18}).marks_descriptor);             // MOV [EAX],DS
  EXPECT_FALSE(classified({0x89, 0x18}).marks_descriptor);
}

TEST(InsnClass, TellsLoadsOfCr3FromOtherControlRegisters) {
  EXPECT_TRUE(classified({0x0f, 0x22, 0xd8}).loads_cr3);
  EXPECT_FALSE(classified({0x0f, 0x22, 0xe0}).loads_cr3);  // CR4
  EXPECT_FALSE(classified({0x0f, 0x20, 0xd8}).loads_cr3);  // MOV EAX,CR3
}

TEST(InsnClass, TellsFxsaveFromItsRelatives) {
  EXPECT_EQ(classified({0x0f, 0xae, 0x00}).kind, InsnKind::fxsave);
  EXPECT_EQ(classified({0x0f, 0xae, 0x08}).kind, InsnKind::fxrstor);
  EXPECT_EQ(classified({0x0f, 0xae, 0x10}).kind, InsnKind::plain);  // LDMXCSR
  EXPECT_EQ(classified({0x0f, 0xae, 0x20}).kind, InsnKind::xsave);
  EXPECT_EQ(classified({0x0f, 0xae, 0x28}).kind, InsnKind::xrstor);
  EXPECT_EQ(classified({0x0f, 0xae, 0x30}).kind, InsnKind::xsaveopt);
  EXPECT_EQ(classified({0x66, 0x0f, 0xae, 0x30}).kind, InsnKind::flush_line);  // CLWB
  EXPECT_EQ(classified({0xf3, 0x0f, 0xae, 0x20}).kind, InsnKind::plain);       // PTWRITE
  EXPECT_EQ(classified({0x0f, 0xc7, 0x20}).kind, InsnKind::compacted_state);   // XSAVEC
  EXPECT_EQ(classified({0x0f, 0xae, 0xe8}).kind, InsnKind::plain);             // LFENCE
}

TEST(InsnClass, KnowsWhatIsFlushed) {
  for (const auto& bytes : std::vector<std::vector<std::uint8_t>>{
           {0x0f, 0xae, 0xbb, 0x78, 0x56, 0x34, 0x12},           // CLFLUSH [EBX+12345678h]
           {0x66, 0x0f, 0xae, 0xbb, 0x78, 0x56, 0x34, 0x12},     // CLFLUSHOPT
           {0x66, 0x0f, 0xae, 0xb3, 0x78, 0x56, 0x34, 0x12}}) {  // CLWB
    const InsnDetails flush = classify(bytes, CodeSize::bits32);
    EXPECT_EQ(flush.kind, InsnKind::flush_line);
    EXPECT_EQ(flush.operand.base, 3);
    EXPECT_EQ(flush.operand.displacement, 0x12345678);
    EXPECT_EQ(flush.operand.segment, 3);
  }
  EXPECT_EQ(classified({0x0f, 0xae, 0xf8}).kind, InsnKind::plain);  // SFENCE
}

TEST(InsnClass, KnowsWhatReversesItsBytes) {
  EXPECT_TRUE(classified({0x0f, 0x38, 0xf0, 0x03}).reverses);         // MOVBE EAX, [EBX]
  EXPECT_TRUE(classified({0x66, 0x0f, 0x38, 0xf1, 0x03}).reverses);   // MOVBE [EBX], AX
  EXPECT_FALSE(classified({0xf2, 0x0f, 0x38, 0xf0, 0x03}).reverses);  // CRC32
  EXPECT_FALSE(classified({0x8b, 0x03}).reverses);
}

TEST(InsnClass, TellsX87InstructionsThatSetPointersFromControlOnes) {
  EXPECT_EQ(classified({0xd8, 0xc1}).kind, InsnKind::x87);  // FADD
  EXPECT_EQ(classified({0xd8, 0xc1}).fpu_opcode, 0x0c1);
  EXPECT_EQ(classified({0xdd, 0x45, 0xf8}).fpu_opcode, 0x545);  // FLD [EBP-8]
  EXPECT_EQ(classified({0xdd, 0x45, 0xf8}).data_segment, 2);
  EXPECT_EQ(classified({0xdd, 0x04, 0x24}).data_segment, 2);  // [ESP]
  EXPECT_EQ(classified({0xdd, 0x05, 0, 0, 0, 0}).data_segment, 3);
  EXPECT_EQ(classified({0x65, 0xdd, 0x05, 0, 0, 0, 0}).data_segment, 5);
  EXPECT_EQ(classified({0xd9, 0x7d, 0xfe}).kind, InsnKind::plain);  // FNSTCW
  EXPECT_EQ(classified({0xdf, 0xe0}).kind, InsnKind::plain);        // FNSTSW AX
  EXPECT_EQ(classified({0xdb, 0xe3}).kind, InsnKind::x87_init);     // FNINIT
  EXPECT_EQ(classified({0xdd, 0x20}).kind, InsnKind::x87_load);     // FRSTOR
  EXPECT_EQ(classified({0xdd, 0x71, 0x40}).kind, InsnKind::x87_save);
  EXPECT_EQ(classified({0xd9, 0x30}).kind, InsnKind::x87_store);
  EXPECT_EQ(classified({0x66, 0xd9, 0x30}).operand_bytes, 2);
}

TEST(InsnClass, KnowsWhatPutsTheX87RegistersInUseAndWhen) {
  EXPECT_EQ(classified({0x0f, 0x66, 0x00}).mmx, MmxUse::before_operand);        // PCMPGTD MM, M64
  EXPECT_EQ(classified({0x0f, 0xe7, 0x00}).mmx, MmxUse::before_operand);        // MOVNTQ
  EXPECT_EQ(classified({0x0f, 0x38, 0x1c, 0x00}).mmx, MmxUse::before_operand);  // PABSB
  EXPECT_EQ(classified({0x0f, 0x2a, 0x00}).mmx, MmxUse::behind_operand);        // CVTPI2PS
  EXPECT_EQ(classified({0x66, 0x0f, 0x66, 0x00}).mmx, MmxUse::none);            // of XMM registers
  EXPECT_EQ(classified({0xf3, 0x0f, 0x6f, 0x00}).mmx, MmxUse::none);            // MOVDQU
  EXPECT_EQ(classified({0x0f, 0x38, 0x20, 0x00}).mmx, MmxUse::none);
  EXPECT_EQ(classified({0x0f, 0xc8}).mmx, MmxUse::none);  // BSWAP
  EXPECT_EQ(classified({0x0f, 0x77}).mmx, MmxUse::none);
  EXPECT_EQ(classified({0x0f, 0x77}).kind, InsnKind::emms);
}

TEST(InsnClass, KnowsWhereReturnsFindTheOuterStackSegment) {
  EXPECT_EQ(classified({0xcf}).stack_segment_at, 16);
  EXPECT_EQ(classified({0x66, 0xcf}).stack_segment_at, 8);
  EXPECT_EQ(classified({0xcb}).stack_segment_at, 12);
  EXPECT_EQ(classified({0xca, 0x08, 0x00}).stack_segment_at, 20);
  EXPECT_TRUE(classified({0xcf}).branch);
}

TEST(InsnClass, KnowsWhatLoadsTheCodeSegment) {
  using Bytes = std::vector<std::uint8_t>;
  for (const Bytes& far : {Bytes{0xea, 0, 0, 0, 0, 8, 0}, Bytes{0x9a, 0, 0, 0, 0, 8, 0},
                           Bytes{0xff, 0x18}, Bytes{0xff, 0x6c, 0x24, 4}, Bytes{0xcb}, Bytes{0xcf}})
    EXPECT_TRUE(loads_code_segment(classify(far, CodeSize::bits32).kind)) << int{far[0]};
  for (const Bytes& near : {Bytes{0xe9, 0, 0, 0, 0}, Bytes{0xff, 0x10}, Bytes{0xff, 0x20},
                            Bytes{0xff, 0x30}, Bytes{0xc3}})
    EXPECT_FALSE(loads_code_segment(classify(near, CodeSize::bits32).kind)) << int{near[0]};
}

TEST(InsnClass, KnowsWhatMovesDescriptorTables) {
  const auto kind = [](std::vector<std::uint8_t> bytes) {
    return classify(bytes, CodeSize::bits32).kind;
  };
  EXPECT_EQ(kind({0x0f, 0x01, 0x15, 0, 0, 0, 0}), InsnKind::descriptor_table);  // LGDT
  EXPECT_EQ(kind({0x0f, 0x01, 0x1d, 0, 0, 0, 0}), InsnKind::descriptor_table);  // LIDT
  EXPECT_EQ(kind({0x0f, 0x00, 0xd0}), InsnKind::local_table);                   // LLDT AX
  EXPECT_EQ(kind({0x0f, 0x00, 0xd8}), InsnKind::task_register);                 // LTR AX
}

TEST(InsnClass, KnowsMovesOfSegmentRegistersOnTheStack) {
  EXPECT_EQ(classified({0x1e}).kind, InsnKind::push_segment);
  EXPECT_EQ(classified({0x1f}).kind, InsnKind::pop_segment);
  EXPECT_EQ(classified({0x0f, 0xa1}).kind, InsnKind::pop_segment);
  EXPECT_EQ(classified({0x58}).kind, InsnKind::plain);
}

TEST(FpuPointers, StoreWhatTheLastInstructionThatEndedWas) {
  FpuPointers pointers;
  pointers.begin(0x545, 0x08048123, 0x73);
  pointers.operand(0xbffff000, 0x7b);
  pointers.operand(0xbffff004, 0x7b);  // the second half of the same operand
  pointers.commit();
  pointers.begin(0x0c1, 0x08049000, 0x73);  // faults: never ends
  std::array<std::uint8_t, 32> image{};
  image.fill(0xee);
  pointers.store(0, image.data());
  pointers.store(16, image.data() + 16);
  EXPECT_EQ(image[5], 0xee);
  const std::array<std::uint8_t, 10> code = {0x45, 0x05, 0x23, 0x81, 0x04, 0x08, 0x73, 0, 0, 0};
  EXPECT_TRUE(std::equal(code.begin(), code.end(), image.begin() + 6));
  const std::array<std::uint8_t, 8> data = {0x00, 0xf0, 0xff, 0xbf, 0x7b, 0, 0, 0};
  EXPECT_TRUE(std::equal(data.begin(), data.end(), image.begin() + 16));

  FpuPointers loaded;
  loaded.load_image(image.data());
  std::array<std::uint8_t, 32> again{};
  loaded.store(0, again.data());
  loaded.store(16, again.data() + 16);
  EXPECT_TRUE(std::equal(image.begin() + 6, image.begin() + 24, again.begin() + 6));
}

TEST(FpuPointers, AnInstructionWithoutAnOperandKeepsTheOldOne) {
  FpuPointers pointers;
  pointers.begin(0x545, 0x100, 0x73);
  pointers.operand(0x2000, 0x7b);
  pointers.commit();
  pointers.begin(0x0c1, 0x103, 0x73);
  pointers.commit();
  std::array<std::uint8_t, 16> block{};
  pointers.store(16, block.data());
  EXPECT_EQ(block[1], 0x20);
  pointers.clear();
  pointers.store(16, block.data());
  EXPECT_EQ(block[1], 0);
}

/// The seven fields of an environment, where the emulator stores FCW, FSW and FTW right.
std::array<std::uint32_t, 7> environment(const FpuPointers& pointers, EnvironmentForm form) {
  std::array<std::uint32_t, 7> fields{0x37f, 0x3800, 0xffff, 1, 2, 3, 4};
  for (unsigned n = 0; n < fields.size(); ++n)
    fields[n] = pointers.stored_field(form, n, fields[n]);
  return fields;
}

TEST(FpuPointers, StoreEveryFormOfTheEnvironment) {
  FpuPointers pointers;
  pointers.begin(0x545, 0x08048123, 0x73);
  pointers.operand(0xbffff000, 0x7b);
  pointers.commit();
  using Fields = std::array<std::uint32_t, 7>;
  EXPECT_EQ(
      environment(pointers, {true, false}),
      (Fields{0xffff037f, 0xffff3800, 0xffffffff, 0x08048123, 0x05450073, 0xbffff000, 0xffff007b}));
  const Fields narrow = environment(pointers, {false, false});
  EXPECT_EQ(narrow[4], 0x73u);
  EXPECT_EQ(narrow[6], 0x7bu);
  pointers.begin(0x545, 0x1234, 0x2345);
  pointers.operand(0x5678, 0xf000);
  pointers.commit();
  EXPECT_EQ(environment(pointers, {true, true}),
            (Fields{0xffff037f, 0xffff3800, 0xffffffff, 0xffff4684, 0x2545, 0xffff5678, 0xf000}));
  EXPECT_EQ(environment(pointers, {false, true})[4], 0x2545u);
}

TEST(FpuPointers, LoadWhatTheyHaveStored) {
  for (const EnvironmentForm form : {EnvironmentForm{true, false}, EnvironmentForm{true, true}}) {
    FpuPointers pointers, again;
    pointers.begin(0x545, 0x1234, 0x2345);
    pointers.operand(0x5678, 0x3000);
    pointers.commit();
    const auto fields = environment(pointers, form);
    again.load_environment(form, fields);
    EXPECT_EQ(environment(again, form), fields) << form.linear;
  }
}

TEST(Trigger, ReadsEveryFormAndRefusesOthers) {
  EXPECT_EQ(parse_trigger("driver")->kind, Trigger::Kind::driver);
  EXPECT_EQ(parse_trigger("reset")->kind, Trigger::Kind::reset);
  EXPECT_EQ(parse_trigger("process:ls")->kind, Trigger::Kind::process);
  EXPECT_EQ(parse_trigger("exit:/bin/ls")->text, "/bin/ls");
  EXPECT_FALSE(parse_trigger("process:"));
  EXPECT_EQ(parse_trigger("address:c1000000")->number, 0xc1000000u);
  EXPECT_EQ(parse_trigger("address:0xc1000000")->number, 0xc1000000u);
  EXPECT_EQ(parse_trigger("address:ffffffff81000000")->number, 0xffffffff81000000u);
  EXPECT_EQ(parse_trigger("count:50000000")->number, 50000000u);
  EXPECT_EQ(parse_trigger("port:80=5a")->value, 0x5au);
  EXPECT_EQ(parse_trigger("console:login: ")->text, "login: ");
  for (const char* bad : {"", "drive", "address:", "address:xyz", "address:10000000000000000",
                          "port:10000", "port:80=", "count:", "count:-1", "console:"})
    EXPECT_FALSE(parse_trigger(bad)) << bad;
}

TEST(Trigger, FindsTextOnTheSerialPortAcrossOtherTraffic) {
  PortWatch watch(*parse_trigger("console:aab"));
  EXPECT_FALSE(watch.write(0x3f8, 'a', 1));
  EXPECT_FALSE(watch.write(0x3f9, 'x', 1));
  EXPECT_FALSE(watch.write(0x3f8, 'a', 1));
  EXPECT_FALSE(watch.write(0x3f8, 'a', 1));
  EXPECT_TRUE(watch.write(0x3f8, 0x12300 | 'b', 1));
}

TEST(InterruptLog, ReadsAnInterruptAndTheStateBeforeIt) {
  std::string path = testing::TempDir() + "citcat-monitor-test-XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  InterruptLog log;
  ASSERT_TRUE(log.open(path));
  EXPECT_FALSE(log.pending());
  const std::string text =
      "Servicing hardware INT=0x30\n"
      "     7: v=30 e=0000 i=0 cpl=3 IP=0073:08048000 pc=08048000 SP=007b:bffff000 "
      "env->regs[R_EAX]=00000001\n"
      "EAX=00000001 EBX=00000002 ECX=00000003 EDX=00000004\n"
      "ESI=00000005 EDI=00000006 EBP=00000007 ESP=bffff000\n"
      "EIP=08048000 EFL=00000246 [---Z-P-] CPL=3 II=0 A20=1 SMM=0 HLT=0\n"
      "SS =007b 00000000 ffffffff 00cff300 DPL=3 DS   [-WA]\n"
      "TR =0080 ff406000 0000407b 00008b00 DPL=0 TSS32-busy\n"
      "GDT=     ff401000 000000ff\n"
      "CR0=80050033 CR2=b7f00000 CR3=01d30000 CR4=000006d0\n"
      "EFER=0000000000000000\n";
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  LoggedEvent event;
  ASSERT_TRUE(log.pending());
  ASSERT_EQ(log.next(event), LogItem::event);
  EXPECT_EQ(event.vector, 0x30u);
  EXPECT_TRUE(event.hardware);
  EXPECT_FALSE(event.software);
  EXPECT_EQ(event.cpl, 3u);
  EXPECT_EQ(event.pc, 0x08048000u);
  EXPECT_EQ(event.before.gpr[1], 3u);
  EXPECT_EQ(event.before.gpr[4], 0xbffff000u);
  EXPECT_EQ(event.before.segment[2].flags, 0x00cff300u);
  EXPECT_EQ(event.before.tr.base, 0xff406000u);
  EXPECT_EQ(event.before.gdt_base, 0xff401000u);
  EXPECT_EQ(event.before.cr3, 0x01d30000u);
  EXPECT_FALSE(log.pending());
  EXPECT_EQ(log.next(event), LogItem::nothing);
  close(fd);
  unlink(path.c_str());
}

/// A log that is written by events of real mode, of a line each.
class LongLog : public ::testing::Test {
 protected:
  static constexpr std::size_t kWindow = 2 << 20;
  void SetUp() override {
    file_ = mkstemp(path_.data());
    ASSERT_GE(file_, 0);
    ASSERT_TRUE(log_.open(path_, kWindow));
  }
  void TearDown() override {
    close(file_);
    unlink(path_.c_str());
  }
  void append(unsigned vector) {
    char text[64];
    const int size = std::snprintf(text, sizeof text, "Servicing hardware INT=0x%02x\n", vector);
    ASSERT_EQ(write(file_, text, static_cast<std::size_t>(size)), size);
    written_ += static_cast<std::size_t>(size);
  }

  std::string path_ = testing::TempDir() + "citcat-monitor-test-XXXXXX";
  int file_ = -1;
  std::size_t written_ = 0;
  InterruptLog log_;
};

TEST_F(LongLog, IsReadBeyondTheWindowThatIsMapped) {
  for (unsigned n = 0; written_ < 3 * kWindow; ++n) {
    append(n & 0xff);
    LoggedEvent event;
    ASSERT_EQ(log_.next(event), LogItem::event) << n;
    ASSERT_EQ(event.vector, n & 0xff);
  }
  EXPECT_FALSE(log_.failed());
}

TEST_F(LongLog, WhatIsPassedOverMayBeGone) {
  while (written_ < 2 * kWindow) append(0x20);
  ASSERT_EQ(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kWindow), 0);
  log_.skip();
  EXPECT_FALSE(log_.pending());
  append(0x42);
  LoggedEvent event;
  ASSERT_TRUE(log_.pending());
  ASSERT_EQ(log_.next(event), LogItem::event);
  EXPECT_EQ(event.vector, 0x42u);
}

TEST_F(BusTest, WithoutACacheEveryReadAppearsSplitAtDwords) {
  BusModel bus(memory_, *sink_, CacheModel::none);
  bus.clear();
  load(bus, 0x200002, 4);
  load(bus, 0x200002, 4);
  const auto records = seen();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].address, 0x200002u);
  EXPECT_EQ(records[0].size, 2);
  EXPECT_EQ(records[1].address, 0x200004u);
  EXPECT_EQ(records[3].size, 2);
}

TEST_F(BusTest, I486FillsALineOnceAndShowsEveryWrite) {
  BusModel bus(memory_, *sink_, CacheModel::i486);
  bus.clear();
  load(bus, 0x200004, 4);
  load(bus, 0x20000c, 4);
  store(bus, 0x200008, {1, 2, 3, 4});
  load(bus, 0x200008, 4);
  const auto records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, 2);
  EXPECT_EQ(records[0].address, 0x200000u);
  EXPECT_EQ(records[0].size, 16);
  EXPECT_EQ(records[0].flags, kLineBurst);
  EXPECT_EQ(records[1].type, 3);
  EXPECT_EQ(bus.external_changes(), 0u);
}

TEST_F(BusTest, ALineThatADeviceWroteToIsFilledAgain) {
  for (const CacheModel model : {CacheModel::i486, CacheModel::write_back, CacheModel::pentium}) {
    BusModel bus(memory_, *sink_, model);
    bus.clear();
    memory_.snapshot();
    load(bus, 0x200000, 4);
    (void)seen();
    ram_[0x20000a] ^= 0xff;
    load(bus, 0x200000, 4);
    const auto records = seen();
    ASSERT_FALSE(records.empty());
    EXPECT_EQ(records[0].address, 0x200000u);
    EXPECT_EQ(records[0].data[10], ram_[0x20000a]);
    EXPECT_EQ(bus.external_changes(), 1u);
  }
}

TEST_F(BusTest, ADirtyLineIsWrittenBackBeforeCodeThatADeviceWroteIsFetchedFromIt) {
  BusModel bus(memory_, *sink_, CacheModel::pentium);
  bus.clear();
  memory_.snapshot();
  store(bus, 0x200000, {0xaa});
  (void)seen();
  ram_[0x200000] = 0xfa;
  ram_[0x200001] ^= 0xff;
  bus.fetch(0x200000, {ram_ + 0x200000, 2}, false);
  const auto records = seen();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].type, 3);
  EXPECT_EQ(records[0].flags, kLineBurst | kVictimWriteBack | kSnoopWriteBack);
  EXPECT_EQ(records[0].data[0], 0xaa) << "what the processor has stored";
  EXPECT_EQ(records[2].type, static_cast<int>(RecordType::code_read));
  EXPECT_EQ(records[2].data[0], 0xfa) << "what the device has";
  EXPECT_EQ(bus.external_changes(), 1u);
  load(bus, 0x200000, 1);
  EXPECT_EQ(seen().size(), 2u) << "the data cache gave the line up";
}

TEST_F(BusTest, WhatTheProcessorIsAboutToWriteIsNoDevices) {
  BusModel bus(memory_, *sink_, CacheModel::pentium);
  bus.clear();
  load(bus, 0x201000, 4);
  (void)seen();
  std::fill_n(ram_ + 0x203ff8, 8, std::uint8_t{0x55});
  std::fill_n(ram_ + 0x201000, 8, std::uint8_t{0x55});
  bus.expect_writes({0x203ff8, 8}, {0x201000, 8});
  bus.write(0x201004, {ram_ + 0x201004, 4});
  EXPECT_TRUE(seen().empty()) << "the line is held";
  bus.write(0x203ffc, {ram_ + 0x203ffc, 4});
  EXPECT_EQ(seen().size(), 2u) << "filled";
  EXPECT_EQ(bus.external_changes(), 0u);
  bus.expect_writes({}, {});
  load(bus, 0x201004, 4);
  EXPECT_EQ(bus.external_changes(), 1u) << "the rest was never written";
}

TEST_F(BusTest, PentiumWritesADirtyLineBackWhenItsPlaceIsNeeded) {
  BusModel bus(memory_, *sink_, CacheModel::pentium);
  bus.clear();
  store(bus, 0x200000, {0xaa});
  auto records = seen();
  ASSERT_EQ(records.size(), 2u);  // both halves of the fill
  EXPECT_EQ(records[0].flags, kLineBurst | kFillForStore);
  EXPECT_EQ(records[0].type, 2);
  for (std::uint32_t way = 1; way <= 3; ++way) load(bus, 0x200000 + way * 4096, 1);
  (void)seen();
  load(bus, 0x200000 + 4 * 4096, 1);
  records = seen();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[0].type, 3);
  EXPECT_EQ(records[0].flags, kLineBurst | kVictimWriteBack);
  EXPECT_EQ(records[0].address, 0x200000u);
  EXPECT_EQ(records[0].data[0], 0xaa);
}

TEST_F(BusTest, WriteBackKeepsCodeAndDataInOneCacheOf256Sets) {
  BusModel bus(memory_, *sink_, CacheModel::write_back);
  bus.clear();
  store(bus, 0x20000e, {0xaa, 0xbb, 0xcc});
  auto records = seen();
  ASSERT_EQ(records.size(), 2u) << "two lines of 16 bytes";
  EXPECT_EQ(records[0].flags, kLineBurst | kFillForStore);
  EXPECT_EQ(records[0].size, 16);
  EXPECT_EQ(records[1].address, 0x200010u);
  bus.fetch(0x20000e, {memory_.shadow(0x20000e), 3}, true);
  EXPECT_TRUE(seen().empty()) << "code is fetched from the lines that were stored to";
  load(bus, 0x200000 + 2048, 1);
  for (std::uint32_t way = 1; way <= 3; ++way) load(bus, 0x200000 + way * 4096, 1);
  EXPECT_EQ(seen().size(), 4u) << "2 KiB apart is another set, and there are four ways";
  load(bus, 0x200000 + 4 * 4096, 1);
  records = seen();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].flags, kLineBurst | kVictimWriteBack);
  EXPECT_EQ(records[0].address, 0x200000u);
  EXPECT_EQ(records[0].data[15], 0xbb);
}

TEST_F(BusTest, WithTheCacheDisabledNothingIsFilled) {
  BusModel bus(memory_, *sink_, CacheModel::i486);
  bus.clear();
  bus.set_cache_disabled(true);
  load(bus, 0x200004, 4);
  load(bus, 0x200004, 4);
  EXPECT_EQ(seen().size(), 2u);
}

TEST_F(BusTest, MemoryCanBeMadeWhatAProcessorWouldHaveLeft) {
  BusModel bus(memory_, *sink_, CacheModel::write_back);
  bus.clear();
  // The emulator stores a dword where a processor stores a word.
  const std::vector<std::uint8_t> emulated{0x7b, 0, 0, 0}, flags{0x46, 2, 0, 0};
  const std::uint8_t upper = ram_[0x200012];
  std::copy(emulated.begin(), emulated.end(), ram_ + 0x200010);
  memory_.restore(0x200012, 2);
  bus.write(0x200010, {memory_.live(0x200010), 2});
  EXPECT_EQ(ram_[0x200012], upper);
  // And other bytes than a processor stores.
  ram_[0x200016] = 1;
  memory_.correct(0x200014, flags);
  bus.write(0x200014, flags);
  EXPECT_EQ(ram_[0x200016], 0);
  load(bus, 0x200010, 8);
  EXPECT_EQ(bus.external_changes(), 0u);
}

}  // namespace
}  // namespace citcat::monitor
