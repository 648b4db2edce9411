#include "replay/machine/fast/lowering.h"

#include <cstring>

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/lea_address.h"
#include "replay/x86/instruction_features.h"

namespace citcat::fast {

namespace {

// The last rows of `enum Alu` (lazy_alu.h); the others have the numbers of the opcodes.
constexpr unsigned kTestRow = 8, kMovRow = 9;
constexpr std::uint8_t kZeroAt = State::kZero;

/// One instruction on its way.
class Lowering {
 public:
  Lowering(const DecodedInstruction& info, std::uint64_t eip, const CodeShape& shape,
           const CpuTraits& traits, const HandlerTable& table)
      : info_(info), shape_(shape), traits_(traits), t_(table), eip_(eip) {
    next_ = offset_in_mode(eip + info.length, shape.bits64);
    word_ = shape.bits32 != info.operand_prefix ? 1 : 0;
    stack_word_ = word_;
    stack_ = shape.stack32 && (shape.flat >> kSs & 1) != 0;
    if (shape.bits64) {
      const bool whole = (info.rex & kRexW) != 0;
      word_ = whole ? 2 : info.operand_prefix ? 0 : 1;
      stack_word_ = !whole && info.operand_prefix ? 0 : 2;
      stack_ = true;
    }
    size_ = word_ + 1;
  }

  Lowered run() {
    // LOCK changes nothing for a processor alone on its bus, where it is allowed; F2 and F3 mean
    // something on strings alone, and where they make another instruction of one it has another
    // row.
    if (info_.state != DecodeState::ok || info_.aliased) return out_;
    if (traits_.has_long_mode && is_gated()) return out_;
    if (info_.kind == InstructionClass::string) return lower_string();
    const bool found = info_.opcode_map == 0 ? one_byte() : info_.opcode_map == 1 && two_byte();
    if (!found || out_.op.handler == nullptr) out_.kind = Lowered::Kind::careful;
    return out_;
  }

 private:
  using Kind = Lowered::Kind;

  /// Of a processor with long mode: looked at in FeatureGate.
  bool is_gated() const {
    constexpr std::uint8_t kPrefixes[4] = {0x26, 0x2e, 0x36, 0x3e};  // ES, CS, SS, DS
    for (unsigned i = 0; shape_.bits64 && i < info_.prefix_bytes; ++i) {
      for (unsigned segment = 0; segment < 4; ++segment) {
        const bool flat = (shape_.flat >> segment & 1) != 0;
        if (info_.bytes[i] == kPrefixes[segment] && !flat) return true;
      }
    }
    return feature_of(info_) != nullptr;
  }

  Lowered lower_string() {
    // Offsets that wrap at 4 GiB are rare in 64-bit mode.
    if (shape_.bits64 && info_.address_bits != 64) return out_;
    const std::uint8_t operation = info_.opcode & 0xfe;
    const bool known = operation == 0xa4 || operation == 0xa6 || operation == 0xaa ||
                       operation == 0xac || operation == 0xae;
    out_.kind = known && !info_.lock ? Kind::string : Kind::careful;
    return out_;
  }

  bool plain(Handler handler) {
    out_.kind = Kind::plain;
    out_.op.handler = handler;
    return true;
  }
  bool branch(Handler handler) {
    out_.kind = Kind::branch;
    out_.op.handler = handler;
    return true;
  }

  // Operands.
  bool is_register() const { return info_.register_form; }
  /// `size` as `size_`: 0 is that of bytes, AH to BH among them unless there is a REX prefix.
  std::uint8_t register_of(unsigned number, unsigned size) const {
    if (size != 0 || info_.rex != 0) return register_at(number);
    return static_cast<std::uint8_t>(register_at(number & 3) + (number >> 2));
  }
  std::uint8_t reg(unsigned size) const { return register_of(info_.reg_field, size); }
  /// That of ModRM.rm, or in the opcode.
  std::uint8_t rm(unsigned size) const { return register_of(info_.rm_field, size); }
  /// What ModRM.reg adds to the opcode.
  unsigned extension() const { return info_.modrm >> 3 & 7; }

  /// The memory operand. True where it is flat.
  bool memory(const MemoryOperand& operand) {
    Op& op = out_.op;
    const bool from_code = operand.base == kRip;
    op.base =
        operand.base < 0 || from_code ? kZeroAt : register_at(static_cast<unsigned>(operand.base));
    op.index = operand.index < 0 ? kZeroAt : register_at(static_cast<unsigned>(operand.index));
    op.shift = operand.shift;
    op.segment = operand.segment;
    op.displacement = static_cast<std::uint64_t>(operand.displacement) + (from_code ? eip_ : 0);
    const bool narrow =
        operand.width == AddressWidth::bits16 || operand.width == AddressWidth::low32;
    if (narrow) op.shift |= Op::kNarrow;
    return !narrow && (shape_.flat >> operand.segment & 1) != 0;
  }
  /// The explicit one, which is the first but for POP.
  bool memory() { return memory(info_.operands[0]); }
  /// Made by a handler that takes any segment as one that is not flat.
  bool rare(Handler handler) {
    memory();
    return plain(handler);
  }

  std::uint64_t extended_immediate() const {
    const bool byte = info_.opcode == 0x83 || info_.opcode == 0x6b || info_.opcode == 0x6a;
    if (!byte) return sign_extended(info_.immediate);
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(info_.immediate)});
  }

  /// `row` of the arithmetic operations with a register and a register or memory; `to_register`:
  /// the register is the first operand.
  bool arithmetic(unsigned row, unsigned size, bool to_register) {
    Op& op = out_.op;
    if (is_register()) {
      op.a = to_register ? reg(size) : rm(size);
      op.b = to_register ? rm(size) : reg(size);
      return plain(t_.alu_rr[row][size]);
    }
    op.a = reg(size);
    const bool flat = memory();
    return plain(to_register ? t_.alu_rm[row][size][flat] : t_.alu_mr[row][size][flat]);
  }
  bool arithmetic_immediate(unsigned row, unsigned size, std::uint64_t immediate) {
    out_.op.immediate = immediate;
    if (is_register()) {
      out_.op.a = rm(size);
      return plain(t_.alu_ri[row][size]);
    }
    return plain(t_.alu_mi[row][size][memory()]);
  }
  bool with_accumulator(unsigned row, unsigned size) {
    out_.op.a = 0;
    out_.op.immediate = extended_immediate();
    return plain(t_.alu_ri[row][size]);
  }

  /// As an offset that a branch or a call may lead to.
  std::uint64_t branch_offset(std::uint64_t to) const {
    return shape_.bits64 ? to : word_ == 0 ? to & 0xffff : to & 0xffffffff;
  }
  std::uint64_t target() const {
    return branch_offset(next_ +
                         sign_extended(static_cast<std::uint32_t>(info_.target_displacement)));
  }
  std::uint64_t behind() const { return branch_offset(next_); }
  /// False where it is refused.
  bool may_lead_to(std::uint64_t to) const {
    return shape_.bits64 ? CpuContext::is_canonical(to) : to <= shape_.code_limit;
  }
  /// A direct branch; false where it leads out of the segment.
  bool direct() {
    const std::uint64_t to = target();
    if (!may_lead_to(to)) return false;
    out_.op.immediate = to;
    out_.op.displacement = next_;
    out_.known = 1;
    out_.address[0] = shape_.linear(to);
    return true;
  }

  bool one_byte() {
    const unsigned opcode = info_.opcode;
    if (opcode < 0x40) return arithmetic_rows(opcode);
    if (opcode < 0x60) return register_rows(opcode);
    if (opcode >= 0x70 && opcode < 0x80) {
      return direct() && branch(t_.jump_if[opcode & 15]);
    }
    if (opcode >= 0x90 && opcode < 0x98) return exchange_with_accumulator();
    if (opcode >= 0xb0 && opcode < 0xc0) {
      const unsigned size = opcode < 0xb8 ? 0 : size_;
      out_.op.a = rm(size);
      out_.op.immediate = info_.immediate;
      // Eight bytes, which are the last ones.
      if (size == 3) std::memcpy(&out_.op.immediate, &info_.bytes[info_.length - 8u], 8);
      return plain(t_.alu_ri[kMovRow][size]);
    }
    return other_one_byte(opcode);
  }

  bool arithmetic_rows(unsigned opcode) {
    const unsigned row = opcode >> 3, form = opcode & 7;
    if (form < 4) return arithmetic(row, form % 2 == 0 ? 0 : size_, form >= 2);
    if (form < 6) return with_accumulator(row, form % 2 == 0 ? 0 : size_);
    const bool pushes = opcode == 0x06 || opcode == 0x0e || opcode == 0x16 || opcode == 0x1e;
    return pushes && push_segment();
  }

  bool push_segment() {
    out_.op.segment = info_.reg_field;
    return plain(t_.push_segment[word_][stack_]);
  }

  bool register_rows(unsigned opcode) {
    out_.op.a = rm(size_);
    if (opcode < 0x50) return plain(t_.unary_register[opcode < 0x48 ? 0 : 1][size_]);
    if (opcode < 0x58) return plain(t_.push_register[stack_word_][stack_]);
    return plain(t_.pop_register[stack_word_][stack_]);
  }

  bool exchange_with_accumulator() {
    if (info_.rm_field == 0) return plain(t_.nothing);
    out_.op.a = 0;
    out_.op.b = rm(size_);
    return plain(t_.exchange_register[size_]);
  }

  bool other_one_byte(unsigned opcode) {
    Op& op = out_.op;
    const unsigned size = (opcode & 1) == 0 ? 0 : size_;
    switch (opcode) {
      case 0x60:
        return word_ == 1 && plain(t_.push_all[stack_]);
      case 0x61:
        return word_ == 1 && plain(t_.pop_all[stack_]);
      case 0x63:
        op.a = reg(size_);
        op.b = rm(2);
        if (is_register()) return plain(t_.extend_register[1][word_][2]);
        return plain(t_.extend_memory[1][word_][2][memory()]);
      case 0x68:
      case 0x6a:
        op.immediate = extended_immediate();
        return plain(t_.push_immediate[stack_word_][stack_]);
      case 0x69:
      case 0x6b:
        op.a = reg(size_);
        op.b = rm(size_);
        op.immediate = extended_immediate();
        if (is_register()) return plain(t_.multiply_register[word_][1]);
        return plain(t_.multiply_memory[word_][1][memory()]);
      case 0x80:
      case 0x81:
      case 0x83:
        return arithmetic_immediate(extension(), opcode == 0x80 ? 0 : size_, extended_immediate());
      case 0x84:
      case 0x85:
        return arithmetic(kTestRow, size, false);
      case 0x86:
      case 0x87:
        op.a = reg(size);
        op.b = rm(size);
        if (is_register()) return plain(t_.exchange_register[size]);
        return rare(t_.exchange_memory[size]);
      case 0x88:
      case 0x89:
        return arithmetic(kMovRow, size, false);
      case 0x8a:
      case 0x8b:
        return arithmetic(kMovRow, size, true);
      case 0x8c:
        if (!is_register()) return false;
        op.a = rm(size_);
        op.segment = info_.reg_field;
        return plain(t_.read_selector[word_]);
      case 0x8d:
        return load_address();
      case 0x8f:
        return pop_operand();
      case 0x98:
        op.a = op.b = 0;
        return plain(t_.extend_register[1][word_][word_]);
      case 0x99:
        return plain(t_.extend_into_edx[word_]);
      case 0x9c:
        return !shape_.v86 && plain(t_.push_flags[stack_word_][stack_]);
      case 0x9d:
        return !shape_.v86 && plain(t_.pop_flags[stack_word_][stack_]);
      case 0x9e:
        return plain(t_.store_ah);
      case 0x9f:
        return plain(t_.load_ah);
      case 0xa0:
      case 0xa1:
        op.a = 0;
        return plain(t_.alu_rm[kMovRow][size][memory()]);
      case 0xa2:
      case 0xa3:
        op.a = 0;
        return plain(t_.alu_mr[kMovRow][size][memory()]);
      case 0xa8:
      case 0xa9:
        return with_accumulator(kTestRow, size);
      case 0xc0:
      case 0xc1:
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3:
        return shift(size);
      case 0xc2:
      case 0xc3:
        op.immediate = opcode == 0xc2 ? info_.immediate : 0;
        return op.immediate < 0x8000 && branch(t_.ret[stack_word_][stack_]);
      case 0xc6:
      case 0xc7:
        return extension() == 0 && arithmetic_immediate(kMovRow, size, extended_immediate());
      case 0xc9:
        return plain(t_.leave_frame[stack_word_][stack_]);
      case 0xd7:
        return rare(t_.translate_byte);
      case 0xe0:
      case 0xe1:
      case 0xe2:
      case 0xe3:
        return direct() && branch(t_.loop[opcode & 3][info_.address_bits / 32]);
      case 0xe8:
        return call_direct();
      case 0xe9:
      case 0xeb:
        return direct() && branch(t_.jump);
      case 0xf5:
        return plain(t_.change_flag[2]);
      case 0xf6:
      case 0xf7:
        return group3(size);
      case 0xf8:
        return plain(t_.change_flag[0]);
      case 0xf9:
        return plain(t_.change_flag[1]);
      case 0xfa:
        return plain(t_.change_flag[5]);
      case 0xfb:
        op.immediate = next_;
        return branch(t_.set_interrupt_flag);
      case 0xfc:
        return plain(t_.change_flag[3]);
      case 0xfd:
        return plain(t_.change_flag[4]);
      case 0xfe:
        return extension() <= 1 && unary(extension(), 0);
      case 0xff:
        return group5();
      default:
        return false;
    }
  }

  /// `k` of `enum Unary` (handlers_arithmetic.h).
  bool unary(unsigned k, unsigned size) {
    out_.op.a = rm(size);
    if (is_register()) return plain(t_.unary_register[k][size]);
    return plain(t_.unary_memory[k][size][memory()]);
  }

  bool shift(unsigned size) {
    const unsigned opcode = info_.opcode;
    const bool by_cl = opcode >= 0xd2;
    const unsigned count = by_cl ? 1 : opcode >= 0xd0 ? 1 : info_.immediate & (size == 3 ? 63 : 31);
    if (count == 0) return false;  // nothing happens, but perhaps a read
    out_.op.immediate = count;
    out_.op.a = rm(size);
    const unsigned k = extension();
    if (is_register()) return plain(t_.shift_register[k][size][by_cl]);
    return rare(t_.shift_memory[k][size][by_cl]);
  }

  bool group3(unsigned size) {
    const unsigned k = extension();
    if (k <= 1) return arithmetic_immediate(kTestRow, size, extended_immediate());
    if (k <= 3) return unary(k, size);
    out_.op.a = rm(size);
    if (is_register()) return plain(t_.accumulate_register[k - 4][size]);
    return rare(t_.accumulate_memory[k - 4][size]);
  }

  bool load_address() {
    if (is_register()) return false;
    Op& op = out_.op;
    put_lea_address(info_, next_, op);
    op.a = reg(size_);
    const bool narrow = info_.address_bits == (shape_.bits64 ? 32 : 16);
    if (narrow) op.shift |= Op::kNarrow;
    return plain(t_.lea[word_][!narrow]);
  }

  bool pop_operand() {
    if (extension() != 0) return false;
    if (is_register()) {
      out_.op.a = rm(size_);
      return plain(t_.pop_register[stack_word_][stack_]);
    }
    const MemoryOperand& to = info_.operands[1];
    if (to.kind != OperandKind::address) return false;
    memory(to);
    return plain(t_.pop_memory[stack_word_][stack_]);
  }

  bool call_direct() {
    const std::uint64_t to = target();
    if (!may_lead_to(to)) return false;
    out_.op.immediate = to;
    out_.op.displacement = behind();
    out_.known = 1;
    out_.address[0] = shape_.linear(to);
    second_slot_ = true;
    return branch(t_.call[stack_word_][stack_]);
  }

  bool group5() {
    Op& op = out_.op;
    switch (extension()) {
      case 0:
      case 1:
        return unary(extension(), size_);
      case 2:
        op.immediate = behind();
        op.a = rm(size_);
        if (is_register()) return branch(t_.call_register[stack_word_][stack_]);
        return branch(t_.call_memory[stack_word_][memory()][stack_]);
      case 4:
        op.a = rm(size_);
        if (is_register()) return branch(t_.jump_register[stack_word_]);
        return branch(t_.jump_memory[stack_word_][memory()]);
      case 6:
        op.a = rm(size_);
        if (is_register()) return plain(t_.push_register[stack_word_][stack_]);
        return plain(t_.push_memory[stack_word_][memory()][stack_]);
      default:
        return false;
    }
  }
  bool two_byte() {
    const unsigned opcode = info_.opcode;
    const InstructionSet set = traits_.instructions;
    Op& op = out_.op;
    if (opcode >= 0x80 && opcode < 0x90) return direct() && branch(t_.jump_if[opcode & 15]);
    if (opcode >= 0x90 && opcode < 0xa0) {
      op.a = rm(0);
      if (is_register()) return plain(t_.set_register[opcode & 15]);
      return rare(t_.set_memory[opcode & 15]);
    }
    if (opcode >= 0x40 && opcode < 0x50) {
      if (set != InstructionSet::p6) return false;
      op.a = reg(size_);
      op.b = rm(size_);
      if (is_register()) return plain(t_.move_register_if[opcode & 15][word_]);
      return plain(t_.move_memory_if[opcode & 15][word_][memory()]);
    }
    if (opcode >= 0xc8 && opcode < 0xd0) {
      op.a = rm(size_);
      return plain(t_.swap_bytes[word_]);
    }
    const unsigned size = (opcode & 1) == 0 ? 0 : size_;
    switch (opcode) {
      case 0x0d:
      case 0x18:  // PREFETCH, which tells no address
        return !is_register() && plain(t_.nothing);
      case 0x1f:
        return plain(t_.nothing);
      case 0xae:  // LFENCE, MFENCE, SFENCE
        return is_register() && info_.mandatory_prefix == 0 && !info_.operand_prefix &&
               extension() >= 5 && plain(t_.nothing);
      case 0xa0:
      case 0xa8:
        return push_segment();
      case 0xa3:
      case 0xab:
      case 0xb3:
      case 0xbb:
        return test_bit((opcode - 0xa3) >> 3, false);
      case 0xba:
        return extension() >= 4 && test_bit(extension() - 4u, true);
      case 0xa4:
      case 0xa5:
        return double_shift(false, opcode == 0xa5);
      case 0xac:
      case 0xad:
        return double_shift(true, opcode == 0xad);
      case 0xaf:
        op.a = reg(size_);
        op.b = rm(size_);
        if (is_register()) return plain(t_.multiply_register[word_][0]);
        return plain(t_.multiply_memory[word_][0][memory()]);
      case 0xb0:
      case 0xb1:
        if (is_register()) {
          op.a = rm(size);
          op.b = reg(size);
          return plain(t_.compare_exchange_register[size]);
        }
        op.a = reg(size);
        return rare(t_.compare_exchange_memory[size]);
      case 0xc0:
      case 0xc1:
        if (is_register()) {
          op.a = rm(size);
          op.b = reg(size);
          return plain(t_.exchange_add_register[size]);
        }
        op.a = reg(size);
        return rare(t_.exchange_add_memory[size]);
      case 0xc7:
        if (extension() != 1 || info_.operand_bytes == 8) return false;
        return rare(t_.compare_exchange_pair);
      case 0xb6:
      case 0xb7:
      case 0xbe:
      case 0xbf:
        return extend(opcode >= 0xbe, opcode & 1);
      case 0xbc:
      case 0xbd:
        op.a = reg(size_);
        op.b = rm(size_);
        if (is_register()) return plain(t_.scan_register[opcode & 1][word_]);
        return rare(t_.scan_memory[opcode & 1][word_]);
      default:
        return false;
    }
  }

  bool test_bit(unsigned k, bool immediate) {
    Op& op = out_.op;
    op.immediate = info_.immediate;
    op.b = reg(size_);
    if (is_register()) {
      op.a = rm(size_);
      return plain(t_.test_register_bit[k][word_][immediate]);
    }
    return rare(t_.test_memory_bit[k][word_][immediate]);
  }

  bool double_shift(bool right, bool by_cl) {
    if (!is_register()) return false;
    const unsigned count = by_cl ? 1 : info_.immediate & (word_ == 2 ? 63 : 31);
    if (count == 0) return false;
    out_.op.immediate = count;
    out_.op.a = rm(size_);
    out_.op.b = reg(size_);
    return plain(t_.double_shift[word_][right][by_cl]);
  }

  bool extend(bool sign, unsigned from) {
    Op& op = out_.op;
    op.a = reg(size_);
    op.b = rm(from);
    if (is_register()) return plain(t_.extend_register[sign][word_][from]);
    return plain(t_.extend_memory[sign][word_][from][memory()]);
  }

  const DecodedInstruction& info_;
  const CodeShape& shape_;
  const CpuTraits& traits_;
  const HandlerTable& t_;
  std::uint64_t eip_, next_ = 0;
  unsigned size_ = 0;        ///< of the operand, where it is a word: index among 1, 2, 4, 8 bytes
  unsigned word_ = 0;        ///< the same among 2, 4, 8 bytes
  unsigned stack_word_ = 0;  ///< the same of what is pushed and popped, and of near branches
  bool stack_ = false;       ///< the stack is flat

 public:
  bool second_slot_ = false;  ///< what the operation puts down is the second address
  Lowered out_;
};

}  // namespace

Lowered lower(const DecodedInstruction& info, std::uint64_t eip, const CodeShape& shape,
              const CpuTraits& traits, const HandlerTable& table) {
  Lowering lowering(info, eip, shape, traits, table);
  Lowered out = lowering.run();
  // What it puts down stands behind the address that is known.
  if (out.known != 0) out.op.slot = !lowering.second_slot_ ? 0 : shape.bits64 ? 8 : 4;
  return out;
}

}  // namespace citcat::fast
