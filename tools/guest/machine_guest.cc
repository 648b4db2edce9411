#include "tools/guest/machine_guest.h"

#include <cstring>

#include "replay/infer/registers/page_map.h"
#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {

namespace {

constexpr std::uint32_t kVirtual8086Flag = 1u << 17;
constexpr std::uint32_t kProgramLevel = 3;

constexpr std::uint32_t kPagingBit = 1u << 31, kPaeBit = 1u << 5;  // SDM vol. 3, 2.5

/// An entry of a page table, which never crosses a frame.
std::optional<std::uint32_t> dword_at(const Memory& memory, PhysAddr at) {
  if (!memory.is_mapped(at.page()) || !memory.is_defined(at, 4)) return std::nullopt;
  std::uint32_t value = 0;
  std::memcpy(&value, memory.host(at), sizeof value);
  return value;
}

}  // namespace

AddressSpaceId MachineGuest::address_space() const { return machine_.engine().address_space(); }
bool MachineGuest::in_64_bit_mode() const { return code_bits(machine_.engine()) == 64; }
std::uint64_t MachineGuest::gpr(int number) const {
  const Engine& engine = machine_.engine();
  return in_64_bit_mode() ? engine.wide().gpr(number) : engine.gpr(number);
}
std::uint64_t MachineGuest::ip() const {
  return in_64_bit_mode() ? machine_.engine().rip() : machine_.engine().eip();
}

bool MachineGuest::runs_program() const {
  return (machine_.engine().hflags() & kHfCpl) == kProgramLevel &&
         (machine_.engine().system_flags() & kVirtual8086Flag) == 0;
}

std::optional<std::uint8_t> MachineGuest::byte(LinearAddr at) const {
  const Memory& memory = machine_.memory();
  const Engine& engine = machine_.engine();
  if ((engine.cr(0) & kPagingBit) == 0) return memory.defined_byte(PhysAddr{at.value});
  if (in_long_mode(engine)) {
    const auto lies = machine_.find(at);
    return lies ? memory.defined_byte(*lies) : std::nullopt;
  }
  // With PAE nothing is looked at: PageMap knows tables of two levels.
  if ((engine.cr(4) & kPaeBit) != 0) return std::nullopt;
  const auto place = PageMap::translate(kTwoLevels, engine.cr(3), at,
                                        [&](PhysAddr entry) { return dword_at(memory, entry); });
  return place ? memory.defined_byte(*place) : std::nullopt;
}

}  // namespace citcat::tools
