#include "replay/machine/run/code_fetch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace citcat {

const DecodedInstruction& CodeFetch::fetch(LinearAddr linear) {
  if (linear.page_begin() != cpu_.code.page) find_page(linear);
  const std::uint32_t offset = linear.offset_in_page();
  flight_.physical = cpu_.code.frame.plus32(offset);
  const CodeMode mode = cpu_.code_mode();
  DecodedCode::Slot& slot = decoded_.slot(linear);
  const std::uint32_t here = std::min(kPageSize - offset, std::uint32_t{kMaxInstructionBytes});
  if (slot.is(linear, mode, {cpu_.code.host + offset, here})) [[likely]] {
    if (!cpu_.memory.is_defined(flight_.physical, slot.info.length)) {
      throw UndefinedMemory{flight_.physical, slot.info.length, "code"};
    }
    if (expectation_.tells_reads())
      cpu_.audience.fetch(flight_.physical, slot.info.length, cpu_.position,
                          expectation_.judges_reads());
    decoded_.expect(linear.plus32(slot.info.length));
    return slot.info;
  }
  read(slot, linear, here, mode);
  return slot.info;
}

void CodeFetch::find_page(LinearAddr linear) {
  CodePage& code = cpu_.code;
  code.frame = cpu_.mmu.translate(linear, Access::execute, cpu_.program());
  code.frame = code.frame.page_begin();
  code.host = cpu_.memory.host(code.frame);
  if (code.host == nullptr) throw UndefinedMemory{code.frame, 1, "code"};
  require_code_at(linear, code.frame);
  code.page = linear.page_begin();
}

/// Decodes what lies at `linear`, with `here` bytes of it in this page at most.
void CodeFetch::read(DecodedCode::Slot& slot, LinearAddr linear, std::uint32_t here,
                     CodeMode mode) {
  slot.valid = false;
  if (wraps_around(linear)) return read_around(slot, linear, mode);
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::memcpy(bytes.data(), cpu_.code.host + linear.offset_in_page(), here);
  slot.info = decode_cache_.decode({bytes.data(), here}, mode);
  std::uint32_t first = slot.info.state == DecodeState::ok ? slot.info.length : here;
  std::uint32_t second = 0;
  PhysAddr next;
  if (slot.info.state == DecodeState::needs_more_bytes && here < kMaxInstructionBytes) {
    // The segment may end before.
    const std::uint32_t last = linear.low32() - cpu_.code.base + here - 1;
    if (cpu_.traits.has_limits && !cpu_.bits64() && last == cpu_.engine.segment_limit(kCs) &&
        last != 0xffffffff) {
      throw CpuException{13, 0u, 0};
    }
    next = cpu_.mmu.translate(cpu_.onward(linear, here), Access::execute, cpu_.program());
    const std::uint8_t* host = cpu_.memory.host(next);
    if (host == nullptr) throw UndefinedMemory{next, 1, "code"};
    require_code_at(cpu_.onward(linear, here), next);
    std::memcpy(&bytes[here], host, bytes.size() - here);
    slot.info = decode_cache_.decode(bytes, mode);
    if (slot.info.state == DecodeState::ok) second = slot.info.length - here;
  } else if (slot.info.state != DecodeState::ok) {
    first = 1;  // how many bytes an invalid instruction takes is not defined
  }
  if (!cpu_.memory.is_defined(flight_.physical, first))
    throw UndefinedMemory{flight_.physical, first, "code"};
  if (second != 0 && !cpu_.memory.is_defined(next, second)) {
    throw UndefinedMemory{next, second, "code"};
  }
  if (expectation_.tells_reads()) {
    const bool judged = expectation_.judges_reads();
    cpu_.audience.fetch(flight_.physical, first, cpu_.position, judged);
    if (second != 0) cpu_.audience.fetch(next, second, cpu_.position, judged);
  }
  slot.linear = linear;
  slot.mode = mode;
  slot.valid = slot.info.state == DecodeState::ok;
}

/// Without limits code goes on at the beginning of its segment (8086 Family User's Manual, 2-13).
bool CodeFetch::wraps_around(LinearAddr linear) const {
  if (cpu_.traits.has_limits) return false;
  return linear.low32() - cpu_.code.base > kRealSegmentBytes - kMaxInstructionBytes;
}

/// The same for what may: each byte by itself, and never kept.
void CodeFetch::read_around(DecodedCode::Slot& slot, LinearAddr linear, CodeMode mode) {
  const std::uint32_t ip = linear.low32() - cpu_.code.base;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::array<PhysAddr, kMaxInstructionBytes> at{};
  std::size_t known = 0;
  for (; known < bytes.size(); ++known) {
    const LinearAddr from =
        linear32(cpu_.code.base, (ip + static_cast<std::uint32_t>(known)) % kRealSegmentBytes);
    at[known] = cpu_.mmu.translate(from, Access::execute, cpu_.program());
    if (!cpu_.memory.is_defined(at[known], 1)) break;
    bytes[known] = *cpu_.memory.host(at[known]);
  }
  slot.info = decode_cache_.decode({bytes.data(), known}, mode);
  if (slot.info.state != DecodeState::ok) throw UndefinedMemory{at[known % at.size()], 1, "code"};
  if (!expectation_.tells_reads()) return;
  for (std::size_t i = 0; i < slot.info.length; ++i) {
    cpu_.audience.fetch(at[i], 1, cpu_.position, expectation_.judges_reads());
  }
}

/// Throws CodeElsewhere where the engine translated code of the page before the processor's TLB
/// lost it, and the page's table has changed.
void CodeFetch::require_code_at(LinearAddr page, PhysAddr frame) const {
  const auto told = cpu_.engine_code.frame_of(page);
  if (told && told->page() != frame.page()) throw CodeElsewhere{};
}

/// True where the code segment ends within an undefined instruction. Processors find it undefined
/// only once they have all its bytes.
bool CodeFetch::reaches_beyond_limit(LinearAddr linear) {
  if (!cpu_.traits.has_limits || cpu_.bits64()) return false;
  const std::uint32_t eip = linear.low32() - cpu_.code.base, limit = cpu_.engine.segment_limit(kCs);
  if (eip > limit) return true;
  const std::uint32_t room = limit - eip + 1;
  if (room == 0 || room >= kMaxInstructionBytes) return false;
  std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
  std::uint32_t n = 0;
  for (; n < room; ++n) {
    const auto at =
        cpu_.mmu.look_up(linear.plus32(n), Access::execute, cpu_.program(), Lookup::free);
    if (!at || !cpu_.memory.is_mapped(at->frame.page())) break;
    bytes[n] = *cpu_.memory.host(at->frame.plus32(linear.plus32(n).offset_in_page()));
  }
  return n == room && decode_cache_.decode({bytes.data(), n}, cpu_.code_mode()).state ==
                          DecodeState::needs_more_bytes;
}

void CodeFetch::refuse_undefined(const DecodedInstruction& info, LinearAddr linear) {
  if (reaches_beyond_limit(linear) || info.reason == InvalidReason::too_long) {
    throw CpuException{13, 0u, 0};
  }
  throw CpuException{6, std::nullopt, 0};
}

}  // namespace citcat
