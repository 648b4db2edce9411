#include "x86/host_fpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <vector>

namespace citcat {
namespace {

using Fault = FpuResult::Fault;

/// Runs instructions given as bytes, with one memory operand kept between them.
class HostFpuTest : public testing::Test {
 protected:
  FpuResult run(std::initializer_list<int> bytes, CodeMode mode = {true, false}) {
    std::vector<std::uint8_t> code;
    for (const int byte : bytes) code.push_back(static_cast<std::uint8_t>(byte));
    const DecodedInstruction info = decode_instruction(code, mode, CpuModel::p6);
    EXPECT_EQ(info.state, DecodeState::ok);
    form_ = fpu_.prepare(info);
    EXPECT_NE(form_.action, FpuForm::Action::unsupported);
    return fpu_.execute(form_, io_);
  }

  template <typename T>
  void put(T value, std::size_t bytes = sizeof(T)) {
    std::memcpy(io_.memory.data(), &value, bytes);
  }
  template <typename T>
  T get(std::size_t at = 0) const {
    T value;
    std::memcpy(&value, io_.memory.data() + at, sizeof value);
    return value;
  }

  /// FLD m64 of `value`.
  void load(double value) {
    put(value);
    EXPECT_EQ(run({0xdd, 0x00}).fault, Fault::none);
  }
  void set_control(std::uint16_t control) {
    put(control);
    run({0xd9, 0x28});
  }
  double pop_double() {
    EXPECT_EQ(run({0xdd, 0x18}).store_bytes, 8);
    return get<double>();
  }
  unsigned flags() const { return fpu_.status_word() & kFpuExceptions; }

  HostFpu fpu_;
  FpuOperands io_;
  FpuForm form_;
};

constexpr unsigned kInvalid = 1, kZeroDivide = 4, kFpuOverflow = 8, kPrecision = 32,
                   kStackFault = 64;

TEST_F(HostFpuTest, SetsTheFlagsThatGoWithAResult) {
  load(1.0);
  put(3.0);
  run({0xdc, 0x30});  // FDIV m64
  EXPECT_EQ(flags(), kPrecision);
  EXPECT_EQ(pop_double(), 1.0 / 3.0);
}

TEST_F(HostFpuTest, RoundsConstantsInTheGuestsDirection) {
  const auto pi_in = [&](std::uint16_t control) {
    set_control(control);
    run({0xd9, 0xeb});  // FLDPI
    run({0xdb, 0x38});  // FSTP m80
    return get<std::uint64_t>();
  };
  const std::uint64_t nearest = pi_in(0x37f), down = pi_in(0x77f), up = pi_in(0xb7f);
  EXPECT_EQ(nearest, 0xc90fdaa22168c235u);
  EXPECT_EQ(down, nearest - 1);
  EXPECT_EQ(up, nearest);
}

TEST_F(HostFpuTest, RemembersTheLastInstructionAndItsOperand) {
  io_.code_selector = 0x73;
  io_.code_offset = 0x8049000;
  io_.data_selector = 0x7b;
  io_.data_offset = 0x804a010;
  load(2.0);
  io_.code_offset = 0x8049006;
  run({0xd9, 0xfa});  // FSQRT: no operand, so the data pointer stays
  io_.code_offset = 0x8049008;
  io_.data_offset = 0x1234;
  EXPECT_EQ(run({0xd9, 0x30}).store_bytes, 28);  // FNSTENV: not remembered
  EXPECT_EQ(get<std::uint32_t>(0), 0xffff037fu);
  EXPECT_EQ(get<std::uint32_t>(4), 0xffff3800u | kPrecision | (get<std::uint32_t>(4) & 0x200));
  EXPECT_EQ(get<std::uint32_t>(8), 0xffff3fffu);  // register 7 valid, the others empty
  EXPECT_EQ(get<std::uint32_t>(12), 0x8049006u);
  EXPECT_EQ(get<std::uint32_t>(16), 0x01fa0073u);
  EXPECT_EQ(get<std::uint32_t>(20), 0x804a010u);
  EXPECT_EQ(get<std::uint32_t>(24), 0xffff007bu);
  EXPECT_EQ(fpu_.control_word() & 0x3f, 0x3f);
}

TEST_F(HostFpuTest, RealModeImagesHoldLinearAddressesAroundTheOpcode) {
  io_.code_selector = 0x1234;
  io_.code_offset = 0x0100;
  io_.data_selector = 0xf000;
  io_.data_offset = 0xfff0;
  load(1.0);  // DD 00: opcode field 500
  EXPECT_EQ(run({0xd9, 0x37}, {false, true}).store_bytes, 14);
  EXPECT_EQ(get<std::uint16_t>(6), 0x2440);
  EXPECT_EQ(get<std::uint16_t>(8), 0x1500);
  EXPECT_EQ(get<std::uint16_t>(10), 0xfff0);
  EXPECT_EQ(get<std::uint16_t>(12), 0xf000);
  run({0xd9, 0x27}, {false, true});  // FLDENV: the same image comes back
  io_.memory.fill(0);
  EXPECT_EQ(run({0x66, 0xd9, 0x37}, {false, true}).store_bytes, 28);
  EXPECT_EQ(get<std::uint32_t>(12), 0xffff2440u);
  EXPECT_EQ(get<std::uint32_t>(16), 0x1500u);
  EXPECT_EQ(get<std::uint32_t>(20), 0xfffffff0u);
  EXPECT_EQ(get<std::uint32_t>(24), 0xf000u);
}

TEST_F(HostFpuTest, SaveAndRestoreBringEveryRegisterBack) {
  for (int i = 1; i <= 5; ++i) load(i * 1.25);
  const FxImage before = fpu_.image();
  EXPECT_EQ(run({0xdd, 0x30}).store_bytes, 108);
  EXPECT_EQ(fpu_.control_word(), 0x37f);
  EXPECT_EQ(fpu_.status_word(), 0);
  EXPECT_EQ(fpu_.tag_word(), 0xffff);
  run({0xdd, 0x20});
  EXPECT_EQ(fpu_.image(), before);
}

TEST_F(HostFpuTest, TagsTellZeroSpecialAndValidApart) {
  load(0.0);
  load(std::numeric_limits<double>::infinity());
  load(1.0);
  EXPECT_EQ(fpu_.tag_word(), (1u << 14 | 2u << 12 | 0u << 10 | 0x3ff));
}

TEST_F(HostFpuTest, AnUnmaskedExceptionIsReportedByTheNextWaitingInstruction) {
  set_control(0x37b);  // zero divide unmasked
  load(1.0);
  put(0.0);
  const double before = 1.0;
  EXPECT_EQ(run({0xdc, 0x30}).fault, Fault::none);
  EXPECT_EQ(flags(), kZeroDivide);
  EXPECT_TRUE(fpu_.exception_pending());
  EXPECT_EQ(run({0xd9, 0xfa}).fault, Fault::pending);  // FSQRT did not run
  EXPECT_EQ(run({0x9b}).fault, Fault::pending);        // FWAIT
  EXPECT_EQ(run({0x0f, 0x77}).fault, Fault::pending);  // EMMS
  io_.gpr = 0xabcd0000;
  EXPECT_EQ(run({0xdf, 0xe0}).fault, Fault::none);  // FNSTSW AX looks without waiting
  EXPECT_EQ(io_.gpr, 0xabcd0000u | fpu_.status_word());
  EXPECT_NE(io_.gpr & kFpuErrorSummary, 0u);
  run({0xdb, 0xe2});  // FNCLEX
  EXPECT_FALSE(fpu_.exception_pending());
  EXPECT_EQ(pop_double(), before);
}

TEST_F(HostFpuTest, ConversionsOfMmxRegistersReportAPendingException) {
  set_control(0x37b);  // zero divide is unmasked
  load(0.0);
  run({0xd9, 0xe8});  // FLD1
  run({0xd8, 0xf1});  // FDIV ST(1)
  ASSERT_TRUE(fpu_.exception_pending());
  for (const int opcode : {0x2a, 0x2c, 0x2d}) {
    EXPECT_EQ(run({0x0f, opcode, 0xc1}).fault, Fault::pending) << opcode;
    EXPECT_EQ(run({0x66, 0x0f, opcode, 0xc1}).fault, Fault::pending) << opcode;
    EXPECT_EQ(run({0xf3, 0x0f, opcode, 0xc1}).fault, Fault::none) << opcode;
  }
  EXPECT_EQ(run({0x0f, 0x2a, 0x00}).fault, Fault::pending);     // CVTPI2PS m64
  EXPECT_EQ(run({0x66, 0x0f, 0x2a, 0x00}).fault, Fault::none);  // CVTPI2PD m64
  EXPECT_EQ(run({0x0f, 0x58, 0xc1}).fault, Fault::none);        // ADDPS
  EXPECT_EQ(fpu_.control_word(), 0x37b);
  EXPECT_TRUE(fpu_.exception_pending());
}

TEST_F(HostFpuTest, AStoreWithAnUnmaskedExceptionStoresNothingAndKeepsTheStack) {
  load(1e300);
  set_control(0x377);                           // overflow unmasked
  EXPECT_EQ(run({0xd9, 0x18}).store_bytes, 0);  // FSTP m32
  EXPECT_EQ(flags() & kFpuOverflow, kFpuOverflow);
  run({0xdb, 0xe2});
  EXPECT_EQ(pop_double(), 1e300);
}

TEST_F(HostFpuTest, LoadingAControlWordThatUnmasksAFlagRaisesIt) {
  load(1.0);
  put(0.0);
  run({0xdc, 0x30});
  EXPECT_FALSE(fpu_.exception_pending());
  set_control(0x37b);
  EXPECT_TRUE(fpu_.exception_pending());
}

TEST_F(HostFpuTest, StackUnderflowSetsTheStackFault) {
  run({0xd9, 0xfa});  // FSQRT of an empty register
  EXPECT_EQ(fpu_.status_word() & 0x7f, kInvalid | kStackFault);
}

TEST_F(HostFpuTest, InitialisationKeepsRegisterContents) {
  load(7.0);
  run({0xdb, 0xe3});
  EXPECT_EQ(fpu_.tag_word(), 0xffff);
  const std::array<std::uint8_t, 10> seven = {0, 0, 0, 0, 0, 0, 0, 0xe0, 1, 0x40};
  EXPECT_TRUE(std::equal(seven.begin(), seven.end(), fpu_.image().begin() + 32 + 7 * 16));
}

/// Images of compatibility mode, and of FXSAVE without REX.W, have selectors.
TEST_F(HostFpuTest, InitialisationClearsSelectorsThatImagesOf64BitsHaveNoRoomFor) {
  fpu_.set_wide(true);
  for (const int opcode : {0xdb, 0xdd}) {  // FNINIT; FNSAVE, which initialises too
    io_.code_selector = 0x1b;
    io_.data_selector = 0x23;
    load(1.0);
    EXPECT_EQ(fpu_.shown(false)[12], 0x1b);
    EXPECT_EQ(fpu_.shown(false)[20], 0x23);
    run({opcode, opcode == 0xdb ? 0xe3 : 0x30});
    EXPECT_EQ(fpu_.shown(false)[12], 0);
    EXPECT_EQ(fpu_.shown(false)[20], 0);
  }
}

TEST_F(HostFpuTest, PackedDecimalBeyondItsRangeIsTheIndefinite) {
  load(1e18);
  EXPECT_EQ(run({0xdf, 0x30}).store_bytes, 10);
  const std::array<std::uint8_t, 10> indefinite = {0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xff};
  EXPECT_TRUE(std::equal(indefinite.begin(), indefinite.end(), io_.memory.begin()));
  EXPECT_EQ(flags() & kInvalid, kInvalid);
}

TEST_F(HostFpuTest, ComparisonsAndConditionalMovesUseTheGuestsFlags) {
  load(1.0);
  load(2.0);
  io_.eflags = 0x8d7;
  run({0xdb, 0xf1});  // FCOMI ST, ST(1): 2 > 1
  EXPECT_TRUE(form_.writes_eflags);
  EXPECT_EQ(io_.eflags, 2u);
  io_.eflags = 0x41;  // CF and ZF
  run({0xda, 0xc1});  // FCMOVB ST, ST(1)
  EXPECT_FALSE(form_.writes_eflags);
  EXPECT_EQ(pop_double(), 1.0);
}

TEST_F(HostFpuTest, UndocumentedTwinsRunOnAnyHost) {
  load(1.0);
  load(2.0);
  run({0xdd, 0xc9});  // FXCH
  EXPECT_EQ(pop_double(), 1.0);
  run({0xdf, 0xc0});  // FFREEP
  EXPECT_EQ(fpu_.tag_word(), 0xffff);
  EXPECT_EQ(run({0xdb, 0xe4}).fault, Fault::none);  // FNSETPM
}

TEST_F(HostFpuTest, RemaindersFinishInTheStepsTheyTake) {
  load(3.0);
  load(1e40);
  int steps = 0;
  do {
    run({0xd9, 0xf8});  // FPREM; C2 says that it is not finished
    ++steps;
  } while ((fpu_.status_word() & 0x400) != 0 && steps < 100);
  EXPECT_GT(steps, 1);
  EXPECT_EQ(pop_double(), std::fmod(1e40, 3.0));
}

TEST_F(HostFpuTest, OnlyApproximationsAreModelSpecific) {
  load(0.5);
  EXPECT_TRUE(run({0xd9, 0xfe}).model_specific);         // FSIN
  EXPECT_FALSE(run({0xd9, 0xfa}).model_specific);        // FSQRT
  EXPECT_TRUE(run({0x0f, 0x53, 0xc1}).model_specific);   // RCPPS
  EXPECT_FALSE(run({0x0f, 0x51, 0xc1}).model_specific);  // SQRTPS
}

TEST_F(HostFpuTest, MmxWritesFillTheUpperPartOfTheirRegister) {
  load(1.0);
  io_.gpr = 0x12345678;
  run({0x0f, 0x6e, 0xd9});  // MOVD MM3, ECX
  EXPECT_EQ(form_.gpr, kEcx);
  EXPECT_EQ(fpu_.status_word() & 0x3800, 0);
  EXPECT_EQ(fpu_.image()[4], 0xff);
  const std::array<std::uint8_t, 10> wanted = {0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0xff, 0xff};
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), fpu_.image().begin() + 32 + 3 * 16));
  const FxImage by_host = fpu_.image();
  fpu_.note_mmx(3);  // the same by hand
  EXPECT_EQ(fpu_.image(), by_host);
  run({0x0f, 0x7e, 0xda});  // MOVD EDX, MM3
  EXPECT_EQ(form_.gpr, kEdx);
  EXPECT_EQ(io_.gpr, 0x12345678u);
  run({0x0f, 0x77});
  EXPECT_EQ(fpu_.tag_word(), 0xffff);
}

TEST_F(HostFpuTest, VectorFlagsStickAndUnmaskedOnesLeaveTheResultAlone) {
  io_.gpr = 3;
  run({0xf3, 0x0f, 0x2a, 0xc0});  // CVTSI2SS XMM0, EAX
  io_.gpr = 1;
  run({0xf3, 0x0f, 0x2a, 0xc8});
  run({0xf3, 0x0f, 0x5e, 0xc8});  // DIVSS XMM1, XMM0
  EXPECT_EQ(fpu_.mxcsr(), 0x1f80 | kPrecision);
  put<std::uint32_t>(0x1f80 & ~0x1000u);  // precision unmasked, flags clear
  EXPECT_EQ(run({0x0f, 0xae, 0x10}).fault, Fault::none);
  const FxImage before = fpu_.image();
  EXPECT_EQ(run({0xf3, 0x0f, 0x5e, 0xc8}).fault, Fault::simd);
  EXPECT_EQ(fpu_.mxcsr(), (0x1f80u & ~0x1000u) | kPrecision);
  EXPECT_TRUE(std::equal(before.begin() + 160, before.begin() + 288, fpu_.image().begin() + 160));
}

TEST_F(HostFpuTest, VectorOperandsInMemoryAndGeneralRegistersArriveWhereTheyBelong) {
  put(std::array<float, 4>{1, 2, 3, 4});
  run({0x0f, 0x28, 0x15, 0, 0, 0, 0});  // MOVAPS XMM2, [disp32]
  EXPECT_EQ(form_.memory_bytes, 16);
  run({0x0f, 0x58, 0x14, 0x24});  // ADDPS XMM2, [ESP]
  io_.memory.fill(0);
  EXPECT_EQ(run({0x0f, 0x29, 0x10}).store_bytes, 16);
  EXPECT_EQ((get<std::array<float, 4>>()), (std::array<float, 4>{2, 4, 6, 8}));
  put(-2.5F);
  run({0xf3, 0x0f, 0x2d, 0x1e});  // CVTSS2SI EBX, [ESI]
  EXPECT_EQ(form_.gpr, kEbx);
  EXPECT_EQ(static_cast<std::int32_t>(io_.gpr), -2);
  put(std::array<float, 4>{-1, 1, -1, 1});
  run({0x0f, 0x28, 0x00});
  run({0x0f, 0x50, 0xf8});  // MOVMSKPS EDI, XMM0
  EXPECT_EQ(form_.gpr, kEdi);
  EXPECT_EQ(io_.gpr, 5u);
  io_.eflags = 0xffffffff & ~0x1u;
  put(2.0F);
  run({0x0f, 0x2f, 0x00});  // COMISS XMM0 (-1), 2
  EXPECT_EQ(io_.eflags & 0x8d5, 1u);
  EXPECT_EQ(io_.eflags | 0x8d5, 0xffffffffu);
}

TEST_F(HostFpuTest, ReservedControlBitsAreRefusedByTheGuestsMask) {
  fpu_.set_mxcsr_mask(0xffbf);
  put<std::uint32_t>(0x1fc0);  // denormals-are-zeros: not on this guest
  EXPECT_EQ(run({0x0f, 0xae, 0x10}).fault, Fault::protection);
  EXPECT_EQ(fpu_.mxcsr(), 0x1f80u);
  fpu_.set_mxcsr_mask(0xffff);
  EXPECT_EQ(run({0x0f, 0xae, 0x10}).fault, Fault::none);
  EXPECT_EQ(fpu_.mxcsr(), 0x1fc0u);
}

TEST_F(HostFpuTest, FxsaveReportsTheGuestsMaskAndFxrstorIgnoresReservedBytes) {
  fpu_.set_mxcsr_mask(0xffbf);
  load(1.5);
  EXPECT_EQ(run({0x0f, 0xae, 0x00}).store_bytes, 288);
  EXPECT_EQ(get<std::uint32_t>(28), 0xffbfu);
  io_.memory[32 + 12] = 0x55;  // above ST0
  run({0x0f, 0xae, 0x08});
  EXPECT_EQ(fpu_.image()[32 + 12], 0);
  EXPECT_EQ(pop_double(), 1.5);
}

TEST_F(HostFpuTest, TheHostsOwnControlWordsSurvive) {
  set_control(0xc7f);  // chop
  put<std::uint32_t>(0x7f80);
  run({0x0f, 0xae, 0x10});
  run({0xd9, 0xe8});
  volatile double one = 1.0, three = 3.0;
  EXPECT_EQ(std::nearbyint(2.5 * one), 2.0);
  EXPECT_EQ(one / three, 0x1.5555555555555p-2);
  volatile long double wide = 2.0L;
  EXPECT_EQ(std::sqrt(static_cast<long double>(wide)), 1.41421356237309504880L);
}

}  // namespace
}  // namespace citcat
