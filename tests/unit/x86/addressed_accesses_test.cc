// Accesses that follow from effective addresses, against those that the operands give from the
// registers: of random encodings, in each mode.

#include "x86/decode/addressed_accesses.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

struct FoundAccess {
  std::uint64_t linear = 0;
  std::uint32_t size = 0;
  bool write = false;
  bool operator==(const FoundAccess&) const = default;
};

class AddressedAccesses : public ::testing::TestWithParam<CodeMode> {
 protected:
  static constexpr std::uint64_t kIp = 0x401000;

  /// Registers with room above and below, so that nothing wraps.
  void draw_registers() {
    for (std::uint64_t& r : registers_) r = 0x10000 + (random_() & 0x7ff0);
    registers_[kRip] = kIp;
  }
  DecodedInstruction draw_instruction(const CodeMode& mode, CpuModel model) {
    std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random_());
    if (random_() % 3 == 0) bytes[0] = 0x0f;
    // Displacements and counts that are small.
    for (std::size_t i = 3; i < bytes.size(); ++i) bytes[i] &= 0x3f;
    return decode_instruction(bytes, mode, model);
  }
  std::vector<FoundAccess> by_operands(const DecodedInstruction& info) const {
    std::vector<FoundAccess> found;
    for_each_access(info, registers_.data(), bases_.data(), stack32_, [&](const DataAccess& a) {
      found.push_back({a.linear.value, a.size, a.write});
    });
    return found;
  }
  std::vector<FoundAccess> by_addresses(const DecodedInstruction& info) const {
    std::vector<AddressedAccess> accesses;
    append_accesses(info, accesses);
    std::vector<FoundAccess> found;
    for (const AddressedAccess& a : accesses) {
      const LinearAddr address =
          kt_address(info, a.address, kIp, registers_.data(), bases_.data(), stack32_);
      const auto offset = static_cast<std::uint64_t>(std::int64_t{a.offset});
      found.push_back({address.value + offset, a.size, a.write});
    }
    return found;
  }

  std::mt19937_64 random_{1};
  std::array<std::uint64_t, 17> registers_{};
  std::array<std::uint64_t, 6> bases_{};
  bool stack32_ = true;
};

TEST_P(AddressedAccesses, AreThoseOfTheOperands) {
  constexpr int kDrawn = 300'000;
  std::set<std::uint16_t> following, others;
  for (int i = 0; i < kDrawn; ++i) {
    draw_registers();
    const CpuModel model = i % 4 == 0 ? CpuModel::i286 : CpuModel::unknown;
    if (model == CpuModel::i286 && (GetParam().bits32 || GetParam().bits64)) continue;
    const DecodedInstruction info = draw_instruction(GetParam(), model);
    if (info.state != DecodeState::ok || info.operand_count == 0) continue;
    const auto opcode = static_cast<std::uint16_t>(info.opcode_map << 8 | info.opcode);
    if (!accesses_follow(info)) {
      others.insert(opcode);
      continue;
    }
    following.insert(opcode);
    ASSERT_EQ(by_addresses(info), by_operands(info))
        << "map " << int{info.opcode_map} << " opcode " << std::hex << int{info.opcode};
  }
  EXPECT_GT(following.size(), 200U);
  EXPECT_TRUE(others.contains(0x8f)) << "POP into memory has the address of one of two accesses";
}

INSTANTIATE_TEST_SUITE_P(
    Modes, AddressedAccesses,
    ::testing::Values(CodeMode{.bits32 = false, .real_or_v86 = true},
                      CodeMode{.bits32 = true, .real_or_v86 = false},
                      CodeMode{.bits32 = true, .real_or_v86 = false, .bits64 = true}));

}  // namespace
}  // namespace citcat
