#pragma once
// A few instructions in ring 0 with paging, whose page tables they may change.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "events/recording.h"
#include "replay/machine/machine.h"

namespace citcat::test {

/// Every 4 MiB of linear memory are the same frames 0 to 3f, through one table that lies in them.
class PagedGuest {
 public:
  static constexpr std::uint32_t kDirectory = 0x8000, kTable = 0x9000, kMain = 0x12000,
                                 kStack = 0x30f00, kFrames = 0x40;
  /// Bits of an entry of the table: present, writable, accessed, dirty.
  static constexpr std::uint32_t kPresent = 1, kWritable = 2, kUsed = 0x60;

  explicit PagedGuest(CpuModel model = CpuModel::p6);

  void put(std::uint32_t at, std::initializer_list<int> bytes);
  void put_word(std::uint32_t at, std::uint32_t value);
  /// Appends an instruction to the program, which begins at kMain: bytes, then dwords.
  void add(std::initializer_list<int> opcode, std::initializer_list<std::uint32_t> values = {});
  /// Appends one that makes page number `page` lie in `frame`. It invalidates nothing.
  void move_page(std::uint32_t page, std::uint32_t frame, std::uint32_t rights = kWritable);

  /// What `instructions` of the program left. All of them are known to run.
  struct Outcome {
    CpuState cpu;
    std::vector<std::uint8_t> memory;
    std::uint32_t word(std::uint32_t at) const;
  };
  Outcome run(std::uint64_t instructions, ExecutionPath path);

  Recording recording;

 private:
  std::uint32_t end_ = kMain;
};

}  // namespace citcat::test
