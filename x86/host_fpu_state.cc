// The state that HostFpu keeps, and how instructions read or set it: state words, environments.

#include <algorithm>

#include "x86/fx_image.h"
#include "x86/host_fpu.h"

namespace citcat {

using namespace fx_image;

// --- state words --------------------------------------------------------------------------------

void HostFpu::set_word(std::size_t at, std::uint16_t value) { store16(image_.data() + at, value); }
void HostFpu::set_dword(std::size_t at, std::uint32_t value) { store32(image_.data() + at, value); }
std::uint32_t HostFpu::mxcsr() const { return dword(kMxcsr); }

void HostFpu::update_summary() {
  std::uint16_t status = status_word();
  status = static_cast<std::uint16_t>(status & ~(kFpuErrorSummary | kFpuBusy));
  if ((status & ~control_word() & kFpuExceptions) != 0) status |= kFpuErrorSummary | kFpuBusy;
  set_word(kStatus, status);
}

std::uint16_t HostFpu::tag_word() const {
  unsigned tags = 0;
  for (unsigned physical = 0; physical < 8; ++physical) {
    unsigned tag = 3;  // empty
    if ((image_[kTags] >> physical & 1) != 0) {
      const std::uint8_t* reg = image_.data() + kRegisters + kSlot * ((physical - top()) & 7);
      const unsigned exponent = load16(reg + 8) & 0x7fff;
      const bool integer_bit = (reg[7] & 0x80) != 0;
      const bool zero = std::all_of(reg, reg + 8, [](std::uint8_t byte) { return byte == 0; });
      if (exponent == 0 && zero) {
        tag = 1;
      } else {
        tag = exponent == 0 || exponent == 0x7fff || !integer_bit ? 2 : 0;
      }
    }
    tags |= tag << (2 * physical);
  }
  return static_cast<std::uint16_t>(tags);
}

void HostFpu::set_tag_word(std::uint16_t tags) {
  unsigned abridged = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((tags >> (2 * i) & 3) != 3) abridged |= 1u << i;
  }
  image_[kTags] = static_cast<std::uint8_t>(abridged);
}

/// Moves TOP and leaves the physical registers where they are: the image numbers them from TOP.
void HostFpu::set_top(unsigned new_top) {
  const auto first = image_.begin() + kRegisters;
  const unsigned shift = (new_top - top()) & 7;
  std::rotate(first, first + static_cast<std::ptrdiff_t>(kSlot * shift),
              first + static_cast<std::ptrdiff_t>(kSlot * 8));
  set_word(kStatus, static_cast<std::uint16_t>((status_word() & ~0x3800u) | new_top << 11));
}

/// FNINIT (SDM vol. 2): register contents stay, pointers are cleared.
void HostFpu::initialize() {
  set_top(0);
  set_word(kControl, 0x37f);
  set_word(kStatus, 0);
  image_[kTags] = 0;
  clear_pointers();
}

/// The selectors too, which images of 64 bits have no room for.
void HostFpu::clear_pointers() {
  std::fill_n(image_.begin() + kOpcode, kMxcsr - kOpcode, std::uint8_t{0});
  code_selector_ = data_selector_ = 0;
}

void HostFpu::note_mmx(int written) {
  set_top(0);
  image_[kTags] = 0xff;
  if (written >= 0)
    set_word(kRegisters + kSlot * static_cast<std::size_t>(written & 7) + 8, 0xffff);
}

void HostFpu::set_pointer(std::size_t at, std::uint64_t offset, std::uint16_t selector) {
  set_dword(at, static_cast<std::uint32_t>(offset));
  if (wide_) {
    set_dword(at + 4, static_cast<std::uint32_t>(offset >> 32));
  } else {
    set_word(at + 4, selector);
  }
}

void HostFpu::set_code_pointer(std::uint64_t offset, std::uint16_t selector) {
  set_pointer(kCodeOffset, offset, selector);
  code_selector_ = selector;
}

void HostFpu::set_data_pointer(std::uint64_t offset, std::uint16_t selector) {
  set_pointer(kDataOffset, offset, selector);
  data_selector_ = selector;
}

// --- environment images (SDM vol. 1, figures 8-9 to 8-12)
// -----------------------------------------
//
// Real-mode images hold 32-bit linear addresses split around the opcode field; protected-mode
// images hold selector and offset. The unused upper halves of the 32-bit image are written as ones.

void HostFpu::store_environment(const FpuForm& form, FpuOperands& operands) const {
  std::uint8_t* out = operands.memory.data();
  const std::uint32_t fop = word(kOpcode) & 0x7ff;
  std::uint32_t fip = dword(kCodeOffset), fdp = dword(kDataOffset);
  const std::uint32_t fcs = code_selector(), fds = data_selector();
  if (form.real_image) {
    fip += fcs << 4;
    fdp += fds << 4;
  }
  if (form.wide_image) {
    constexpr std::uint32_t kOnes = 0xffff0000;
    store32(out, kOnes | control_word());
    store32(out + 4, kOnes | status_word());
    store32(out + 8, kOnes | tag_word());
    store32(out + 12, form.real_image ? kOnes | (fip & 0xffff) : fip);
    store32(out + 16, form.real_image ? (fip & kOnes) >> 4 | fop : fop << 16 | fcs);
    store32(out + 20, form.real_image ? kOnes | (fdp & 0xffff) : fdp);
    store32(out + 24, form.real_image ? (fdp & kOnes) >> 4 : kOnes | fds);
    return;
  }
  store16(out, control_word());
  store16(out + 2, status_word());
  store16(out + 4, tag_word());
  store16(out + 6, fip);
  store16(out + 8, form.real_image ? (fip & 0xf0000) >> 4 | fop : fcs);
  store16(out + 10, fdp);
  store16(out + 12, form.real_image ? (fdp & 0xf0000) >> 4 : fds);
}

void HostFpu::load_environment(const FpuForm& form, const FpuOperands& operands) {
  const std::uint8_t* in = operands.memory.data();
  const std::size_t step = form.wide_image ? 4 : 2;
  const std::uint16_t status = load16(in + step);
  set_top(status >> 11 & 7);
  set_word(kControl, static_cast<std::uint16_t>((load16(in) & 0x1f3f) | 0x40));
  set_word(kStatus, status);
  set_tag_word(load16(in + 2 * step));
  const std::uint32_t code = form.wide_image ? load32(in + 12) : load16(in + 6);
  const std::uint32_t middle = form.wide_image ? load32(in + 16) : load16(in + 8);
  const std::uint32_t data = form.wide_image ? load32(in + 20) : load16(in + 10);
  const std::uint32_t last = form.wide_image ? load32(in + 24) : load16(in + 12);
  if (form.real_image) {
    const std::uint32_t high = form.wide_image ? 0x0ffff000 : 0xf000;
    set_dword(kCodeSelector, 0);
    set_dword(kDataSelector, 0);
    set_code_pointer((code & 0xffff) | (middle & high) << 4, 0);
    set_data_pointer((data & 0xffff) | (last & high) << 4, 0);
    set_word(kOpcode, middle & 0x7ff);
  } else {
    set_dword(kCodeSelector, 0);
    set_dword(kDataSelector, 0);
    set_code_pointer(code, static_cast<std::uint16_t>(middle));
    set_data_pointer(data, static_cast<std::uint16_t>(last));
    // The 16-bit image of protected mode has no room for the opcode.
    set_word(kOpcode,
             form.wide_image ? static_cast<std::uint16_t>(middle >> 16 & 0x7ff) : std::uint16_t{0});
  }
  update_summary();
}

FpuResult HostFpu::save(const FpuForm& form, FpuOperands& operands) {
  store_environment(form, operands);
  std::uint8_t* out = operands.memory.data() + (form.wide_image ? 28 : 14);
  for (std::size_t i = 0; i < 8; ++i) {
    std::copy_n(image_.data() + kRegisters + kSlot * i, kRegisterBytes, out + kRegisterBytes * i);
  }
  initialize();
  FpuResult result;
  result.store_bytes = form.memory_bytes;
  return result;
}

void HostFpu::restore(const FpuForm& form, const FpuOperands& operands) {
  load_environment(form, operands);
  const std::uint8_t* in = operands.memory.data() + (form.wide_image ? 28 : 14);
  for (std::size_t i = 0; i < 8; ++i) {
    std::copy_n(in + kRegisterBytes * i, kRegisterBytes, image_.data() + kRegisters + kSlot * i);
  }
}

FpuResult HostFpu::fxsave(const FpuForm& form, FpuOperands& operands) const {
  operands.memory = shown(form.wide_image);
  FpuResult result;
  result.store_bytes = operands.save_sse ? form.memory_bytes : static_cast<std::uint16_t>(kXmm);
  return result;
}

FxImage HostFpu::shown(bool wide_pointers) const {
  FxImage shown = image_;
  if (wide_ && !wide_pointers) {
    store32(shown.data() + kCodeSelector, code_selector());
    store32(shown.data() + kDataSelector, data_selector());
  }
  store32(shown.data() + kMxcsrMask, mxcsr_mask_);
  return shown;
}

FpuResult HostFpu::fxrstor(const FpuForm& form, const FpuOperands& operands) {
  FpuResult result;
  if (operands.save_sse && (load32(operands.memory.data() + kMxcsr) & ~accepted_mxcsr()) != 0) {
    result.fault = FpuResult::Fault::protection;
    return result;
  }
  FxImage after = image_;
  const std::size_t end = operands.save_sse ? form.memory_bytes : kXmm;
  std::copy_n(operands.memory.begin(), end, after.begin());
  if (!operands.save_sse) store32(after.data() + kMxcsr, mxcsr());
  take(after, form.wide_image);
  return result;
}

void HostFpu::take(const FxImage& shown, bool wide_pointers) {
  image_ = shown;
  image_[kTags + 1] = 0;
  set_word(kControl, static_cast<std::uint16_t>((control_word() & 0x1f3f) | 0x40));
  set_word(kOpcode, word(kOpcode) & 0x7ff);
  if (!wide_) {
    set_word(kCodeSelector + 2, 0);
    set_word(kDataSelector + 2, 0);
  } else if (!wide_pointers) {
    set_code_pointer(dword(kCodeOffset), word(kCodeSelector));
    set_data_pointer(dword(kDataOffset), word(kDataSelector));
  }
  for (std::size_t i = 0; i < 8; ++i) {
    const auto reserved = static_cast<std::ptrdiff_t>(kRegisters + kSlot * i + kRegisterBytes);
    std::fill_n(image_.begin() + reserved, kSlot - kRegisterBytes, std::uint8_t{0});
  }
  update_summary();
}

FpuResult HostFpu::ldmxcsr(const FpuOperands& operands) {
  FpuResult result;
  const std::uint32_t value = load32(operands.memory.data());
  if ((value & ~accepted_mxcsr()) != 0) {
    result.fault = FpuResult::Fault::protection;
  } else {
    set_dword(kMxcsr, value);
  }
  return result;
}

}  // namespace citcat
