// The x87 unit: what a processor shows of its pointers, environments and images where the emulator
// keeps less.

#include <algorithm>
#include <cstring>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kCr0Em = 4;

constexpr char kMmxFaulted[] =
    "an MMX instruction faulted, after which this emulator has x87 registers in use that a "
    "processor has not";

/// After REX.W: pointers of 64 bits, without selectors.
bool is_wide_image(const Insn& insn) { return (insn.what.rex & kRexW) != 0; }

}  // namespace

/// FS and GS are loaded with other bases under the same selector whenever a thread is switched to;
/// the others keep theirs.
std::uint64_t Recorder::segment_base(unsigned segment, std::uint16_t selector) {
  if (segment >= known_base_.size() || in_real_mode())
    return registers_.state().segment[segment].base;
  KnownBase& known = known_base_[segment];
  if (!known.known || known.selector != selector)
    known = {selector, registers_.state().segment[segment].base, true};
  return known.base;
}

void Recorder::note_fpu_access(const Insn& insn, std::uint64_t linear) {
  if (moves_environment(insn.what.kind)) {
    if (!environment_) environment_ = linear;
    return;
  }
  if (fpu_.operand_known()) return;
  const std::uint16_t selector = registers_.selector(insn.what.data_segment);
  // In 64-bit mode FS and GS alone have bases.
  const bool flat = insn.code == CodeSize::bits64 && insn.what.data_segment < 4;
  const std::uint64_t base = flat ? 0 : segment_base(insn.what.data_segment, selector);
  fpu_.operand(narrowed(insn, linear - base), selector);
}

EnvironmentForm Recorder::environment_form(const Insn& insn) {
  return {insn.what.operand_bytes == 4, in_real_mode() || registers_.in_virtual8086()};
}

/// Whether the access is of the environment, and not of the registers that FNSAVE and FRSTOR move
/// after it.
bool Recorder::is_environment(const Insn& insn, std::uint64_t linear) {
  return walker_.behind(linear, *environment_) < environment_form(insn).bytes();
}

/// A processor reads the whole environment; the emulator begins with its first word and passes over
/// the pointers.
void Recorder::read_environment(const Insn& insn, std::uint64_t linear) {
  if (linear != *environment_) return;
  const EnvironmentForm form = environment_form(insn);
  const unsigned field = insn.what.operand_bytes;
  for (unsigned at = 0; at < form.bytes(); at += field) block_access(linear + at, field, false);
}

void Recorder::load_fpu_environment(const Insn& insn) {
  if (!environment_) return;
  std::array<std::uint32_t, 7> fields;
  const unsigned bytes = insn.what.operand_bytes;
  for (unsigned n = 0; n < fields.size(); ++n)
    fields[n] =
        bytes == 4 ? read_linear32(*environment_ + 4 * n) : read_linear16(*environment_ + 2 * n);
  fpu_.load_environment(environment_form(insn), fields);
}

/// FNSTENV and FNSAVE store other pointers than the emulator, and ones where a field has more bytes
/// than it needs.
std::span<const std::uint8_t> Recorder::as_stored_environment(const Insn& insn,
                                                              std::uint64_t linear,
                                                              std::span<const std::uint8_t> value) {
  if (!is_environment(insn, linear) || value.size() != insn.what.operand_bytes) return value;
  const EnvironmentForm form = environment_form(insn);
  const auto offset = static_cast<unsigned>(walker_.behind(linear, *environment_));
  const unsigned field = offset / insn.what.operand_bytes;
  field_ = bytes_of(fpu_.stored_field(form, field, dword_of(value)));
  const auto bytes = std::span<const std::uint8_t>(field_).first(value.size());
  for (unsigned n = 0; n < bytes.size(); ++n) {
    const auto at = walker_.translate(linear + n, true);
    if (at && memory_.is_ram(*at, 1)) memory_.correct(*at, bytes.subspan(n, 1));
  }
  return bytes;
}

// FXSAVE and FXRSTOR. The emulator reports the fields it keeps. A processor moves the whole image,
// with the fields that the emulator has not: they are shown with what is in memory.

/// The pointers are in the first two blocks of an image, which may lie in two pages.
void Recorder::load_fpu_image(const Insn& insn) {
  constexpr unsigned kBlock = 16;
  std::array<std::uint8_t, 2 * kBlock> head{};
  for (unsigned at = 0; at < head.size(); at += kBlock) {
    const auto physical = walker_.translate(*block_address_ + at, false);
    if (!physical || !memory_.is_ram(*physical, kBlock)) return;
    std::memcpy(head.data() + at, memory_.live(*physical), kBlock);
  }
  fpu_.load_image(head.data(), is_wide_image(insn));
  tags_.load_image(head);
}

/// An instruction of the x87 unit that has ended, or EMMS. One that goes by which registers are in
/// use was executed with the emulator's.
void Recorder::finish_x87(const Insn& insn) {
  const InsnKind kind = insn.what.kind;
  const bool by_tags =
      kind == InsnKind::x87 || kind == InsnKind::x87_store || kind == InsnKind::x87_save;
  if (by_tags && tags_.is_other()) give_up(kMmxFaulted);
  switch (kind) {
    case InsnKind::x87:
      fpu_.commit();
      tags_.forget();
      break;
    case InsnKind::x87_init:
    case InsnKind::x87_save:
      fpu_.clear();
      tags_.clear();
      break;
    case InsnKind::x87_load:
      load_fpu_environment(insn);
      tags_.forget();
      break;
    case InsnKind::emms:
      if ((walker_.cr0() & kCr0Em) != 0)
        give_up("EMMS was executed with CR0.EM set, which processors refuse with #UD");
      tags_.empty();
      break;
    default:
      break;
  }
}

/// The blocks of 16 bytes up to the last register of the mode, XMM7 or XMM15 (Intel SDM vol. 1,
/// 10.5.1). An image is aligned by 16: no block crosses a page.
void Recorder::fpu_image(const Insn& insn, bool store) {
  if (!block_address_) return;
  const std::uint64_t linear = *block_address_;
  const unsigned bytes = image_bytes(insn.code);
  if (store) expect_stores(linear, bytes);
  for (unsigned n = 0; n < bytes; n += 16) {
    if (!store) {
      block_access(linear + n, is_x87_register(n) ? kX87RegisterBytes : 16, false);
      continue;
    }
    const auto physical = walker_.translate(linear + n, true);
    if (!physical || !memory_.is_ram(*physical, 16)) break;
    const auto block = stored_fpu_block(insn, n, memory_.live(*physical));
    memory_.correct(*physical, block);
    bus_.write(*physical, block);
  }
  bus_.expect_writes({}, {});
}

/// A block of the image as a processor stores it. The emulator leaves the bytes after each 80-bit
/// register alone, where a processor stores zeros, and does not store the pointers.
std::array<std::uint8_t, 16> Recorder::stored_fpu_block(const Insn& insn, unsigned offset,
                                                        const std::uint8_t* emulated) {
  constexpr unsigned kTags = 4;
  std::array<std::uint8_t, 16> block;
  std::memcpy(block.data(), emulated, block.size());
  if (is_x87_register(offset))
    std::fill(block.begin() + kX87RegisterBytes, block.end(), std::uint8_t{0});
  if (offset == 0) {
    block[kTags + 1] = 0;
    if (!tags_.store(block)) give_up(kMmxFaulted);
  }
  fpu_.store(offset, block.data(), is_wide_image(insn));
  return block;
}

}  // namespace citcat::monitor
