// The small part of the instruction set that says where addresses come from. Opcodes and encodings:
// Intel SDM vol. 2, chapter 2 (ModR/M, SIB, prefixes) and appendix A (opcode maps).

#include "formats/kt/kt_operands.h"

namespace citcat {

namespace {

constexpr std::uint8_t kEspRegister = 4;
constexpr std::uint8_t kEbpRegister = 5;

/// Reads the bytes of one instruction; after them, zeros.
class CodeCursor {
 public:
  explicit CodeCursor(std::span<const std::uint8_t> code) : code_(code) {}
  std::uint8_t peek() const { return at_ < code_.size() ? code_[at_] : std::uint8_t{0}; }
  std::uint8_t u8() {
    const std::uint8_t value = peek();
    ++at_;
    return value;
  }
  std::int32_t i8() { return static_cast<std::int8_t>(u8()); }
  std::int32_t i32() {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) value |= std::uint32_t{u8()} << shift;
    return static_cast<std::int32_t>(value);
  }
  std::int64_t i64() {
    const auto low = static_cast<std::uint32_t>(i32());
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(i32()) << 32 | low);
  }

 private:
  std::span<const std::uint8_t> code_;
  std::size_t at_ = 0;
};

/// Decodes one instruction into KtOperands.
class OperandDecoder {
 public:
  OperandDecoder(std::uint64_t ip, std::span<const std::uint8_t> code, bool bits64)
      : next_(ip + code.size()), in_(code), bits64_(bits64) {}

  KtOperands run() {
    take_prefixes();
    if (bits64_) take_rex();
    const std::uint8_t opcode = in_.u8();
    if (opcode == 0x0f) {
      two_byte(in_.u8());
    } else {
      one_byte(opcode);
    }
    if (bits64_ && moves_stack()) out_.width = out_.width == 2 ? 2 : 8;
    return out_;
  }

 private:
  /// Those of which the operand has 64 bits in 64-bit mode without a prefix.
  bool moves_stack() const {
    switch (out_.effect) {
      case KtEffect::push_register:
      case KtEffect::push_other:
      case KtEffect::pop_register:
      case KtEffect::pop_other:
      case KtEffect::call:
      case KtEffect::call_indirect:
      case KtEffect::ret:
      case KtEffect::leave:
        return true;
      default:
        return false;
    }
  }
  void take_rex() {
    if ((in_.peek() & 0xf0) == 0x40) rex_ = in_.u8();
    const bool whole = (rex_ & 8) != 0;
    if (whole) out_.width = 8;
    out_.cut = !whole && out_.width == 4;
  }
  /// What a bit of REX adds to the number of a register.
  std::uint8_t rex(std::uint8_t bit) const { return (rex_ & bit) != 0 ? 8 : 0; }
  void take_prefixes() {
    for (;;) {
      switch (in_.peek()) {
        case 0x66:
          out_.width = 2;
          break;
        case 0xf2:
        case 0xf3:
          repeated_ = true;
          break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0x67:
        case 0xf0:
          break;
        default:
          return;
      }
      in_.u8();
    }
  }

  void mod_rm() {
    const std::uint8_t byte = in_.u8();
    mod_ = byte >> 6;
    out_.reg = static_cast<std::uint8_t>((byte >> 3 & 7) | rex(kRexR));
    std::uint8_t rm = byte & 7;
    if (mod_ == 3) {
      out_.rm = static_cast<std::uint8_t>(rm | rex(kRexB));
      return;
    }
    out_.has_memory = true;
    bool has_sib = false;
    if (rm == kEspRegister) {
      const std::uint8_t sib = in_.u8();
      out_.scale = sib >> 6;
      const auto index = static_cast<std::uint8_t>((sib >> 3 & 7) | rex(kRexX));
      if (index != kEspRegister) out_.index = index;
      rm = sib & 7;
      has_sib = true;
    }
    const bool absolute = rm == kEbpRegister && mod_ == 0;
    if (!absolute) out_.base = static_cast<std::uint8_t>(rm | rex(kRexB));
    if (mod_ == 1) out_.displacement = in_.i8();
    if (mod_ == 2 || absolute) out_.displacement = in_.i32();
    // From the next instruction (Intel SDM vol. 2, 2.2.1.6).
    if (absolute && bits64_ && !has_sib) out_.displacement += static_cast<std::int64_t>(next_);
  }
  /// ModRM with an extension of the opcode in place of a register.
  void mod_rm_of_group() {
    mod_rm();
    out_.reg &= 7;
  }

  void set(KtEffect effect) { out_.effect = effect; }
  void jump_to(std::int32_t relative, KtFlow flow) {
    out_.has_target = true;
    out_.target = next_ + static_cast<std::uint64_t>(std::int64_t{relative});
    if (!bits64_) out_.target = static_cast<std::uint32_t>(out_.target);
    out_.flow = flow;
  }
  void string(KtEffect effect, std::uint8_t opcode) {
    set(effect);
    if ((opcode & 1) == 0) out_.width = 1;
    if (repeated_) out_.flow = KtFlow::repeat;
  }
  std::int32_t immediate(bool is_byte) { return is_byte ? in_.i8() : in_.i32(); }

  /// 00..3f: eight operations in six forms each.
  void arithmetic(std::uint8_t opcode) {
    const unsigned form = opcode & 7;
    if (form >= 6) return;  // push and pop of segment registers, and adjustments
    const unsigned operation = opcode >> 3;
    if (form >= 4) {
      out_.rm = 0;
      set(KtEffect::overwrite);
      return;
    }
    mod_rm();
    if (operation == 7) return;  // compare
    const bool to_register = (form & 2) != 0;
    const bool wide = (form & 1) != 0;
    if (out_.has_memory) {
      if (to_register) {
        out_.rm = out_.reg;
        set(KtEffect::overwrite);
      }
      return;
    }
    if (to_register) std::swap(out_.reg, out_.rm);
    // Now rm is the destination and reg the source.
    set(KtEffect::overwrite);
    if (!wide) return;
    if (operation == 0) set(KtEffect::add_register);
    if (operation == 5) set(KtEffect::subtract_register);
    if ((operation == 6 || operation == 5) && out_.reg == out_.rm) set(KtEffect::clear);
  }

  void group1(bool byte_operand, bool byte_constant) {
    mod_rm_of_group();
    if (out_.has_memory || out_.reg == 7) return;
    set(KtEffect::overwrite);
    if (byte_operand) return;
    out_.constant = immediate(byte_constant);
    if (out_.reg == 0) set(KtEffect::add_constant);
    if (out_.reg == 4) set(KtEffect::and_constant);
    if (out_.reg == 5) {
      out_.constant = -out_.constant;
      set(KtEffect::add_constant);
    }
  }

  void shift(bool by_one) {
    mod_rm_of_group();
    if (out_.has_memory) return;
    out_.constant = by_one ? 1 : in_.i8() & (rex(kRexW) != 0 ? 63 : 31);
    set(out_.reg == 4   ? KtEffect::shift_left
        : out_.reg == 5 ? KtEffect::shift_right
                        : KtEffect::overwrite);
  }

  void group5() {
    mod_rm_of_group();
    switch (out_.reg) {
      case 0:
      case 1:
        if (out_.has_memory) return;
        out_.constant = out_.reg == 0 ? 1 : -1;
        set(KtEffect::add_constant);
        return;
      case 2:
      case 3:
        set(KtEffect::call_indirect);
        out_.flow = KtFlow::indirect;
        return;
      case 4:
      case 5:
        out_.flow = KtFlow::indirect;
        return;
      case 6:
        set(KtEffect::push_other);
        return;
      default:
        return;
    }
  }

  void move(std::uint8_t opcode) {
    mod_rm();
    switch (opcode) {
      case 0x89:
        if (out_.has_memory) return set(KtEffect::store);
        std::swap(out_.reg, out_.rm);
        return set(KtEffect::move_register);
      case 0x8b:
        return set(out_.has_memory ? KtEffect::load : KtEffect::move_register);
      case 0x8a:
        out_.rm = rex_ != 0 ? out_.reg : out_.reg & 3;
        return set(KtEffect::overwrite);
      default:
        return;
    }
  }

  void stack_register(std::uint8_t opcode) {
    out_.reg = static_cast<std::uint8_t>((opcode & 7) | rex(kRexB));
    set(opcode < 0x58 ? KtEffect::push_register : KtEffect::pop_register);
  }

  void one_byte(std::uint8_t opcode) {
    if (opcode < 0x40) {
      const bool segment_stack = (opcode & 7) >= 6 && opcode < 0x20;
      if (segment_stack) return set((opcode & 1) == 0 ? KtEffect::push_other : KtEffect::pop_other);
      return arithmetic(opcode);
    }
    if (opcode < 0x50) {
      out_.rm = opcode & 7;
      out_.constant = opcode < 0x48 ? 1 : -1;
      return set(KtEffect::add_constant);
    }
    if (opcode < 0x60) return stack_register(opcode);
    if (opcode >= 0x70 && opcode < 0x80) return jump_to(in_.i8(), KtFlow::branch);
    if (opcode >= 0x91 && opcode < 0x98) {
      out_.reg = 0;
      out_.rm = static_cast<std::uint8_t>((opcode & 7) | rex(kRexB));
      return set(KtEffect::exchange);
    }
    if (opcode >= 0xb8 && opcode < 0xc0) {
      out_.reg = static_cast<std::uint8_t>((opcode & 7) | rex(kRexB));
      out_.constant = rex(kRexW) != 0 ? in_.i64() : in_.i32();
      return set(KtEffect::load_constant);
    }
    if (opcode >= 0xd8 && opcode < 0xe0) return mod_rm();  // floating point
    one_byte_single(opcode);
  }

  /// What 64-bit mode has otherwise. False: nothing.
  bool one_byte_of_64_bits(std::uint8_t opcode) {
    switch (opcode) {
      case 0x63:  // MOVSXD
        mod_rm();
        out_.rm = out_.reg;
        set(KtEffect::overwrite);
        return true;
      case 0xc7:
        mod_rm_of_group();
        if (out_.has_memory) return true;
        out_.constant = in_.i32();
        out_.reg = out_.rm;
        set(KtEffect::load_constant);
        return true;
      case 0xa0:
      case 0xa1:
      case 0xa2:
      case 0xa3:
        out_.has_memory = true;
        out_.displacement = in_.i64();
        return true;
      default:
        return false;
    }
  }

  void one_byte_single(std::uint8_t opcode) {
    if (bits64_ && one_byte_of_64_bits(opcode)) return;
    switch (opcode) {
      case 0x60:
        return set(KtEffect::push_all);
      case 0x61:
        return set(KtEffect::pop_all);
      case 0x68:
      case 0x6a:
      case 0x9c:
        return set(KtEffect::push_other);
      case 0x69:
      case 0x6b:
        mod_rm();
        out_.rm = out_.reg;
        return set(KtEffect::overwrite);
      case 0x80:
      case 0x82:
        return group1(true, true);
      case 0x81:
        return group1(false, false);
      case 0x83:
        return group1(false, true);
      case 0x84:
      case 0x85:
      case 0x86:
      case 0x88:
      case 0x8c:
      case 0x8e:
      case 0xc6:
      case 0xc7:
      case 0xf6:
      case 0xf7:
      case 0xfe:
      case 0xd2:
      case 0xc0:
      case 0xd0:
        return mod_rm();
      case 0x87:
        mod_rm();
        return set(out_.has_memory ? KtEffect::load : KtEffect::exchange);
      case 0x89:
      case 0x8a:
      case 0x8b:
        return move(opcode);
      case 0x8d:
        mod_rm();
        return set(KtEffect::load_address);
      case 0x8f:
        mod_rm();
        return set(KtEffect::pop_other);
      case 0x9d:
        return set(KtEffect::pop_other);
      case 0xa0:
      case 0xa1:
      case 0xa2:
      case 0xa3:
        return absolute_move(opcode);
      case 0xa4:
      case 0xa5:
      case 0xa6:
      case 0xa7:
        return string(KtEffect::movs, opcode);
      case 0xaa:
      case 0xab:
      case 0xae:
      case 0xaf:
      case 0x6c:
      case 0x6d:
        return string(KtEffect::stos, opcode);
      case 0xac:
      case 0xad:
      case 0x6e:
      case 0x6f:
        return string(KtEffect::lods, opcode);
      case 0xc1:
        return shift(false);
      case 0xd1:
        return shift(true);
      case 0xd3:
        mod_rm();
        return set(out_.has_memory ? KtEffect::none : KtEffect::overwrite);
      case 0xff:
        return group5();
      default:
        return control(opcode);
    }
  }

  void absolute_move(std::uint8_t opcode) {
    out_.has_memory = true;
    out_.displacement = in_.i32();
    out_.reg = 0;
    if (opcode == 0xa1) set(KtEffect::load);
    if (opcode == 0xa3) set(KtEffect::store);
  }

  void control(std::uint8_t opcode) {
    switch (opcode) {
      case 0xc2:
      case 0xca:
        out_.constant = in_.u8();
        out_.constant |= in_.u8() << 8;
        [[fallthrough]];
      case 0xc3:
      case 0xcb:
        out_.flow = KtFlow::ret;
        return set(KtEffect::ret);
      case 0xc9:
        return set(KtEffect::leave);
      case 0xcc:
      case 0xcd:
      case 0xce:
        out_.flow = KtFlow::indirect;
        return set(KtEffect::interrupt);
      case 0xcf:
        out_.flow = KtFlow::ret;
        return set(KtEffect::iret);
      case 0xe0:
      case 0xe1:
      case 0xe2:
      case 0xe3:
        return jump_to(in_.i8(), KtFlow::branch);
      case 0xe8:
        set(KtEffect::call);
        return jump_to(in_.i32(), KtFlow::next);
      case 0xe9:
        return jump_to(in_.i32(), KtFlow::next);
      case 0xeb:
        return jump_to(in_.i8(), KtFlow::next);
      default:
        return;
    }
  }

  void two_byte(std::uint8_t opcode) {
    if (opcode >= 0x80 && opcode < 0x90) return jump_to(in_.i32(), KtFlow::branch);
    if (opcode >= 0x40 && opcode < 0x50) {
      mod_rm();
      out_.rm = out_.reg;
      return set(KtEffect::overwrite);
    }
    switch (opcode) {
      case 0xa0:
      case 0xa8:
        return set(KtEffect::push_other);
      case 0xa1:
      case 0xa9:
        return set(KtEffect::pop_other);
      case 0xb6:
      case 0xbe:
        mod_rm();
        return set(out_.has_memory ? KtEffect::load_byte : KtEffect::overwrite);
      case 0xb7:
      case 0xbf:
        mod_rm();
        return set(out_.has_memory ? KtEffect::load_word : KtEffect::overwrite);
      case 0xaf:
      case 0xbc:
      case 0xbd:
        mod_rm();
        out_.rm = out_.reg;
        return set(KtEffect::overwrite);
      case 0x34:
      case 0x05:
        out_.flow = KtFlow::indirect;
        return;
      case 0x35:
      case 0x07:
        out_.flow = KtFlow::indirect;
        return;
      case 0x30:
      case 0x31:
      case 0x32:
      case 0xa2:
      case 0x06:
      case 0x08:
      case 0x09:
      case 0x77:
      case 0x0b:
        return;
      default:
        if (opcode < 0xc8 || opcode > 0xcf) mod_rm();
        return;
    }
  }

  static constexpr std::uint8_t kRexB = 1, kRexX = 2, kRexR = 4, kRexW = 8;

  std::uint64_t next_;
  CodeCursor in_;
  bool bits64_;
  std::uint8_t rex_ = 0;
  KtOperands out_;
  unsigned mod_ = 0;
  bool repeated_ = false;
};

}  // namespace

namespace {

bool is_push(KtEffect effect) {
  return effect == KtEffect::push_register || effect == KtEffect::push_other ||
         effect == KtEffect::push_all || effect == KtEffect::interrupt;
}
bool is_pop(KtEffect effect) {
  return effect == KtEffect::pop_register || effect == KtEffect::pop_other ||
         effect == KtEffect::pop_all || effect == KtEffect::ret || effect == KtEffect::iret;
}
bool is_string(KtEffect effect) {
  return effect == KtEffect::lods || effect == KtEffect::stos || effect == KtEffect::movs;
}

KtAddressRule stack_rule(std::uint8_t base, std::uint64_t displacement) {
  return {KtAddressRule::stack, base, KtOperands::kNone, 0, displacement};
}
KtAddressRule memory_rule(const KtOperands& o) {
  return {KtAddressRule::memory, o.base, o.index, o.scale,
          static_cast<std::uint64_t>(o.displacement)};
}
KtAddressRule target_rule(const KtOperands& o) {
  if (o.has_target)
    return {KtAddressRule::target, KtOperands::kNone, KtOperands::kNone, 0, o.target};
  return {KtAddressRule::target, o.rm, KtOperands::kNone, 0, 0};
}

}  // namespace

KtAddressRule kt_address_rule(const KtOperands& o, std::size_t slot) {
  const std::uint64_t width = o.width;
  const KtAddressRule push = stack_rule(kEspRegister, 0 - width);
  if (o.effect == KtEffect::call) return slot == 0 ? target_rule(o) : push;
  if (o.effect == KtEffect::call_indirect) {
    // Near (FF /2) has the stack first, far (FF /3) the pointer.
    if ((o.reg == 2) == (slot == 0)) return push;
    return o.has_memory ? memory_rule(o) : target_rule(o);
  }
  if (o.has_target) return target_rule(o);
  if (o.effect == KtEffect::leave) return stack_rule(kEbpRegister, 0);
  if (is_string(o.effect)) {
    const bool destination = o.effect == KtEffect::stos || slot == 1;
    return {KtAddressRule::string, destination ? std::uint8_t{7} : std::uint8_t{6},
            KtOperands::kNone, 0, 0};
  }
  if (is_push(o.effect) && slot == 0) return push;
  if (is_pop(o.effect) && !o.has_memory) return stack_rule(kEspRegister, 0);
  return o.has_memory ? memory_rule(o) : target_rule(o);
}

KtOperands kt_operands(std::uint64_t ip, std::span<const std::uint8_t> code, bool bits64) {
  return OperandDecoder(ip, code, bits64).run();
}

}  // namespace citcat
