// The decoder's operands against the bus of a real 80286: every data access of the single-step
// tests, predicted from the registers before.
//
// Left out: tests that end in an exception or interrupt (the delivery adds its own accesses), and
// ESC D8, which the 80286 turns into port cycles when no coprocessor answers.

#include <gtest/gtest.h>

#include <cstdio>

#include "unit/x86/single_step_suite.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

using test::BusAccess;
using test::Registers16;

struct SiliconByte {
  std::uint32_t address;
  bool write;
  bool operator==(const SiliconByte&) const = default;
};

std::vector<SiliconByte> on_the_bus(const MooTest& one) {
  std::vector<SiliconByte> bytes;
  for (const BusAccess& access : test::data_accesses(one)) {
    for (std::uint32_t i = 0; i < access.size; ++i) {
      bytes.push_back({access.address + i, access.write});
    }
  }
  return bytes;
}

/// Iterations of a string until as many bytes are predicted as the bus has, or one execution.
std::vector<SiliconByte> predicted(const DecodedInstruction& info, const Registers16& before,
                                   std::size_t wanted, bool writes_happen) {
  std::vector<SiliconByte> bytes;
  std::array<std::uint64_t, 8> gpr = before.gpr;
  do {
    for_each_access(info, gpr.data(), before.bases.data(), false, [&](const DataAccess& access) {
      if (access.write && info.operands[access.operand].conditional_write && !writes_happen) return;
      for (std::uint32_t i = 0; i < access.size; ++i) {
        bytes.push_back({access.linear.plus32(i).low32() & 0xffffff, access.write});
      }
    });
    const int step = (before.flags & 0x400) != 0 ? -info.operand_bytes : info.operand_bytes;
    for (const Gpr reg : {kEsi, kEdi}) {
      gpr[reg] = (gpr[reg] + static_cast<std::uint64_t>(step)) & 0xffff;
    }
  } while (info.is_repeated() && bytes.size() < wanted && !bytes.empty());
  if (info.is_repeated() && wanted == 0) bytes.clear();
  return bytes;
}

std::string text(const std::vector<SiliconByte>& bytes) {
  std::string out;
  char buffer[16];
  for (std::size_t i = 0; i < bytes.size() && i < 20; ++i) {
    std::snprintf(buffer, sizeof buffer, " %c%x", bytes[i].write ? 'W' : 'R', bytes[i].address);
    out += buffer;
  }
  return out;
}

TEST(InstructionSilicon, PredictsEveryDataAccessOfAn80286) {
  const std::vector<std::string> files = test::suite_files();
  if (files.empty()) GTEST_SKIP() << "no single-step suite (set CITCAT_SHARED)";
  std::uint64_t compared = 0, bytes = 0, excluded = 0;
  for (const std::string& path : files) {
    const MooFile file = read_moo(path);
    unsigned wrong = 0;
    for (const MooTest& one : file.tests) {
      const DecodedInstruction info =
          decode_instruction(one.bytes, CodeMode{false, true}, CpuModel::i286);
      if (one.exception || info.kind == InstructionClass::x87) {
        ++excluded;
        continue;
      }
      ASSERT_EQ(info.state, DecodeState::ok) << path << " " << one.name;
      const Registers16 before = test::registers_before(one);
      const std::vector<SiliconByte> bus = on_the_bus(one);
      bool writes = false;
      for (const SiliconByte& byte : bus) writes = writes || byte.write;
      const std::vector<SiliconByte> ours = predicted(info, before, bus.size(), writes);
      ++compared;
      bytes += bus.size();
      if (ours == bus || ++wrong > 2) continue;
      ADD_FAILURE() << path << " " << one.index << " " << one.name << "\n  bus       " << text(bus)
                    << "\n  predicted " << text(ours);
    }
    if (wrong > 2) ADD_FAILURE() << path << ": " << wrong << " tests differ";
  }
  std::printf("%llu tests compared, %llu bytes, %llu excluded\n",
              static_cast<unsigned long long>(compared), static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(excluded));
}

}  // namespace
}  // namespace citcat
