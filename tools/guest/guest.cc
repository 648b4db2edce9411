#include "tools/guest/guest.h"

#include <cstring>

#include "replay/infer/page_map.h"
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

LinearAddr behind(LinearAddr at, std::size_t bytes) {
  // Addresses of 32 bits: 0 follows the last one.
  return LinearAddr{static_cast<std::uint32_t>(at.value + bytes)};
}

}  // namespace

std::optional<std::vector<std::uint8_t>> Guest::bytes(LinearAddr at, std::size_t size) const {
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < size; ++i) {
    const std::optional<std::uint8_t> value = byte(behind(at, i));
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<std::uint32_t> Guest::dword(LinearAddr at) const {
  const auto b = bytes(at, 4);
  if (!b) return std::nullopt;
  return std::uint32_t{(*b)[0]} | std::uint32_t{(*b)[1]} << 8 | std::uint32_t{(*b)[2]} << 16 |
         std::uint32_t{(*b)[3]} << 24;
}

std::optional<std::string> Guest::text(LinearAddr at, std::size_t most) const {
  std::string result;
  while (result.size() < most) {
    const std::optional<std::uint8_t> value = byte(behind(at, result.size()));
    if (!value) return std::nullopt;
    if (*value == 0) break;
    result.push_back(static_cast<char>(*value));
  }
  return result;
}

std::uint32_t MachineGuest::address_space() const { return machine_.engine().cr(3); }
std::uint32_t MachineGuest::gpr(int number) const { return machine_.engine().gpr(number); }
std::uint32_t MachineGuest::eip() const { return machine_.engine().eip(); }

bool MachineGuest::runs_program() const {
  return (machine_.engine().hflags() & kHfCpl) == kProgramLevel &&
         (machine_.engine().system_flags() & kVirtual8086Flag) == 0;
}

std::optional<std::uint8_t> MachineGuest::byte(LinearAddr at) const {
  const Memory& memory = machine_.memory();
  const Engine& engine = machine_.engine();
  if ((engine.cr(0) & kPagingBit) == 0) return memory.defined_byte(PhysAddr{at.value});
  // With PAE nothing is looked at: PageMap knows tables of two levels.
  if ((engine.cr(4) & kPaeBit) != 0) return std::nullopt;
  const auto place =
      PageMap::translate(engine.cr(3), at, [&](PhysAddr entry) { return dword_at(memory, entry); });
  return place ? memory.defined_byte(*place) : std::nullopt;
}

}  // namespace citcat::tools
