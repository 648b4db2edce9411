#include "unit/replay/machine/paged_guest.h"

#include <gtest/gtest.h>

#include <cstring>

#include "replay/session/replayer.h"

namespace citcat::test {

PagedGuest::PagedGuest(CpuModel model) {
  CpuState& s = recording.initial;
  s.model = model;
  s.ram_bytes = kFrames * kPageSize;
  s.cr0 = 0x80010011;  // paging, which read-only pages are for the supervisor too
  s.cr3 = kDirectory;
  s.eip = kMain;
  s.gpr[kEsp] = kStack;
  s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  for (std::uint32_t a = 0; a < s.ram_bytes; ++a) recording.image.set(PhysAddr{a}, 0);
  for (std::uint32_t d = 0; d < 1024; ++d) {
    put_word(kDirectory + 4 * d, kTable | kUsed | kWritable | kPresent);
  }
  for (std::uint32_t p = 0; p < kFrames; ++p) {
    put_word(kTable + 4 * p, p * kPageSize | kUsed | kWritable | kPresent);
  }
}

void PagedGuest::put(std::uint32_t at, std::initializer_list<int> bytes) {
  for (const int b : bytes) recording.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
}

void PagedGuest::put_word(std::uint32_t at, std::uint32_t value) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    recording.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> 8 * i));
  }
}

void PagedGuest::add(std::initializer_list<int> opcode,
                     std::initializer_list<std::uint32_t> values) {
  put(end_, opcode);
  end_ += static_cast<std::uint32_t>(opcode.size());
  for (const std::uint32_t value : values) {
    put_word(end_, value);
    end_ += 4;
  }
}

void PagedGuest::move_page(std::uint32_t page, std::uint32_t frame, std::uint32_t rights) {
  const std::uint32_t entry = frame * kPageSize | kUsed | rights | kPresent;
  add({0xc7, 0x05}, {kTable + 4 * page, entry});  // mov [table entry],entry
}

std::uint32_t PagedGuest::Outcome::word(std::uint32_t at) const {
  std::uint32_t value = 0;
  std::memcpy(&value, &memory.at(at), 4);
  return value;
}

PagedGuest::Outcome PagedGuest::run(std::uint64_t instructions, ExecutionPath path) {
  recording.instructions = instructions;
  ReplayOptions options;
  options.path = path;
  Replayer replayer(recording, nullptr, options);
  const ReplayReport report = replayer.run();
  EXPECT_EQ(report.instructions, instructions);
  EXPECT_EQ(report.divergence ? report.divergence->reason : "", "");
  Outcome outcome{replayer.machine().save(), {}};
  for (std::uint32_t page = 0; page < kFrames; ++page) {
    const std::uint8_t* const host = replayer.machine().memory().host(PhysAddr{page * kPageSize});
    outcome.memory.insert(outcome.memory.end(), host, host + kPageSize);
  }
  return outcome;
}

}  // namespace citcat::test
