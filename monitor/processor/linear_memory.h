#pragma once
// Memory as the processor reaches it, by linear addresses: accesses that the emulator does not
// report, or makes differently.

#include <cstdint>
#include <optional>
#include <span>

#include "monitor/processor/observed_processor.h"

namespace citcat::monitor {

class LinearMemory {
 public:
  explicit LinearMemory(ObservedProcessor& cpu) : cpu_(cpu) {}

  // What is there. The bus shows the walk to it, and nothing else.
  std::uint64_t read64(std::uint64_t linear);
  std::uint32_t read32(std::uint64_t linear);
  std::uint16_t read16(std::uint64_t linear);
  std::uint8_t read8(std::uint64_t linear);
  /// What RAM holds at a linear address, without a trace on the bus. False where a part of it is
  /// elsewhere or nowhere.
  bool peek(std::uint64_t linear, std::span<std::uint8_t> bytes) const;

  /// Shows an access to what is there, of at most 512 bytes. False, and nothing is shown of the
  /// rest, from where no memory is mapped or it is a device's.
  bool show(std::uint64_t linear, unsigned size, bool store);
  /// The stores of [linear, linear + size), which follow one by one, are in RAM already.
  void expect_stores(std::uint64_t linear, unsigned size);
  void expect_no_stores() { cpu_.bus.expect_writes({}, {}); }
  /// A store of which only the monitor tells. Stacks may be unaligned: the part in a second page is
  /// where that is. `corrects`: the emulator has stored something else, of which the guest takes
  /// notice or not.
  void store(std::uint64_t linear, std::span<const std::uint8_t> bytes,
             std::optional<Notice> corrects);
  /// Stores that the emulator has made otherwise, block by block of 16 bytes. Aligned by 8: none
  /// crosses a page.
  void store_blocks(std::uint64_t linear, std::span<const std::uint8_t> bytes);
  /// Makes RAM hold these bytes, without a word on the bus.
  void correct(std::uint64_t linear, std::span<const std::uint8_t> bytes);

 private:
  void correct_part(PhysicalAddress physical, std::span<const std::uint8_t> bytes, Notice notice);

  ObservedProcessor& cpu_;
};

}  // namespace citcat::monitor
