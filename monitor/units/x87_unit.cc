#include "monitor/units/x87_unit.h"

#include <algorithm>
#include <cstring>

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kCr0Em = 4;

constexpr char kMmxFaulted[] =
    "an MMX instruction faulted, after which this emulator marks x87 registers as in use that a "
    "processor does not";

/// After REX.W: pointers of 64 bits, without selectors.
bool is_wide_image(const Insn& insn) { return (insn.what.rex & kRexW) != 0; }

}  // namespace

void X87Unit::begin(std::span<const std::uint8_t, kSlotBytes> head, const std::uint8_t* pointers) {
  if (pointers != nullptr)
    pointers_.load_image(pointers);
  else
    pointers_.clear();
  tags_.load_image(head);
}

void X87Unit::initialise() {
  pointers_.clear();
  tags_.clear();
}

void X87Unit::note_access(const Insn& insn, std::uint64_t linear) {
  if (moves_environment(insn.what.kind)) {
    if (!environment_) environment_ = linear;
    return;
  }
  if (pointers_.operand_known()) return;
  const std::uint16_t selector = cpu_.registers.selector(insn.what.data_segment);
  // In 64-bit mode FS and GS alone have bases.
  const bool flat = insn.code == CodeSize::bits64 && insn.what.data_segment < 4;
  const std::uint64_t base = flat ? 0 : cpu_.segment_base(insn.what.data_segment, selector);
  pointers_.operand(insn.narrowed(linear - base), selector);
}

EnvironmentForm X87Unit::environment_form(const Insn& insn) {
  return {insn.what.operand_bytes == 4, cpu_.in_real_mode() || cpu_.registers.in_virtual8086()};
}

bool X87Unit::is_environment(const Insn& insn, std::uint64_t linear) {
  return cpu_.walker.behind(linear, *environment_) < environment_form(insn).bytes();
}

void X87Unit::read_environment(const Insn& insn, std::uint64_t linear) {
  if (linear != *environment_) return;
  const EnvironmentForm form = environment_form(insn);
  const unsigned field = insn.what.operand_bytes;
  for (unsigned at = 0; at < form.bytes(); at += field) linear_.show(linear + at, field, false);
}

void X87Unit::load_environment(const Insn& insn) {
  if (!environment_) return;
  std::array<std::uint32_t, 7> fields;
  const unsigned bytes = insn.what.operand_bytes;
  for (unsigned n = 0; n < fields.size(); ++n)
    fields[n] =
        bytes == 4 ? linear_.read32(*environment_ + 4 * n) : linear_.read16(*environment_ + 2 * n);
  pointers_.load_environment(environment_form(insn), fields);
}

std::span<const std::uint8_t> X87Unit::as_stored(const Insn& insn, std::uint64_t linear,
                                                 std::span<const std::uint8_t> value) {
  if (!is_environment(insn, linear) || value.size() != insn.what.operand_bytes) return value;
  const EnvironmentForm form = environment_form(insn);
  const auto offset = static_cast<unsigned>(cpu_.walker.behind(linear, *environment_));
  const unsigned field = offset / insn.what.operand_bytes;
  field_ = bytes_of(pointers_.stored_field(form, field, dword_of(value)));
  const auto bytes = std::span<const std::uint8_t>(field_).first(value.size());
  for (unsigned n = 0; n < bytes.size(); ++n) {
    const auto at = cpu_.walker.translate(linear + n, true);
    if (at && cpu_.memory.is_ram(*at, 1)) cpu_.memory.correct(*at, bytes.subspan(n, 1));
  }
  return bytes;
}

/// The pointers are in the first two blocks of an image, which may lie in two pages.
void X87Unit::load_image(const Insn& insn) {
  constexpr unsigned kBlock = kSlotBytes;
  std::array<std::uint8_t, 2 * kBlock> head{};
  for (unsigned at = 0; at < head.size(); at += kBlock) {
    const auto physical = cpu_.walker.translate(*flight_.operand + at, false);
    if (!physical || !cpu_.memory.is_ram(*physical, kBlock)) return;
    std::memcpy(head.data() + at, cpu_.memory.live(*physical), kBlock);
  }
  pointers_.load_image(head.data(), is_wide_image(insn));
  tags_.load_image(head);
}

void X87Unit::finish(const Insn& insn) {
  const InsnKind kind = insn.what.kind;
  const bool by_tags =
      kind == InsnKind::x87 || kind == InsnKind::x87_store || kind == InsnKind::x87_save;
  if (by_tags && tags_.is_other()) recording_.give_up(kMmxFaulted);
  switch (kind) {
    case InsnKind::x87:
      pointers_.commit();
      tags_.forget();
      break;
    case InsnKind::x87_init:
    case InsnKind::x87_save:
      initialise();
      break;
    case InsnKind::x87_load:
      load_environment(insn);
      tags_.forget();
      break;
    case InsnKind::emms:
      if ((cpu_.walker.cr0() & kCr0Em) != 0)
        recording_.give_up("EMMS was executed with CR0.EM set, which processors refuse with #UD");
      tags_.empty();
      break;
    default:
      break;
  }
}

/// The blocks of 16 bytes up to the last register of the mode, XMM7 or XMM15 (Intel SDM vol. 1,
/// 10.5.1). An image is aligned by 16: no block crosses a page.
void X87Unit::show_image(const Insn& insn, bool store) {
  if (!flight_.operand) return;
  const std::uint64_t linear = *flight_.operand;
  const unsigned bytes = image_bytes(insn.code);
  if (store) linear_.expect_stores(linear, bytes);
  for (unsigned n = 0; n < bytes; n += kSlotBytes) {
    if (!store) {
      linear_.show(linear + n, is_x87_register(n) ? kX87RegisterBytes : kSlotBytes, false);
      continue;
    }
    const auto physical = cpu_.walker.translate(linear + n, true);
    if (!physical || !cpu_.memory.is_ram(*physical, kSlotBytes)) break;
    const auto block = stored_block(insn, n, cpu_.memory.live(*physical));
    cpu_.memory.correct(*physical, block);
    cpu_.bus.write(*physical, block);
  }
  linear_.expect_no_stores();
}

std::array<std::uint8_t, kSlotBytes> X87Unit::stored_block(const Insn& insn, unsigned offset,
                                                           const std::uint8_t* emulated) {
  constexpr unsigned kTags = 4;
  std::array<std::uint8_t, kSlotBytes> block;
  std::memcpy(block.data(), emulated, block.size());
  if (is_x87_register(offset))
    std::fill(block.begin() + kX87RegisterBytes, block.end(), std::uint8_t{0});
  if (offset == 0) {
    block[kTags + 1] = 0;
    if (!tags_.store(block)) recording_.give_up(kMmxFaulted);
  }
  pointers_.store(offset, block.data(), is_wide_image(insn));
  return block;
}

}  // namespace citcat::monitor
