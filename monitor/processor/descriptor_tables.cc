#include "monitor/processor/descriptor_tables.h"

#include <algorithm>
#include <array>
#include <span>

#include "monitor/processor/insn.h"

namespace citcat::monitor {

const DescriptorTables::Places& DescriptorTables::places() {
  if (!places_) {
    const LoggedState state = cpu_.registers.state();
    const std::uint32_t ldt_limit = (state.ldtr.selector & 0xfffc) != 0 ? state.ldtr.limit : 0;
    places_ = {state.gdt_base, state.gdt_limit, state.ldtr.base, ldt_limit, state.idt_base};
  }
  return *places_;
}

/// Where its descriptor is; nullopt beyond the end of the table.
std::optional<std::uint64_t> DescriptorTables::linear_of(unsigned selector) {
  const bool local = (selector & 4) != 0;
  const std::uint32_t at = selector & 0xfff8;
  if (at + 7 > (local ? places().ldt_limit : places().gdt_limit)) return std::nullopt;
  return (local ? places().ldt : places().gdt) + at;
}

bool DescriptorTables::hold(PhysicalAddress address) {
  const auto is_in = [&](std::uint64_t base, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += left_in_page(base + at)) {
      const auto physical = cpu_.walker.locate(base + at);
      const std::uint64_t part = std::min<std::uint64_t>(bytes - at, left_in_page(base + at));
      if (physical && address - *physical < part) return true;
    }
    return false;
  };
  return is_in(places().gdt, places().gdt_limit + std::uint64_t{1}) ||
         is_in(places().ldt, places().ldt_limit + std::uint64_t{1});
}

TableEntry DescriptorTables::peek(unsigned selector) {
  TableEntry entry;
  std::array<std::uint8_t, 8> bytes{};
  const auto linear = linear_of(selector);
  if (!linear) return entry;
  entry.linear = *linear;
  if (!linear_.peek(entry.linear, bytes)) return entry;
  entry.low = dword_of(bytes);
  entry.high = dword_of(std::span(bytes).subspan(4));
  return entry;
}

void DescriptorTables::mark_loaded(std::uint16_t selector) {
  if ((selector & 0xfffc) == 0) return;
  if (const auto linear = linear_of(selector)) mark_accessed(*linear);
}

void DescriptorTables::mark_accessed(std::uint64_t descriptor) {
  constexpr std::uint8_t kAccessed = 1, kCodeOrData = 0x10;
  const std::uint64_t linear = descriptor + 5;
  const auto at = cpu_.walker.translate(linear, false);
  if (!at || !cpu_.memory.is_readable(*at, 1)) return;
  std::uint8_t type = 0;
  cpu_.memory.read(*at, {&type, 1});
  cpu_.memory.as_processor_left(*at, {&type, 1});
  if ((type & kAccessed) != 0 || (type & kCodeOrData) == 0) return;
  type |= kAccessed;
  if (const auto physical = cpu_.walker.translate_own_store(linear)) {
    cpu_.memory.write(*physical, {&type, 1}, Notice::of_accessed);
    cpu_.bus.write(*physical, {&type, 1});
  }
}

}  // namespace citcat::monitor
