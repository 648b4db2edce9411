#include "replay/machine/units/operands.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "formats/io/error.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/debug_unit.h"
#include "x86/early_cpu_quirks.h"
#include "x86/fx_image.h"

namespace citcat {

namespace {

constexpr std::uint32_t kRegister = fx_image::kRegisterBytes;

/// Calls visit(first, size) for the slots of FXSAVE's area.
template <class F>
void for_each_slot(const MemoryOperand& operand, F&& visit) {
  for (std::uint32_t at = 0; at < operand.size; at += fx_image::kSlot) {
    const std::size_t size = operand.read ? fx_image::restored_bytes(at) : fx_image::kSlot;
    visit(at, static_cast<std::uint32_t>(size));
  }
}

/// The same for the parts of any other operand of the x87 unit: the fields of an environment, and
/// mantissa and exponent of registers.
template <class F>
void for_each_part(const MemoryOperand& operand, F&& visit) {
  constexpr std::uint32_t kEnvironment16 = 14, kEnvironment32 = 28, kRegisters = 80, kMantissa = 8;
  const std::uint32_t bytes = operand.size;
  if (bytes > kEnvironment32 + kRegisters) return for_each_slot(operand, visit);
  const std::uint32_t environment = bytes == kRegister   ? 0
                                    : bytes > kRegisters ? bytes - kRegisters
                                                         : bytes;
  const std::uint32_t field = environment == kEnvironment16 ? 2 : 4;
  std::uint32_t at = 0;
  for (; at < environment; at += field) visit(at, field);
  for (; at < bytes; at += kRegister) {
    visit(at, kMantissa);
    visit(at + kMantissa, kRegister - kMantissa);
  }
}

}  // namespace

void Operands::access(const DataAccess& a, const MemoryOperand& operand) {
  if (cpu_.traits.wraps_words && a.offset + a.size > 0x10000) {
    split_access(a, operand);
    return;
  }
  if (is_in_parts(a, operand)) [[unlikely]] {
    access_parts(a, operand);
    return;
  }
  if (operand.conditional_write && selects_bytes()) [[unlikely]] {
    access_selected(a, operand);
    return;
  }
  access_whole(a, operand);
}

void Operands::access_whole(const DataAccess& a, const MemoryOperand& operand) {
  check_segment(a, operand, a.write || operand.write);
  if (debug_.breaks_on_data()) [[unlikely]]
    debug_.check_data(a);
  if (a.write) {
    const bool keeps = operand.conditional_write &&
                       shift_writes_nothing(*flight_.info, cpu_.model,
                                            static_cast<std::uint8_t>(cpu_.engine.gpr(kEcx)));
    if (!keeps) access_pages(a, Access::write, false);
  } else {
    // A read-modify-write asks for write permission before it reads: a page it may not write is
    // left without its accessed bit.
    access_pages(a, operand.write ? Access::write : Access::read, true);
  }
}

/// Both pages of an operand, which is never longer than one, are found before anything of it is
/// read: where the second one faults, the bus shows no read of the first.
void Operands::access_pages(const DataAccess& a, Access kind, bool is_read) {
  const std::uint32_t first =
      std::min<std::uint32_t>(a.size, kPageSize - a.linear.offset_in_page());
  const bool user = cpu_.user_mode();
  const PhysAddr at = cpu_.mmu.translate(a.linear, kind, program(user));
  flight_.accessed = a.linear;
  if (first == a.size) return is_read ? read_part(at, first, 0) : store_part(at, first);
  const LinearAddr linear_rest = cpu_.onward(a.linear, first);
  const PhysAddr behind = cpu_.mmu.translate(linear_rest, kind, program(user));
  const std::uint32_t rest = a.size - first;
  if (is_read) {
    read_part(at, first, 0);
    flight_.accessed = linear_rest;
    read_part(behind, rest, first);
  } else {
    store_part(at, first);
    flight_.accessed = linear_rest;
    store_part(behind, rest);
  }
}

/// Reads the part of an operand that lies in one page, `first` bytes into the operand.
void Operands::read_part(PhysAddr at, std::uint32_t size, std::uint32_t first) {
  if (!cpu_.memory.is_mapped(at.page())) throw UndefinedMemory{at, size, "data"};
  if (flight_.wants_patch) patcher_.refuse_reading_own_code(at, size);
  if (!cpu_.memory.is_defined(at, size) && flight_.info->kind != InstructionClass::fxrstor) {
    throw UndefinedMemory{at, size, "data"};
  }
  flight_.copied_from = at;
  if (expectation_.tells_reads() && ++flight_.reads_told > flight_.reads_to_skip)
    tell_read(at, size, first);
}

void Operands::store_part(PhysAddr at, std::uint32_t size) {
  if (!cpu_.memory.is_mapped(at.page())) throw NeedsMapping{at.page()};
  CITCAT_ASSERT(flight_.store_count < flight_.stores.size());
  flight_.stores[flight_.store_count++] = {at, size, flight_.accessed};
  flight_.stores_to_code |= cpu_.memory.holds_code(at.page());
}

/// Tells a read of `size` bytes, `first` bytes into its operand.
void Operands::tell_read(PhysAddr at, std::uint32_t size, std::uint32_t first) {
  if (flight_.info->kind != InstructionClass::fxrstor) {
    cpu_.audience.read(at, size, AccessKind::data, cpu_.position, expectation_.judges_reads());
    return;
  }
  const auto is_read = [&](std::uint32_t i) {
    const std::size_t in_slot = (first + i) % fx_image::kSlot;
    return in_slot < fx_image::restored_bytes(first + i - in_slot);
  };
  const LinearAddr linear = flight_.accessed;
  for (std::uint32_t i = 0; i < size;) {
    std::uint32_t n = 0;
    while (i + n < size && is_read(i + n)) ++n;
    if (n != 0) {
      flight_.accessed = cpu_.onward(linear, i);
      cpu_.audience.read(at.plus32(i), n, AccessKind::data, cpu_.position,
                         expectation_.judges_reads());
    }
    i += n;
    while (i < size && !is_read(i)) ++i;
  }
}

void Operands::check_segment(const DataAccess& a, const MemoryOperand& operand, bool writes) const {
  if (!cpu_.traits.has_limits) return;  // has neither limits nor types
  if (cpu_.bits64()) return check_wide(a, operand);
  // Intel SDM vol. 3, 5.3 and 5.4. The engine checks neither limits nor types.
  const int s = operand.segment;
  const std::uint32_t limit = cpu_.engine.segment_limit(s);
  const std::uint32_t flags = cpu_.engine.segment_flags(s);
  const bool expand_down = (flags & 0x1c00) == 0x1400;  // S, data, E
  bool good;
  if (!expand_down) {
    // What goes on at 0 after a segment of 4 GiB is left to the implementation (SDM vol. 3, 5.3):
    // by blocks the engine lets it pass.
    good = a.offset <= limit && (limit - a.offset >= a.size - 1u || limit == 0xffffffff);
  } else {
    const std::uint32_t top = (flags & 1u << 22) != 0 ? 0xffffffff : 0xffff;
    good = a.offset > limit && a.offset <= top && top - a.offset >= a.size - 1u;
  }
  if (good && cpu_.protected_mode()) {
    const bool present = (flags & 0x8000) != 0;
    const bool code = (flags & 0x800) != 0;
    const bool bit = (flags & 0x200) != 0;  // writable data, readable code
    good = present && (writes ? !code && bit : !code || bit);
  }
  if (!good) throw CpuException{static_cast<std::uint8_t>(s == kSs ? 12 : 13), 0u, 0};
}

/// In 64-bit mode segments have no limits, but addresses must be canonical (SDM vol. 3, 5.3.1).
void Operands::check_wide(const DataAccess& a, const MemoryOperand& operand) const {
  const std::uint64_t last = a.linear.value + a.size - 1;
  if (CpuContext::is_canonical(a.linear.value) && CpuContext::is_canonical(last)) return;
  throw CpuException{static_cast<std::uint8_t>(operand.segment == kSs ? 12 : 13), 0u, 0};
}

void Operands::split_access(const DataAccess& a, const MemoryOperand& operand) {
  if (a.write && operand.conditional_write &&
      shift_writes_nothing(*flight_.info, cpu_.model,
                           static_cast<std::uint8_t>(cpu_.engine.gpr(kEcx)))) {
    return;
  }
  DataAccess first = a, second = a;
  first.size = static_cast<std::uint16_t>(kRealSegmentBytes - a.offset);
  second.size = static_cast<std::uint16_t>(a.size - first.size);
  second.offset = 0;
  second.linear = a.linear.plus32(0 - static_cast<std::uint32_t>(a.offset));
  const Access kind = a.write ? Access::write : Access::read;
  access_pages(first, kind, !a.write);
  access_pages(second, kind, !a.write);
  const bool again = a.write && operand.read;  // the read of a read-modify-write has lent already
  if (!again) patcher_.lend_beyond(second.linear, second.size);
}

/// The access is one to an operand in parts that reaches beyond FFFF.
bool Operands::is_in_parts(const DataAccess& a, const MemoryOperand& operand) const {
  const bool floating = flight_.info->kind == InstructionClass::x87 ||
                        flight_.info->kind == InstructionClass::fxsave ||
                        flight_.info->kind == InstructionClass::fxrstor;
  constexpr std::uint16_t kLargestWhole = 8;
  return floating && operand.width == AddressWidth::bits16 && a.size > kLargestWhole &&
         a.offset + a.size > kRealSegmentBytes;
}

void Operands::access_parts(const DataAccess& a, const MemoryOperand& operand) {
  for_each_part(operand, [&](std::uint32_t first, std::uint32_t size) {
    DataAccess part = a;
    part.offset = (a.offset + first) % kRealSegmentBytes;
    part.linear = a.linear.plus32(static_cast<std::uint32_t>(part.offset - a.offset));
    part.size = static_cast<std::uint16_t>(size);
    access(part, operand);
  });
}

bool Operands::selects_bytes() const {
  return flight_.info->is(Operation::maskmovq) || flight_.info->is(Operation::maskmovdqu);
}

/// SDM vol. 2, MASKMOVQ and MASKMOVDQU: bit 7 of each byte of the second register.
std::uint32_t Operands::selected_bytes() const {
  const DecodedInstruction& info = *flight_.info;
  FxImage image;
  cpu_.engine.read_fx(image);
  const bool is_mmx = info.is(Operation::maskmovq);
  // The image has x87 registers in the order of the stack, which MMX registers do not follow.
  const unsigned top = image[fx_image::kStatus + 1] >> 3 & 7u;
  const std::size_t at = is_mmx
                             ? fx_image::kRegisters + fx_image::kSlot * ((info.rm_field - top) & 7u)
                             : fx_image::kXmm + fx_image::kSlot * info.rm_field;
  std::uint32_t selected = 0;
  for (std::uint32_t i = 0; i < (is_mmx ? 8u : 16u); ++i) {
    selected |= static_cast<std::uint32_t>(image[at + i] >> 7) << i;
  }
  return selected;
}

void Operands::access_selected(const DataAccess& a, const MemoryOperand& operand) {
  const std::uint32_t selected = selected_bytes();
  for (std::uint32_t first = 0; first < a.size;) {
    const auto skipped = static_cast<std::uint32_t>(std::countr_zero(selected >> first));
    first = std::min<std::uint32_t>(a.size, first + skipped);
    const auto size = static_cast<std::uint32_t>(std::countr_one(selected >> first));
    if (size == 0) return;
    DataAccess part = a;
    part.offset = a.offset + first;
    part.linear = cpu_.onward(a.linear, first);
    part.size = static_cast<std::uint16_t>(size);
    access_whole(part, operand);
    first += size;
  }
}

void Operands::read_floating(std::span<std::uint8_t> out) {
  const MemoryOperand& operand = flight_.info->operands[0];
  DataAccess a;
  a.offset = cpu_.offset_of(operand);
  a.size = static_cast<std::uint16_t>(out.size());
  const std::uint64_t base = cpu_.base_of(operand.segment);
  if (!is_in_parts(a, operand)) return read(linear_at(base, a.offset, operand.width), out);
  for_each_part(operand, [&](std::uint32_t first, std::uint32_t size) {
    read(linear_at(base, (a.offset + first) % kRealSegmentBytes, operand.width),
         out.subspan(first, size));
  });
}

std::uint32_t Operands::part(const MemoryOperand& operand, unsigned i) {
  const std::uint64_t first = cpu_.offset_of(operand);
  return read_value(linear_at(cpu_.base_of(operand.segment),
                              access_offset(operand, first, i, cpu_.stack32()), operand.width),
                    operand.size);
}

bool Operands::wraps_between_parts() const {
  const DecodedInstruction& info = *flight_.info;
  switch (info.kind) {
    case InstructionClass::load_far_pointer:
    case InstructionClass::bound:
      break;
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
      if (info.indirect && info.operand_count > 1) break;
      return false;
    default:
      return false;
  }
  if (cpu_.real_16_bit()) return false;  // early_.prepare()
  const MemoryOperand& first = info.operands[info.ea[0].argument];
  const std::uint64_t offset = cpu_.offset_of(first);
  return first.width == AddressWidth::bits16 && offset + first.size >= kRealSegmentBytes;
}

void Operands::read(LinearAddr linear, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const std::size_t n = std::min<std::size_t>(out.size(), kPageSize - linear.offset_in_page());
    const PhysAddr at = cpu_.mmu.translate(linear, Access::read, cpu_.program());
    std::memcpy(out.data(), cpu_.memory.host(at), n);
    out = out.subspan(n);
    linear = cpu_.onward(linear, n);
  }
}

std::uint64_t Operands::read_wide_value(LinearAddr linear, std::uint32_t size) {
  std::array<std::uint8_t, 8> bytes{};
  read(linear, std::span(bytes).first(size));
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::uint32_t Operands::read_value(LinearAddr linear, std::uint32_t size) {
  CITCAT_ASSERT(size <= sizeof(std::uint32_t));
  return static_cast<std::uint32_t>(read_wide_value(linear, size));
}

void Operands::write_stores(std::span<const std::uint8_t> bytes) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < flight_.store_count; ++i) {
    InFlight::Store& s = flight_.stores[i];
    s.size = static_cast<std::uint32_t>(std::min<std::size_t>(s.size, bytes.size()));
    if (s.size == 0) break;
    cpu_.memory.store(s.physical, bytes.first(s.size));
    bytes = bytes.subspan(s.size);
    ++used;
  }
  flight_.store_count = used;
}

void Operands::keep_overwritten() {
  cpu_.engine.read_raw_flags(flight_.flags_before);
  flight_.overwritten.clear();
  for (const InFlight::Store& s : std::span(flight_.stores).first(flight_.store_count)) {
    const std::uint8_t* const from = cpu_.memory.host(s.physical);
    flight_.overwritten.insert(flight_.overwritten.end(), from, from + s.size);
  }
}

void Operands::put_back_overwritten() {
  const std::uint8_t* from = flight_.overwritten.data();
  for (const InFlight::Store& s : std::span(flight_.stores).first(flight_.store_count)) {
    std::memcpy(cpu_.memory.host(s.physical), from, s.size);
    from += s.size;
  }
  if (flight_.restore_segment_push) {
    std::memcpy(cpu_.memory.host(flight_.stores[0].physical.plus32(flight_.stores[0].size)),
                &flight_.segment_push_upper, 2);
  }
}

}  // namespace citcat
