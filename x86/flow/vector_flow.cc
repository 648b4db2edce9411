// MMX and SSE: which bytes of an instruction's operands make each element of its result.

#include <algorithm>
#include <string_view>

#include "x86/flow/flow_maker.h"
#include "x86/flow/mnemonic_facts.h"
#include "x86/flow/register_places.h"
#include "x86/flow/vector_shapes.h"

namespace citcat::flow {
namespace {

constexpr unsigned kVectorBytes = 16, kMmxBytes = 8;

ValueSpan part(const ValueSpan& span, unsigned first, unsigned count) {
  return {span.of, static_cast<std::uint16_t>(span.first + first),
          static_cast<std::uint16_t>(count)};
}

bool is_of(const ZydisDecodedOperand& o, ZydisRegisterClass kind) {
  return o.type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(o.reg.value) == kind;
}
bool is_vector(const ZydisDecodedOperand& o) {
  return is_of(o, ZYDIS_REGCLASS_XMM) || is_of(o, ZYDIS_REGCLASS_MMX);
}
unsigned vector_bytes(const ZydisDecodedOperand& o) {
  return is_of(o, ZYDIS_REGCLASS_MMX) ? kMmxBytes : kVectorBytes;
}

}  // namespace

bool FlowMaker::special_vectors() {
  if (instruction_.operand_count < 2 || (!is_vector(operand(0)) && !is_vector(operand(1)))) {
    return false;
  }
  const bool done = vector_move() || vector_shuffle() || vector_elements();
  // Writing an MMX register sets the other bits of the x87 register to ones.
  if (done && is_of(operand(0), ZYDIS_REGCLASS_MMX)) {
    effect({part(*target(operand(0)), kMmxBytes, place::kStackBytes - kMmxBytes)}, {});
  }
  return done;
}

/// Moves a part of one operand to a part of the other one. If the target part is longer, its rest
/// is cleared; bytes outside it are kept.
bool FlowMaker::vector_move() {
  const ZydisDecodedOperand& o = operand(0);
  const bool to_memory = o.type == ZYDIS_OPERAND_TYPE_MEMORY;
  const bool from_memory = operand(1).type == ZYDIS_OPERAND_TYPE_MEMORY;
  const auto to_all = target(o), from = source(operand(1));
  if (!to_all || !from) return false;
  const ValueSpan to = is_vector(o) ? part(*to_all, 0, vector_bytes(o)) : *to_all;
  const unsigned index = operand(2).type == ZYDIS_OPERAND_TYPE_IMMEDIATE
                             ? static_cast<unsigned>(operand(2).imm.value.u)
                             : 0;
  const auto insert = [&](unsigned size) {
    effect({part(to, index % (vector_bytes(o) / size) * size, size)}, {part(*from, 0, size)});
    return true;
  };
  const auto extract = [&](unsigned size) {
    effect({to}, {part(*from, index % (vector_bytes(operand(1)) / size) * size, size)});
    return true;
  };
  const auto low = [&](unsigned size) {
    effect({to}, {part(*from, 0, size)});
    return true;
  };
  const auto half = [&](unsigned of_to, unsigned of_from) {
    effect({to_memory ? to : part(to, of_to, 8)}, {from_memory ? *from : part(*from, of_from, 8)});
    return true;
  };
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVSD: {
      const unsigned size = mnemonic() == ZYDIS_MNEMONIC_MOVSS ? 4 : 8;
      const bool keeps = !to_memory && !from_memory;
      effect({keeps ? part(to, 0, size) : to}, {part(*from, 0, size)});
      return true;
    }
    case ZYDIS_MNEMONIC_MOVD:
      return low(4);
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVQ2DQ:
    case ZYDIS_MNEMONIC_MOVDQ2Q:
      return low(8);
    case ZYDIS_MNEMONIC_MOVLPS:
    case ZYDIS_MNEMONIC_MOVLPD:
      return half(0, 0);
    case ZYDIS_MNEMONIC_MOVHPS:
    case ZYDIS_MNEMONIC_MOVHPD:
      return half(8, 8);
    case ZYDIS_MNEMONIC_MOVHLPS:
      return half(0, 8);
    case ZYDIS_MNEMONIC_MOVLHPS:
      return half(8, 0);
    case ZYDIS_MNEMONIC_PINSRB:
      return insert(1);
    case ZYDIS_MNEMONIC_PINSRW:
      return insert(2);
    case ZYDIS_MNEMONIC_PINSRD:
      return insert(4);
    case ZYDIS_MNEMONIC_PINSRQ:
      return insert(8);
    case ZYDIS_MNEMONIC_PEXTRB:
      return extract(1);
    case ZYDIS_MNEMONIC_PEXTRW:
      return extract(2);
    case ZYDIS_MNEMONIC_PEXTRD:
    case ZYDIS_MNEMONIC_EXTRACTPS:
      return extract(4);
    case ZYDIS_MNEMONIC_PEXTRQ:
      return extract(8);
    default:
      return false;
  }
}

/// Each element is one that a constant, or the instruction itself, picks from the operands.
bool FlowMaker::vector_shuffle() {
  const ZydisDecodedOperand& o = operand(0);
  if (!is_vector(o)) return false;
  const ZydisDecodedOperand& last =
      operand(operand(2).type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? 2 : 1);
  const bool constant = last.type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  const auto picks = constant ? static_cast<unsigned>(last.imm.value.u) & 0xff : 0;
  const ValueSpan to = *target(o), first = *source(o);
  const ValueSpan second = source(operand(1)).value_or(first);
  const unsigned bytes = vector_bytes(o);
  /// Element i is number(i) among the elements of the first operand and then the second's.
  const auto pick = [&](unsigned size, const auto& number) {
    const unsigned count = bytes / size;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned n = number(i);
      const ValueSpan element = part(to, i * size, size);
      const ValueSpan& of = n < count ? first : second;
      effect({element}, n < 2 * count ? std::vector{part(of, n % count * size, size)}
                                      : std::vector<ValueSpan>{});
    }
    return true;
  };
  const auto pair = [&](unsigned i) { return picks >> 2 * (i & 3) & 3; };
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_PSHUFD:
      return pick(4, [&](unsigned i) { return 4 + pair(i); });
    case ZYDIS_MNEMONIC_PSHUFW:
      return pick(2, [&](unsigned i) { return 4 + pair(i); });
    case ZYDIS_MNEMONIC_PSHUFLW:
      return pick(2, [&](unsigned i) { return 8 + (i < 4 ? pair(i) : i); });
    case ZYDIS_MNEMONIC_PSHUFHW:
      return pick(2, [&](unsigned i) { return 8 + (i < 4 ? i : 4 + pair(i)); });
    case ZYDIS_MNEMONIC_SHUFPS:
      return pick(4, [&](unsigned i) { return (i < 2 ? 0 : 4) + pair(i); });
    case ZYDIS_MNEMONIC_SHUFPD:
      return pick(8, [&](unsigned i) { return 2 * i + (picks >> i & 1); });
    case ZYDIS_MNEMONIC_MOVDDUP:
      return pick(8, [](unsigned) { return 2u; });
    case ZYDIS_MNEMONIC_MOVSLDUP:
      return pick(4, [](unsigned i) { return 4 + (i & ~1u); });
    case ZYDIS_MNEMONIC_MOVSHDUP:
      return pick(4, [](unsigned i) { return 4 + (i | 1); });
    case ZYDIS_MNEMONIC_BLENDPS:
      return pick(4, [&](unsigned i) { return i + (picks >> i & 1) * 4; });
    case ZYDIS_MNEMONIC_BLENDPD:
      return pick(8, [&](unsigned i) { return i + (picks >> i & 1) * 2; });
    case ZYDIS_MNEMONIC_PBLENDW:
      return pick(2, [&](unsigned i) { return i + (picks >> i & 1) * 8; });
    case ZYDIS_MNEMONIC_PSLLDQ:
      return pick(1, [&](unsigned i) { return i < picks ? 2 * bytes : i - picks; });
    case ZYDIS_MNEMONIC_PSRLDQ:
      return pick(1, [&](unsigned i) { return i + picks < bytes ? i + picks : 2 * bytes; });
    case ZYDIS_MNEMONIC_PALIGNR:
      // The instruction takes the second operand as the lower half.
      return pick(1, [&](unsigned i) {
        const unsigned n = i + picks;
        return n < bytes ? n + bytes : n < 2 * bytes ? n - bytes : 2 * bytes;
      });
    case ZYDIS_MNEMONIC_INSERTPS: {
      // The constant picks an element of the second operand, its place, and elements to clear.
      const bool memory = operand(1).type == ZYDIS_OPERAND_TYPE_MEMORY;
      return pick(4, [&](unsigned i) {
        if ((picks >> i & 1) != 0) return 2 * 4u;
        return (picks >> 4 & 3) == i ? 4 + (memory ? 0 : picks >> 6) : i;
      });
    }
    case ZYDIS_MNEMONIC_PCLMULQDQ:
      effect({to}, {}, {part(first, (picks & 1) * 8, 8), part(second, (picks >> 4 & 1) * 8, 8)});
      return true;
    case ZYDIS_MNEMONIC_PBLENDVB:
      return blend_by_signs(1, to, first, second);
    case ZYDIS_MNEMONIC_BLENDVPS:
      return blend_by_signs(4, to, first, second);
    case ZYDIS_MNEMONIC_BLENDVPD:
      return blend_by_signs(8, to, first, second);
    case ZYDIS_MNEMONIC_PSHUFB:
      effect({part(to, 0, bytes)}, {second}, {part(first, 0, bytes)});
      return true;
    default:
      return false;
  }
}

/// The highest bit of an element of XMM0 says which operand an element comes from.
bool FlowMaker::blend_by_signs(unsigned size, const ValueSpan& to, const ValueSpan& first,
                               const ValueSpan& second) {
  const ValueSpan signs = at_place(place::vector(0));
  for (unsigned at = 0; at < kVectorBytes; at += size) {
    effect({part(to, at, size)}, {part(first, at, size), part(second, at, size)},
           {byte_of(signs, at + size - 1)});
  }
  return true;
}

/// Results whose elements are made as vector_shape() says; the rest of a register is kept.
bool FlowMaker::vector_elements() {
  using Kind = VectorShape::Kind;
  const std::optional<VectorShape> known = vector_shape(mnemonic());
  const ZydisDecodedOperand& o = operand(0);
  const auto to_all = target(o), second_all = source(operand(1));
  const bool constant = operand(1).type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  if (!known || !to_all || (!second_all && !constant)) return false;
  const VectorShape shape = *known;
  const bool same = !constant && o.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                    operand(1).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                    o.reg.value == operand(1).reg.value;
  if (same && clears_register(mnemonic())) return false;
  const unsigned bytes = vector_bytes(o), count = bytes / shape.to;
  const ValueSpan to = *to_all, first = source(o).value_or(to);
  const ValueSpan second = second_all.value_or(first);
  const auto of_to = [&](unsigned i) { return part(to, i * shape.to, shape.to); };
  const auto of_first = [&](unsigned i) { return part(first, i * shape.from, shape.from); };
  const auto of_second = [&](unsigned i) {
    const unsigned size = std::min<unsigned>(shape.from, std::max(operand(1).size / 8u, 1u));
    return part(second, i * shape.from, size);
  };
  switch (shape.kind) {
    case Kind::both:
      for (unsigned i = 0; i < count; ++i) {
        // A sum of differences has 16 bits.
        const unsigned size = mnemonic() == ZYDIS_MNEMONIC_PSADBW ? 2 : shape.to;
        effect({part(to, i * shape.to, size)}, {}, {of_first(i), of_second(i)});
        if (size != shape.to) effect({part(to, i * shape.to + size, shape.to - size)}, {});
      }
      return true;
    case Kind::each:
      return each_element(shape, to, second, count);
    case Kind::low_both:
      effect({of_to(0)}, {}, {of_first(0), of_second(0)});
      return true;
    case Kind::low:
      effect({of_to(0)}, {}, {of_second(0)});
      return true;
    case Kind::two_low:
      for (unsigned i = 0; i < 2; ++i) effect({of_to(i)}, {}, {of_second(i)});
      return true;
    case Kind::shift:
      for (unsigned i = 0; i < count; ++i) {
        std::vector<ValueSpan> from{part(first, i * shape.to, shape.to)};
        if (!constant) from.push_back(part(second, 0, 8));
        effect({of_to(i)}, {}, from);
      }
      return true;
    case Kind::low_of_pairs:
      for (unsigned i = 0; i < count; ++i) {
        effect({of_to(i)}, {}, {part(first, 8 * i, 4), part(second, 8 * i, 4)});
      }
      return true;
    case Kind::neighbours:
      for (unsigned i = 0; i < count; ++i) {
        const unsigned in_first = bytes / shape.from;
        effect({of_to(i)}, {}, {i < in_first ? of_first(i) : of_second(i - in_first)});
      }
      return true;
    case Kind::unpack_low:
    case Kind::unpack_high:
      for (unsigned i = 0; i < count; ++i) {
        const unsigned from = i / 2 + (shape.kind == Kind::unpack_high ? count / 2 : 0);
        effect({of_to(i)}, {part(i % 2 == 0 ? first : second, from * shape.to, shape.to)});
      }
      return true;
    case Kind::compare:
      add_flag_effects({of_first(0), of_second(0)});
      return true;
    case Kind::to_integer:
      effect({part(to, 0, o.size / 8)}, {}, {of_second(0)});
      if (to.count > o.size / 8) effect({part(to, o.size / 8, to.count - o.size / 8)}, {});
      return true;
    case Kind::signs:
      return sign_bits(shape.from, to, second, vector_bytes(operand(1)));
  }
  return false;
}

/// Element i is made of element i of `from`, which may have another size; the rest is cleared.
bool FlowMaker::each_element(const VectorShape& shape, const ValueSpan& to, const ValueSpan& from,
                             unsigned count) {
  const std::string_view name = ZydisMnemonicGetString(mnemonic());
  const bool zeros = name.starts_with("pmovzx"), copies = zeros || name.starts_with("pmovsx");
  const unsigned made = std::min<unsigned>(count, kVectorBytes / shape.from);
  for (unsigned i = 0; i < made; ++i) {
    const ValueSpan element = part(to, i * shape.to, shape.to);
    const ValueSpan source = part(from, i * shape.from, shape.from);
    if (!copies) {
      effect({element}, {}, {source});
      continue;
    }
    effect({part(element, 0, shape.from)}, {source});
    effect({part(element, shape.from, shape.to - shape.from)}, {},
           zeros ? std::vector<ValueSpan>{} : std::vector{byte_of(source, shape.from - 1u)});
  }
  if (made < count) effect({part(to, made * shape.to, (count - made) * shape.to)}, {});
  return true;
}

/// Bit i is the highest one of element i.
bool FlowMaker::sign_bits(unsigned size, const ValueSpan& to, const ValueSpan& from,
                          unsigned bytes) {
  const unsigned count = bytes / size;
  for (unsigned i = 0; i < std::max(8u, count); ++i) {
    const ValueSpan source = i < count ? byte_of(from, i * size + size - 1) : kNothing;
    effect_on_bits(byte_of(to, i / 8), static_cast<std::uint8_t>(1u << i % 8), source, 0x80);
  }
  const unsigned made = (std::max(8u, count) + 7) / 8;
  effect({part(to, made, to.count - made)}, {});
  return true;
}

}  // namespace citcat::flow
