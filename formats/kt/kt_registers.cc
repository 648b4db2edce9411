#include "formats/kt/kt_registers.h"

#include <utility>

namespace citcat {

namespace {

constexpr std::uint8_t kEsp = 4;
constexpr std::uint8_t kEbp = 5;
constexpr std::uint8_t kEsi = 6;
constexpr std::uint8_t kEdi = 7;

}  // namespace

template <class Word>
void KtRegisters<Word>::change(const KtOperands& o, Word address) {
  const Word width = o.width;
  const Word constant = static_cast<Word>(o.constant);
  constexpr Word kShift = 8 * sizeof(Word) - 1;
  auto& r = values_;
  const auto set = [&](std::uint8_t reg, Word value, Word origin) {
    r[reg] = o.cut ? static_cast<std::uint32_t>(value) : value;
    origin_[reg] = origin;
  };
  const auto advance = [&](std::uint8_t reg, Word by) {
    r[reg] += by;
    origin_[reg] = 0;
  };
  switch (o.effect) {
    case KtEffect::none:
      break;
    case KtEffect::push_register:
      remember(address, r[o.reg]);
      r[kEsp] = address;
      break;
    case KtEffect::push_other:
    case KtEffect::call:
    case KtEffect::call_indirect:
      r[kEsp] -= width;
      break;
    case KtEffect::interrupt:
      break;
    case KtEffect::pop_register:
      r[kEsp] = address + width;
      r[o.reg] = recall(address);
      origin_[o.reg] = address;
      break;
    case KtEffect::pop_other:
    case KtEffect::ret:
      r[kEsp] += width + constant;
      break;
    case KtEffect::push_all:
      for (std::uint8_t i = 0; i < 8; ++i) remember(address - 4U * i, r[i]);
      r[kEsp] = address - 28;
      break;
    case KtEffect::pop_all:
      for (std::uint8_t i = 0; i < 8; ++i) {
        if (i != kEsp) set(i, recall(address + 28 - 4U * i), address + 28 - 4U * i);
      }
      r[kEsp] = address + 32;
      break;
    case KtEffect::iret:
      r[kEsp] += o.width == 8 ? Word{40} : Word{12};  // of 64-bit mode after REX.W
      break;
    case KtEffect::leave:
      r[kEsp] = address + width;
      r[kEbp] = recall(address);
      origin_[kEbp] = address;
      break;
    case KtEffect::move_register:
      set(o.reg, r[o.rm], 0);
      break;
    case KtEffect::load:
      set(o.reg, recall(address), address);
      break;
    case KtEffect::load_byte:
      set(o.reg, recall(address) & 0xff, 0);
      break;
    case KtEffect::load_word:
      set(o.reg, recall(address) & 0xffff, 0);
      break;
    case KtEffect::store:
      remember(address, r[o.reg]);
      break;
    case KtEffect::load_address:
      set(o.reg, r[o.base] + (r[o.index] << o.scale) + static_cast<Word>(o.displacement), 0);
      break;
    case KtEffect::load_constant:
      set(o.reg, constant, 0);
      break;
    case KtEffect::add_constant:
      set(o.rm, r[o.rm] + constant, 0);
      break;
    case KtEffect::and_constant:
      set(o.rm, r[o.rm] & constant, 0);
      break;
    case KtEffect::add_register:
      set(o.rm, r[o.rm] + r[o.reg], 0);
      break;
    case KtEffect::subtract_register:
      set(o.rm, r[o.rm] - r[o.reg], 0);
      break;
    case KtEffect::shift_left:
      set(o.rm, r[o.rm] << (constant & kShift), 0);
      break;
    case KtEffect::shift_right:
      set(o.rm, r[o.rm] >> (constant & kShift), 0);
      break;
    case KtEffect::clear:
      set(o.rm, 0, 0);
      break;
    case KtEffect::exchange:
      std::swap(r[o.reg], r[o.rm]);
      std::swap(origin_[o.reg], origin_[o.rm]);
      break;
    case KtEffect::lods:
      advance(kEsi, width);
      break;
    case KtEffect::stos:
      advance(kEdi, width);
      break;
    case KtEffect::movs:
      advance(kEsi, width);
      advance(kEdi, width);
      break;
    case KtEffect::overwrite:
      origin_[o.rm] = 0;
      break;
  }
  r[KtOperands::kNone] = 0;
}

template class KtRegisters<std::uint32_t>;
template class KtRegisters<std::uint64_t>;

}  // namespace citcat
