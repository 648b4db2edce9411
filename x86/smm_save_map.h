#pragma once
// Where an SMI saves what (Intel SDM vol. 3, 34.4.1): 512 bytes below SMBASE + 10000h whose layout
// depends on the processor. The saved revision identifier says which layout it is.

#include <cstddef>
#include <cstdint>
#include <span>

#include "events/machine/address.h"

namespace citcat {

/// Dwords an SMI saves and RSM takes back, the highest address first.
constexpr std::uint32_t kSmmSavedWords = 128;

/// What a dword of the saved state holds.
enum class SmmItem : std::uint8_t {
  control,
  eflags,
  eip,
  gpr,
  debug,
  selector,
  attributes,               ///< in the upper half; the lower repeats the selector
  selector_and_attributes,  ///< lower and upper half
  limit,
  base,
  gdt_base,
  gdt_limit,
  idt_base,
  idt_limit,
  revision,
  smbase,
  efer,
};

struct SmmField {
  std::uint16_t offset;  ///< from SMBASE + 8000h
  SmmItem item;
  /// Number of the register; for segments in SegmentRegister order, then LDTR and TR.
  std::uint8_t index = 0;
  bool upper = false;  ///< bits 32 to 63 of what is wider

  /// Place among the words, 0 for the highest address.
  constexpr std::size_t word() const { return (0x7ffcu - offset) / 4u; }
  constexpr PhysAddr address(std::uint32_t smbase) const {
    return PhysAddr{smbase + 0x8000u + offset};
  }
};
constexpr std::uint8_t kSmmLdtr = 6, kSmmTr = 7;

struct SmmSaveMap {
  std::uint32_t revision;
  std::span<const SmmField> fields;  ///< all others are reserved
};

/// The map of a processor whose revision identifier has this low byte: 64h is the AMD64 layout,
/// everything else is taken for the P6 family's.
const SmmSaveMap& smm_save_map(std::uint8_t revision);
/// The AMD64 layout of a processor with long mode: all of it.
const SmmSaveMap& long_mode_save_map();

/// Place of the revision identifier among the words, the same in all maps.
constexpr std::size_t kSmmRevisionWord = SmmField{0x7efc, SmmItem::revision}.word();

}  // namespace citcat
