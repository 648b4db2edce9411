#include "monitor/fpu_pointers.h"

#include <cstring>

namespace citcat::monitor {
namespace {

// Of the FXSAVE image (Intel SDM vol. 1, table 10-2).
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

void FpuPointers::begin(std::uint16_t opcode, std::uint32_t offset, std::uint16_t code_selector) {
  begun_ = {};
  begun_.opcode = opcode & kOpcodeBits;
  begun_.code_offset = offset;
  begun_.code_selector = code_selector;
}

void FpuPointers::operand(std::uint32_t offset, std::uint16_t data_selector) {
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

void FpuPointers::load_image(const std::uint8_t* image) {
  now_.opcode = load<std::uint16_t>(image + kOpcode) & kOpcodeBits;
  now_.code_offset = load<std::uint32_t>(image + kCodeOffset);
  now_.code_selector = load<std::uint16_t>(image + kCodeSelector);
  now_.data_offset = load<std::uint32_t>(image + kDataOffset);
  now_.data_selector = load<std::uint16_t>(image + kDataSelector);
}

void FpuPointers::load_environment(const std::uint8_t* environment) {
  // Intel SDM vol. 1, figure 8-9: the opcode shares a dword with the selector of the code.
  now_.code_offset = load<std::uint32_t>(environment + 12);
  now_.code_selector = load<std::uint16_t>(environment + 16);
  now_.opcode = load<std::uint16_t>(environment + 18) & kOpcodeBits;
  now_.data_offset = load<std::uint32_t>(environment + 20);
  now_.data_selector = load<std::uint16_t>(environment + 24);
}

void FpuPointers::store(unsigned offset, std::uint8_t* block) const {
  if (offset == 0) {
    std::memcpy(block + kOpcode, &now_.opcode, sizeof now_.opcode);
    std::memcpy(block + kCodeOffset, &now_.code_offset, sizeof now_.code_offset);
    store_selector(block + kCodeSelector, now_.code_selector);
  } else if (offset == kSecondBlock) {
    std::memcpy(block, &now_.data_offset, sizeof now_.data_offset);
    store_selector(block + kDataSelector - kSecondBlock, now_.data_selector);
  }
}

}  // namespace citcat::monitor
