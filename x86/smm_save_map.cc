#include "x86/smm_save_map.h"

#include <array>
#include <iterator>

#include "events/machine/cpu_state.h"

namespace citcat {
namespace {

/// The manual gives the places of some registers (SDM vol. 3, table 34-1) and calls the rest
/// reserved; the P6 family's map as sandpile.org lists it ("SMM state save map") has those of the
/// hidden parts.
constexpr std::array<SmmField, 53> kP6Fields = {{
    {0x7ffc, SmmItem::control, 0},
    {0x7ff8, SmmItem::control, 3},
    {0x7ff4, SmmItem::eflags},
    {0x7ff0, SmmItem::eip},
    {0x7fec, SmmItem::gpr, kEdi},
    {0x7fe8, SmmItem::gpr, kEsi},
    {0x7fe4, SmmItem::gpr, kEbp},
    {0x7fe0, SmmItem::gpr, kEsp},
    {0x7fdc, SmmItem::gpr, kEbx},
    {0x7fd8, SmmItem::gpr, kEdx},
    {0x7fd4, SmmItem::gpr, kEcx},
    {0x7fd0, SmmItem::gpr, kEax},
    {0x7fcc, SmmItem::debug, 6},
    {0x7fc8, SmmItem::debug, 7},
    {0x7fc4, SmmItem::selector, kSmmTr},
    {0x7fc0, SmmItem::selector, kSmmLdtr},
    {0x7fbc, SmmItem::selector, kGs},
    {0x7fb8, SmmItem::selector, kFs},
    {0x7fb4, SmmItem::selector, kDs},
    {0x7fb0, SmmItem::selector, kSs},
    {0x7fac, SmmItem::selector, kCs},
    {0x7fa8, SmmItem::selector, kEs},
    {0x7fa4, SmmItem::base, kSs},
    {0x7fa0, SmmItem::limit, kSs},
    {0x7f9c, SmmItem::attributes, kSs},
    {0x7f98, SmmItem::base, kCs},
    {0x7f94, SmmItem::limit, kCs},
    {0x7f90, SmmItem::attributes, kCs},
    {0x7f8c, SmmItem::base, kEs},
    {0x7f88, SmmItem::limit, kEs},
    {0x7f84, SmmItem::attributes, kEs},
    {0x7f80, SmmItem::base, kSmmLdtr},
    {0x7f7c, SmmItem::limit, kSmmLdtr},
    {0x7f78, SmmItem::attributes, kSmmLdtr},
    {0x7f74, SmmItem::gdt_base},
    {0x7f70, SmmItem::gdt_limit},
    {0x7f64, SmmItem::base, kSmmTr},
    {0x7f60, SmmItem::limit, kSmmTr},
    {0x7f5c, SmmItem::attributes, kSmmTr},
    {0x7f58, SmmItem::idt_base},
    {0x7f54, SmmItem::idt_limit},
    {0x7f4c, SmmItem::base, kGs},
    {0x7f48, SmmItem::limit, kGs},
    {0x7f44, SmmItem::attributes, kGs},
    {0x7f40, SmmItem::base, kFs},
    {0x7f3c, SmmItem::limit, kFs},
    {0x7f38, SmmItem::attributes, kFs},
    {0x7f34, SmmItem::base, kDs},
    {0x7f30, SmmItem::limit, kDs},
    {0x7f2c, SmmItem::attributes, kDs},
    {0x7f14, SmmItem::control, 4},
    {0x7efc, SmmItem::revision},
    {0x7ef8, SmmItem::smbase},
}};

/// AMD64 Architecture Programmer's Manual vol. 2, table 10-1 (AMD64 state-save area): the lower
/// halves of what a 32-bit processor has too.
constexpr std::array<SmmField, 45> kAmd64Fields = {{
    {0x7ff8, SmmItem::gpr, kEax},
    {0x7ff0, SmmItem::gpr, kEcx},
    {0x7fe8, SmmItem::gpr, kEdx},
    {0x7fe0, SmmItem::gpr, kEbx},
    {0x7fd8, SmmItem::gpr, kEsp},
    {0x7fd0, SmmItem::gpr, kEbp},
    {0x7fc8, SmmItem::gpr, kEsi},
    {0x7fc0, SmmItem::gpr, kEdi},
    {0x7f78, SmmItem::eip},
    {0x7f70, SmmItem::eflags},
    {0x7f68, SmmItem::debug, 6},
    {0x7f60, SmmItem::debug, 7},
    {0x7f58, SmmItem::control, 0},
    {0x7f50, SmmItem::control, 3},
    {0x7f48, SmmItem::control, 4},
    {0x7f00, SmmItem::smbase},
    {0x7efc, SmmItem::revision},
    {0x7e98, SmmItem::base, kSmmTr},
    {0x7e94, SmmItem::limit, kSmmTr},
    {0x7e90, SmmItem::selector_and_attributes, kSmmTr},
    {0x7e88, SmmItem::idt_base},
    {0x7e84, SmmItem::idt_limit},
    {0x7e78, SmmItem::base, kSmmLdtr},
    {0x7e74, SmmItem::limit, kSmmLdtr},
    {0x7e70, SmmItem::selector_and_attributes, kSmmLdtr},
    {0x7e68, SmmItem::gdt_base},
    {0x7e64, SmmItem::gdt_limit},
    {0x7e58, SmmItem::base, kGs},
    {0x7e54, SmmItem::limit, kGs},
    {0x7e50, SmmItem::selector_and_attributes, kGs},
    {0x7e48, SmmItem::base, kFs},
    {0x7e44, SmmItem::limit, kFs},
    {0x7e40, SmmItem::selector_and_attributes, kFs},
    {0x7e38, SmmItem::base, kDs},
    {0x7e34, SmmItem::limit, kDs},
    {0x7e30, SmmItem::selector_and_attributes, kDs},
    {0x7e28, SmmItem::base, kSs},
    {0x7e24, SmmItem::limit, kSs},
    {0x7e20, SmmItem::selector_and_attributes, kSs},
    {0x7e18, SmmItem::base, kCs},
    {0x7e14, SmmItem::limit, kCs},
    {0x7e10, SmmItem::selector_and_attributes, kCs},
    {0x7e08, SmmItem::base, kEs},
    {0x7e04, SmmItem::limit, kEs},
    {0x7e00, SmmItem::selector_and_attributes, kEs},
}};

constexpr auto kLongModeFields = [] {
  // What a processor with long mode has besides. The hidden parts of segments are read and written
  // whole, with their lower halves: the upper ones come after those.
  constexpr SmmField kBesides[] = {
      {0x7ed0, SmmItem::efer},    {0x7fb8, SmmItem::gpr, 8},  {0x7fb0, SmmItem::gpr, 9},
      {0x7fa8, SmmItem::gpr, 10}, {0x7fa0, SmmItem::gpr, 11}, {0x7f98, SmmItem::gpr, 12},
      {0x7f90, SmmItem::gpr, 13}, {0x7f88, SmmItem::gpr, 14}, {0x7f80, SmmItem::gpr, 15},
  };
  std::array<SmmField, 2 * (kAmd64Fields.size() + std::size(kBesides))> all{};
  std::size_t count = 0;
  for (const SmmField& field : kAmd64Fields) all[count++] = field;
  for (const SmmField& field : kBesides) all[count++] = field;
  for (std::size_t i = 0, lower = count; i < lower; ++i) {
    SmmField field = all[i];
    switch (field.item) {
      case SmmItem::control:
      case SmmItem::eflags:
      case SmmItem::eip:
      case SmmItem::gpr:
      case SmmItem::debug:
      case SmmItem::base:
      case SmmItem::gdt_base:
      case SmmItem::idt_base:
      case SmmItem::efer:
        field.offset = static_cast<std::uint16_t>(field.offset + 4);
        field.upper = true;
        all[count++] = field;
        break;
      default:
        break;
    }
  }
  struct Fields {
    std::array<SmmField, all.size()> array;
    std::size_t count;
  };
  return Fields{all, count};
}();

// Both: SMBASE may be relocated, no I/O instruction restart (SDM vol. 3, 34.16).
constexpr SmmSaveMap kP6Map{0x00020000, kP6Fields};
constexpr SmmSaveMap kAmd64Map{0x00020064, kAmd64Fields};
constexpr SmmSaveMap kLongModeMap{0x00020064,
                                  std::span(kLongModeFields.array).first(kLongModeFields.count)};

}  // namespace

const SmmSaveMap& smm_save_map(std::uint8_t revision) {
  return revision == (kAmd64Map.revision & 0xff) ? kAmd64Map : kP6Map;
}

const SmmSaveMap& long_mode_save_map() { return kLongModeMap; }

}  // namespace citcat
