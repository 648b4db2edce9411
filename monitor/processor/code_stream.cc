#include "monitor/processor/code_stream.h"

#include <algorithm>
#include <array>
#include <span>

namespace citcat::monitor {

/// The base of CS, where an instruction that was translated at a linear address is at `ip`. Once
/// known it stays until something loads CS.
std::uint64_t CodeStream::base_at(std::uint64_t ip, std::uint64_t translated_at) {
  if (segment_.known) return segment_.base;
  // Flat; asked again each time, because SYSENTER loads CS too.
  if (!cpu_.in_real_mode() && ip == translated_at) return segment_.base = 0;
  take_selector();
  segment_.base = cpu_.in_real_mode() && !segment_.hidden ? std::uint32_t{segment_.selector} << 4
                                                          : cpu_.registers.state().segment[1].base;
  segment_.known = true;
  return segment_.base;
}

/// `gpr(n)`, `base(segment)`: what registers hold.
template <typename Gpr, typename Base>
std::uint64_t CodeStream::address_of_operand(const Insn& insn, Gpr gpr, Base base) const {
  const MemoryOperand operand = insn.details().operand;
  std::array<std::uint64_t, kRip + 1> registers{};
  for (const int n : {operand.base, operand.index})
    if (n >= 0 && n < kRip) registers[static_cast<unsigned>(n)] = gpr(static_cast<unsigned>(n));
  registers[kRip] = insn.linear + displacement_;
  const std::uint64_t offset = operand_offset(operand, registers.data(), true);
  // In 64-bit mode FS and GS alone have a base.
  const bool flat = insn.code == CodeSize::bits64 && operand.segment < kFs;
  return linear_at(flat ? 0 : base(operand.segment), offset, operand.width).value;
}

std::uint64_t CodeStream::effective_address(const Insn& insn, const LoggedState& state) const {
  return address_of_operand(
      insn, [&](unsigned n) { return state.gpr[n]; },
      [&](unsigned segment) { return state.segment[segment].base; });
}

std::uint64_t CodeStream::effective_address(const Insn& insn) const {
  Registers& registers = cpu_.registers;
  return address_of_operand(
      insn, [&](unsigned n) { return registers.gpr(n); },
      [&](unsigned segment) { return cpu_.segment_base(segment, registers.selector(segment)); });
}

bool CodeStream::fetch_unseen(const Insn& insn, std::uint64_t linear) {
  if (cpu_.several || insn.physical == GuestMemory::kNotInRam || insn.size > left_in_page(linear))
    return false;
  const HeldPage* const page = cpu_.walker.held(linear, false, insn.physical);
  const std::span<const std::uint8_t> bytes(insn.bytes.data(), insn.size);
  if (page == nullptr) return false;
  if (!(cpu_.bus.has_code_cache() ? cpu_.bus.fetch_apart(page->in_ram, insn.physical, bytes, false)
                                  : cpu_.bus.fetch_unseen(page->in_ram, insn.physical, bytes)))
    return false;
  pass(linear, insn.size);
  line_is_known_ = true;
  return true;
}

void CodeStream::fetch(const Insn& insn, std::uint64_t linear) {
  line_is_known_ = false;
  const bool sequential = linear == next_;
  pass(linear, insn.size);
  const std::uint32_t in_page = std::min<std::uint32_t>(insn.size, left_in_page(linear));
  const std::span<const std::uint8_t> bytes(insn.bytes.data(), insn.size);
  const HeldPage* const held = in_page == insn.size && insn.physical != GuestMemory::kNotInRam
                                   ? cpu_.walker.held(linear, false, insn.physical)
                                   : nullptr;
  if (held != nullptr && cpu_.bus.fetch_plainly(held->in_ram, insn.physical, bytes, sequential)) {
    line_is_known_ = true;
    return;
  }
  if (held != nullptr && cpu_.bus.has_code_cache() && !cpu_.several &&
      cpu_.bus.fetch_apart(held->in_ram, insn.physical, bytes, true)) {
    line_is_known_ = true;
    return;
  }
  const bool is_in_ram = insn.physical != GuestMemory::kNotInRam;
  const auto physical =
      is_in_ram ? std::optional(insn.physical) : cpu_.walker.translate(linear, false);
  if (!physical) return;
  if (is_in_ram) cpu_.walker.translate_as(linear, false, *physical);
  line_is_known_ = cpu_.bus.fetch(*physical, bytes.first(in_page), sequential);
  if (in_page == insn.size) return;
  const auto second = cpu_.walker.translate(linear + in_page, false);
  line_is_known_ = second && cpu_.bus.fetch(*second, bytes.subspan(in_page), true);
}

}  // namespace citcat::monitor
