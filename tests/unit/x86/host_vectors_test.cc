#include "x86/host_vectors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "x86/host_fpu.h"

namespace citcat {
namespace {

using Part = VectorForm::Part;

std::vector<std::uint8_t> encoding(unsigned prefix, unsigned rex, unsigned opcode, unsigned modrm,
                                   std::mt19937_64& random) {
  std::vector<std::uint8_t> bytes;
  const auto add = [&](unsigned byte) { bytes.push_back(static_cast<std::uint8_t>(byte)); };
  if (prefix != 0) add(prefix);
  for (const unsigned byte : {0x40 | rex, 0x0fu, opcode, modrm}) add(byte);
  for (int i = 0; i < 8; ++i) add(static_cast<unsigned>(random()) & 0xff);
  return bytes;
}

/// The same instruction on the same state by HostFpu, which exchanges all of it.
void expect_as_whole_unit(const DecodedInstruction& info, const VectorForm& form,
                          std::mt19937_64& random) {
  constexpr std::uint32_t kMasked = 0x1f80;
  HostFpu whole;
  FpuOperands io;
  for (std::size_t i = fx_image::kXmm; i < fx_image::kXmm + 256; ++i) {
    // Zeros, ones, and what has an exponent between, so that all sorts of numbers come up.
    const std::uint64_t draw = random();
    whole.image()[i] =
        static_cast<std::uint8_t>(draw % 4 == 0 ? (draw >> 8 & 1) * 0xff : draw >> 8);
  }
  const auto control = static_cast<std::uint32_t>(random() & 0xffc0);
  const std::uint32_t before = random() % 2 == 0 ? kMasked : control;
  std::memcpy(whole.image().data() + fx_image::kMxcsr, &before, 4);
  io.gpr = random();
  for (std::size_t i = 0; i < 16; ++i) io.memory[i] = static_cast<std::uint8_t>(random());
  const auto slot = [&](unsigned number) {
    return whole.image().data() + fx_image::kXmm + 16 * std::size_t{number};
  };

  VectorOperands few{};
  std::uint8_t* const of_reg = (form.reg_is_second ? few.second : few.first).data();
  std::uint8_t* const of_rm = (form.reg_is_second ? few.first : few.second).data();
  if (form.reg == Part::vector) std::memcpy(of_reg, slot(info.reg_field), 16);
  if (form.rm == Part::vector) std::memcpy(of_rm, slot(info.rm_field), 16);
  few.gpr = io.gpr;
  alignas(16) std::array<std::uint8_t, 16> memory;
  std::memcpy(memory.data(), io.memory.data(), 16);
  std::uint32_t mxcsr = before;
  const bool made = run_vector(form, memory.data(), few, mxcsr);

  const FpuForm prepared = whole.prepare(info);
  const FpuResult result = whole.execute(prepared, io);
  ASSERT_EQ(made, result.fault == FpuResult::Fault::none);
  if (!made) return;
  EXPECT_EQ(mxcsr, whole.mxcsr());
  EXPECT_EQ(form.writes_memory, result.store_bytes != 0);
  EXPECT_EQ(form.writes_gpr, prepared.writes_gpr);
  EXPECT_EQ(form.writes_flags, prepared.writes_eflags);
  const unsigned changed = form.reg_is_second ? info.rm_field : info.reg_field;
  if (form.writes_vector) {
    EXPECT_EQ(std::memcmp(few.first.data(), slot(changed), 16), 0);
  }
  if (form.writes_gpr) {
    EXPECT_EQ(few.gpr, io.gpr);
  }
  if (form.writes_flags) {
    EXPECT_EQ(few.flags & 0x8d5, io.eflags & 0x8d5);
  }
  if (form.writes_memory) {
    EXPECT_EQ(std::memcmp(memory.data(), io.memory.data(), result.store_bytes), 0);
  }
}

TEST(HostVectors, EachFormDoesWhatTheWholeUnitDoes) {
  std::mt19937_64 random(1);
  HostVectors vectors;
  unsigned forms = 0;
  for (unsigned opcode = 0x10; opcode < 0x100; ++opcode) {
    for (const unsigned prefix : {0u, 0x66u, 0xf3u, 0xf2u}) {
      for (unsigned draw = 0; draw < 24; ++draw) {
        const auto picked = static_cast<unsigned>(random());
        const unsigned modrm =
            picked % 4 == 0 ? (picked >> 8 & 0x38) | 6 : (picked >> 8 & 0xff) | 0xc0;
        const auto bytes = encoding(prefix, picked >> 16 & 15, opcode, modrm, random);
        const auto info = decode_instruction(bytes, {true, false, true}, CpuModel::x86_64);
        if (info.state != DecodeState::ok) continue;
        const VectorForm* const form = vectors.prepare(info);
        if (form == nullptr) continue;
        ++forms;
        SCOPED_TRACE(testing::Message() << std::hex << prefix << " 0f " << opcode << " " << modrm);
        expect_as_whole_unit(info, *form, random);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(forms, 2000u);
}

TEST(HostVectors, LeavesWhatHasOtherOperands) {
  HostVectors vectors;
  const auto made = [&](std::vector<std::uint8_t> bytes) {
    bytes.resize(15);
    const auto info = decode_instruction(bytes, {true, false, true}, CpuModel::x86_64);
    return vectors.prepare(info) != nullptr;
  };
  EXPECT_TRUE(made({0x66, 0x0f, 0xef, 0xc1}));         // PXOR xmm0, xmm1
  EXPECT_FALSE(made({0x0f, 0xef, 0xc1}));              // PXOR mm0, mm1
  EXPECT_FALSE(made({0x0f, 0x53, 0xc1}));              // RCPPS
  EXPECT_FALSE(made({0x66, 0x0f, 0xf7, 0xc1}));        // MASKMOVDQU
  EXPECT_FALSE(made({0xf3, 0x0f, 0xd6, 0xc1}));        // MOVQ2DQ
  EXPECT_FALSE(made({0x66, 0x0f, 0x38, 0x00, 0xc1}));  // PSHUFB, which not each host has
}

}  // namespace
}  // namespace citcat
