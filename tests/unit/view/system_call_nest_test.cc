// A program that enters the kernel by SYSENTER is in a system call until SYSEXIT.

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>

#include "unit/temporary_folder.h"
#include "view/model/run_view.h"

namespace citcat::view {
namespace {

constexpr std::uint32_t kBegin = 0x7c00, kSysenter = 0x7c1e, kKernel = 0x9000;
constexpr std::uint64_t kSysenterAt = 10, kSysexitAt = 14, kInstructions = 16;

/// In flat protected mode, without paging: sets the MSRs of SYSENTER, enters, and comes back to
/// level 3.
Recording program() {
  Recording recording;
  for (std::uint32_t a = 0; a < 0xa000; ++a) recording.image.set(PhysAddr{a}, 0x90);
  const auto put = [&](std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  };
  put(kBegin, {0xb9, 0x74, 1, 0, 0, 0xb8, 8, 0, 0, 0});  // mov ecx, 174h; mov eax, 8
  put(0x7c0a, {0x31, 0xd2, 0x0f, 0x30, 0x41});           // xor edx, edx; wrmsr; inc ecx
  put(0x7c0f, {0xb8, 0, 0x68, 0, 0, 0x0f, 0x30, 0x41});  // mov eax, 6800h; wrmsr; inc ecx
  put(0x7c17, {0xb8, 0, 0x90, 0, 0, 0x0f, 0x30});        // mov eax, 9000h; wrmsr
  put(kSysenter, {0x0f, 0x34, 0x90});                    // sysenter; nop
  put(kKernel, {0x90, 0xb9, 0, 0x70, 0, 0});             // nop; mov ecx, 7000h
  put(0x9006, {0xba, 0x20, 0x7c, 0, 0, 0x0f, 0x35});     // mov edx, 7c20h; sysexit
  CpuState& s = recording.initial;
  s.model = CpuModel::p6;
  s.ram_bytes = 0x100000;
  s.cr0 = 0x11;
  s.eip = kBegin;
  s.eflags = 2;
  s.gpr[kEsp] = 0x7000;
  s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  recording.instructions = kInstructions;
  return recording;
}

class SystemCallNest : public test::TemporaryFolder {};

TEST_F(SystemCallNest, IsListedUntilItReturns) {
  RecordingFileWriter(path("r.citcat")).finish(program());
  const RecordingFile file = RecordingFile::open(path("r.citcat"));
  const Symbols symbols;
  RunView view(file, symbols, {});
  for (std::uint64_t at = 0; at < kInstructions; ++at) {
    const Json calls = view.answer("calls", Query({{"at", std::to_string(at)}}))["calls"];
    const bool is_in_call = at > kSysenterAt && at <= kSysexitAt;
    ASSERT_EQ(calls.size(), is_in_call ? 1u : 0u) << at << ": " << calls;
    if (!is_in_call) continue;
    EXPECT_EQ(calls[0]["text"], "SYSENTER");
    EXPECT_EQ(calls[0]["moment"], std::to_string(kSysenterAt));
    EXPECT_EQ(calls[0]["from"], "00007c1e");
  }
}

}  // namespace
}  // namespace citcat::view
