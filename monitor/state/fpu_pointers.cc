#include "monitor/state/fpu_pointers.h"

#include <cstring>

namespace citcat::monitor {
namespace {

// Offsets in the FXSAVE image (Intel SDM vol. 1, table 10-2).
constexpr unsigned kOpcode = 6, kCodeOffset = 8, kCodeSelector = 12, kDataOffset = 16,
                   kDataSelector = 20, kSecondBlock = 16;
constexpr std::uint16_t kOpcodeBits = 0x7ff;

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// A selector has its 16 bits and 16 reserved ones, stored as zeros.
void store_selector(std::uint8_t* at, std::uint16_t selector) {
  const std::uint32_t value = selector;
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

void FpuPointers::begin(std::uint16_t opcode, std::uint64_t offset, std::uint16_t code_selector) {
  begun_ = {};
  begun_.opcode = opcode & kOpcodeBits;
  begun_.code_offset = offset;
  begun_.code_selector = code_selector;
}

void FpuPointers::operand(std::uint64_t offset, std::uint16_t data_selector) {
  if (begun_.has_operand) return;
  begun_.has_operand = true;
  begun_.data_offset = offset;
  begun_.data_selector = data_selector;
}

void FpuPointers::commit() {
  if (!begun_.has_operand) {
    begun_.data_offset = now_.data_offset;
    begun_.data_selector = now_.data_selector;
  }
  now_ = begun_;
}

void FpuPointers::load_image(const std::uint8_t* image, bool wide) {
  now_.opcode = load<std::uint16_t>(image + kOpcode) & kOpcodeBits;
  if (wide) {
    now_.code_offset = load<std::uint64_t>(image + kCodeOffset);
    now_.data_offset = load<std::uint64_t>(image + kDataOffset);
    return;
  }
  now_.code_offset = load<std::uint32_t>(image + kCodeOffset);
  now_.code_selector = load<std::uint16_t>(image + kCodeSelector);
  now_.data_offset = load<std::uint32_t>(image + kDataOffset);
  now_.data_selector = load<std::uint16_t>(image + kDataSelector);
}

void FpuPointers::load_environment(EnvironmentForm form, std::span<const std::uint32_t, 7> fields) {
  const std::uint32_t code = fields[3], middle = fields[4], data = fields[5], last = fields[6];
  now_ = {};
  if (form.linear) {
    const std::uint32_t high = form.wide ? 0x0ffff000 : 0xf000;
    now_.code_offset = (code & 0xffff) | (middle & high) << 4;
    now_.data_offset = (data & 0xffff) | (last & high) << 4;
    now_.opcode = middle & kOpcodeBits;
    return;
  }
  now_.code_offset = code;
  now_.code_selector = static_cast<std::uint16_t>(middle);
  now_.data_offset = data;
  now_.data_selector = static_cast<std::uint16_t>(last);
  // The form of 16 bits has no room for the opcode.
  if (form.wide) now_.opcode = middle >> 16 & kOpcodeBits;
}

std::uint32_t FpuPointers::stored_field(EnvironmentForm form, unsigned n,
                                        std::uint32_t emulated) const {
  // Where a field of 4 bytes holds less, its upper half is ones.
  const std::uint32_t ones = form.wide ? 0xffff0000 : 0;
  if (n < 3) return ones | (emulated & 0xffff);  // control, status and tag words
  const auto code_offset = static_cast<std::uint32_t>(now_.code_offset);
  const auto data_offset = static_cast<std::uint32_t>(now_.data_offset);
  if (form.linear) {
    const std::uint32_t code = code_offset + (std::uint32_t{now_.code_selector} << 4);
    const std::uint32_t data = data_offset + (std::uint32_t{now_.data_selector} << 4);
    const std::uint32_t high = form.wide ? 0xffff0000 : 0xf0000;
    const std::uint32_t fields[4] = {ones | (code & 0xffff), (code & high) >> 4 | now_.opcode,
                                     ones | (data & 0xffff), (data & high) >> 4};
    return fields[n - 3];
  }
  const std::uint32_t opcode = form.wide ? std::uint32_t{now_.opcode} << 16 : 0;
  const std::uint32_t fields[4] = {code_offset, opcode | now_.code_selector, data_offset,
                                   ones | now_.data_selector};
  return fields[n - 3];
}

void FpuPointers::store(unsigned offset, std::uint8_t* block, bool wide) const {
  const std::size_t bytes = wide ? 8 : 4;  // of an offset
  if (offset == 0) {
    std::memcpy(block + kOpcode, &now_.opcode, sizeof now_.opcode);
    std::memcpy(block + kCodeOffset, &now_.code_offset, bytes);
    if (!wide) store_selector(block + kCodeSelector, now_.code_selector);
  } else if (offset == kSecondBlock) {
    std::memcpy(block, &now_.data_offset, bytes);
    if (!wide) store_selector(block + kDataSelector - kSecondBlock, now_.data_selector);
  }
}

}  // namespace citcat::monitor
