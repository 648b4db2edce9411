#pragma once
// A machine of two processors that run a few instructions, and what a monitor sees of their bus
// where nothing is cached. Made here, by the rules of data/smp/FORMATSMP.md and of
// docs/formats/capture.md, without any code of the importer.

#include <cstdint>
#include <string>
#include <vector>

namespace citcat::test {

/// A record of 40 bytes.
struct MadeRecord {
  std::uint64_t count = 0;
  std::uint32_t clock = 0, address = 0, iterations = 0;
  std::uint8_t type = 0, size = 0, flags = 0, place = 0;
  std::uint8_t data[16] = {};
};
static_assert(sizeof(MadeRecord) == 40);

struct MadeMachine {
  std::vector<MadeRecord> records;
  std::string internal[2];  ///< files of values that cross no bus
  std::uint64_t instructions[2] = {};

  /// As headerless records, or in version 3 of the native format: `flags` say that there are counts
  /// (1), clocks (2), and what shows sharing (4); `write_back`, that there are caches.
  std::string headerless() const;
  std::string native(std::uint16_t flags = 7, bool write_back = false) const;
};

/// Processor 0 writes 2Ah to 500h, waits until 504h holds 2Bh, reads its APIC's ID, tells the other
/// one by 508h and halts. Processor 1 waits for a SIPI, then for 2Ah at 500h, writes one more to
/// 504h and halts. They take turns of as many instructions as `turns` say, over and over.
///
/// `again`: at the end INIT and SIPI start processor 1 once more, and it does the same.
/// `hears`: processor 1 reads 508h before all that, and once more before it halts.
MadeMachine made_machine(const std::vector<unsigned>& turns, bool again = false,
                         bool hears = false);

}  // namespace citcat::test
