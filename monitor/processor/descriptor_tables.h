#pragma once
// Where descriptors and vectors are, and the accessed bits that a processor sets in descriptors
// where the emulator sets none.

#include <cstdint>
#include <optional>

#include "monitor/processor/linear_memory.h"
#include "monitor/processor/table_entry.h"

namespace citcat::monitor {

class DescriptorTables {
 public:
  DescriptorTables(ObservedProcessor& cpu, LinearMemory& linear) : cpu_(cpu), linear_(linear) {}

  struct Places {
    std::uint64_t gdt;
    std::uint32_t gdt_limit;
    std::uint64_t ldt;
    std::uint32_t ldt_limit;
    std::uint64_t idt;
  };
  const Places& places();
  /// Something may have loaded their registers.
  void forget() { places_.reset(); }
  /// Whether a byte of RAM is in the GDT or LDT.
  bool hold(PhysicalAddress address);
  /// An entry of the GDT or LDT as it is, without a trace on the bus. Not present where there is
  /// none.
  TableEntry peek(unsigned selector);
  /// A segment register has been loaded with this selector.
  void mark_loaded(std::uint16_t selector);
  /// Sets the accessed bit of the descriptor at this linear address, which has been read: a write
  /// of one byte, where the bit was clear.
  void mark_accessed(std::uint64_t descriptor);

 private:
  std::optional<std::uint64_t> linear_of(unsigned selector);

  ObservedProcessor& cpu_;
  LinearMemory& linear_;
  std::optional<Places> places_;  ///< since they were last asked for
};

}  // namespace citcat::monitor
