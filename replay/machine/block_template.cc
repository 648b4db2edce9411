#include "replay/machine/block_template.h"

#include <algorithm>
#include <optional>

#include "replay/machine/executed_block.h"
#include "replay/x86/undefined_flags.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

/// CMPXCHG8B: unless the instruction is reported, the engine computes its flags from what other
/// instructions left half done, and garbage gets into EFLAGS. LAR, LSL and the 0F 00 group read
/// descriptors, which is the machine's business.
///
/// RCL, RCR and SETcc to memory: the engine converts its pending flags before the access, and has
/// lost them when the page turns out to need a translation.
bool needs_report(const DecodedInstruction& info) {
  const bool to_memory = info.has_modrm && !info.register_form;
  if (wants_aligned_operand(info)) return true;
  if (returns_far_up(info) || is_enter(info)) return true;
  if (to_memory && (info.flag_rule == FlagRule::rotate_carry_left ||
                    info.flag_rule == FlagRule::rotate_carry_right)) {
    return true;
  }
  if (info.opcode_map != 1) return false;
  if (to_memory && info.opcode >= 0x90 && info.opcode <= 0x9f) return true;
  return info.opcode == 0xc7 || info.opcode == 0x00 || info.opcode == 0x02 || info.opcode == 0x03;
}

/// Classes that the engine executes as the processor does, and that change nothing the machine
/// keeps beside the engine.
bool runs_unreported(const DecodedInstruction& info, CpuModel model) {
  if (info.state != DecodeState::ok || info.lock || info.aliased) return false;
  if (needs_report(info)) return false;
  if (info.flag_rule != FlagRule::none && has_flag_rule(info, model)) return false;
  switch (info.kind) {
    case Kind::plain:
    case Kind::jcc:
    case Kind::loop:
    case Kind::jump:
    case Kind::call:
    case Kind::ret:
    case Kind::cli:
    case Kind::sse:
      return true;
    case Kind::string:
      return !info.is_repeated();
    case Kind::pushf:
      return info.operand_bytes == 4;
    default:
      return false;
  }
}

/// A register's contents while the instructions are followed.
struct Value {
  enum class Kind : std::uint8_t { entry, unknown, constant } kind = Kind::entry;
  std::uint32_t id = 0;   ///< Gpr for entry, serial number for unknown
  std::uint32_t add = 0;  ///< or the constant itself
};

/// An address before it is known which values survive to the end.
struct Symbolic {
  Value base, index;
  AddressFormula formula;
};

class AddressTracker {
 public:
  explicit AddressTracker(bool stack32) : stack32_(stack32) {
    for (std::uint32_t g = 0; g < 8; ++g) values_[g] = {Value::Kind::entry, g, 0};
  }

  void execute(const DecodedInstruction& info) {
    const RegisterEffect& e = info.registers;
    std::optional<Value> result;
    switch (e.kind) {
      case RegisterEffect::Kind::none:
        break;
      case RegisterEffect::Kind::set:
        result = Value{Value::Kind::constant, 0, e.constant};
        break;
      case RegisterEffect::Kind::add:
        result = values_[index(e.target)];
        result->add += e.constant;
        break;
      case RegisterEffect::Kind::copy:
        result = values_[index(e.source)];
        result->add += e.constant;
        break;
    }
    for (std::size_t g = 0; g < 8; ++g) {
      if ((e.others >> g & 1) != 0) values_[g] = unknown();
    }
    if (info.stack_delta != 0) {
      if (stack32_) {
        values_[kEsp].add += static_cast<std::uint32_t>(info.stack_delta);
      } else {
        values_[kEsp] = unknown();  // only the low half moves
      }
    }
    if (result) values_[index(e.target)] = *result;
  }

  Symbolic operand(const MemoryOperand& operand) const {
    Symbolic s;
    s.base = operand.base >= 0 ? values_[index(operand.base)] : zero();
    s.index = operand.index >= 0 ? values_[index(operand.index)] : zero();
    s.formula.constant = static_cast<std::uint32_t>(operand.displacement);
    s.formula.shift = operand.shift;
    s.formula.mask = wrap_offset(0xffffffff, operand.width, stack32_);
    s.formula.segment = static_cast<std::uint8_t>(operand.segment);
    return s;
  }
  Symbolic stack(Gpr pointer, std::uint32_t below) const {
    Symbolic s;
    s.base = values_[pointer];
    s.index = zero();
    s.formula.constant = std::uint32_t{0} - below;
    s.formula.mask = wrap_offset(0xffffffff, AddressWidth::stack, stack32_);
    s.formula.segment = kSs;
    return s;
  }
  Symbolic code_register(int gpr, bool wide) const {
    Symbolic s;
    s.base = values_[index(gpr)];
    s.index = zero();
    s.formula.mask = wide ? 0xffffffff : 0xffff;
    s.formula.segment = kCs;
    return s;
  }

  /// The formula when all values were there at entry.
  static bool resolve_at_entry(const Symbolic& s, AddressFormula& out) {
    out = s.formula;
    return settle_at_entry(s.base, 0, out.base, out.constant) &&
           settle_at_entry(s.index, s.formula.shift, out.index, out.constant);
  }
  /// The formula when all values are still to be had at the end, where this tracker is.
  bool resolve(const Symbolic& s, AddressFormula& out) const {
    out = s.formula;
    return settle(s.base, 0, out.base, out.constant) &&
           settle(s.index, s.formula.shift, out.index, out.constant);
  }

 private:
  static std::size_t index(int gpr) { return static_cast<std::size_t>(gpr); }
  static Value zero() { return {Value::Kind::constant, 0, 0}; }
  Value unknown() { return {Value::Kind::unknown, ++serial_, 0}; }

  static bool settle_at_entry(const Value& v, unsigned shift, std::uint8_t& reg,
                              std::uint32_t& constant) {
    constant += v.add << shift;
    if (v.kind == Value::Kind::entry)
      reg = static_cast<std::uint8_t>(BlockRegisters::kEntry + v.id);
    return v.kind != Value::Kind::unknown;
  }
  bool settle(const Value& v, unsigned shift, std::uint8_t& reg, std::uint32_t& constant) const {
    if (settle_at_entry(v, shift, reg, constant)) return true;
    for (std::size_t g = 0; g < 8; ++g) {
      const Value& now = values_[g];
      if (now.kind != Value::Kind::unknown || now.id != v.id) continue;
      reg = static_cast<std::uint8_t>(BlockRegisters::kExit + g);
      constant -= now.add << shift;
      return true;
    }
    return false;
  }

  std::array<Value, 8> values_;
  std::uint32_t serial_ = 0;
  bool stack32_;
};

Symbolic symbolic_address(const AddressTracker& tracker, const DecodedInstruction& info,
                          unsigned slot, std::uint32_t eip) {
  const EaSlot& ea = info.ea[slot];
  switch (ea.source) {
    case EaSource::operand:
      return tracker.operand(info.operands[ea.argument]);
    case EaSource::target: {
      // Of a direct near branch nothing but the base is left open.
      constexpr std::array<std::uint32_t, 6> kNoBases{};
      Symbolic s;
      s.base = s.index = Value{Value::Kind::constant, 0, 0};
      s.formula.constant = kt_address(info, slot, eip, nullptr, kNoBases.data(), true);
      s.formula.segment = kCs;
      return s;
    }
    case EaSource::stack_push:
      return tracker.stack(kEsp, ea.argument);
    case EaSource::stack_pop:
      return tracker.stack(kEsp, 0);
    case EaSource::frame:
      return tracker.stack(kEbp, 0);
    case EaSource::reg:
      return tracker.code_register(ea.argument, info.operand_bytes != 2);
  }
  return {};
}

/// True when every address of the record can be an AddressFormula.
bool has_formulas(const DecodedInstruction& info) {
  return std::none_of(info.ea.begin(), info.ea.begin() + info.ea_count, [&](const EaSlot& ea) {
    if (ea.source != EaSource::operand) return false;
    const OperandKind kind = info.operands[ea.argument].kind;
    return kind == OperandKind::address_after_pop || kind == OperandKind::bit_string ||
           kind == OperandKind::table;
  });
}

/// An access whose offset runs past 4 GiB faults even in a segment without a limit. From base 0 it
/// shows by its page, the last one; from elsewhere only where the address is known beforehand.
std::uint8_t segments_to_be_flat(const DecodedInstruction& info, bool stack32) {
  unsigned segments = 0;
  for (unsigned i = 0; i < info.operand_count; ++i) {
    const MemoryOperand& operand = info.operands[i];
    const bool wide = wrap_offset(0xffffffff, operand.width, stack32) == 0xffffffff;
    const bool fixed =
        (operand.kind == OperandKind::address || operand.kind == OperandKind::absolute) &&
        operand.base < 0 && operand.index < 0 && operand.count == 1;
    const bool fits = 0xffffffff - static_cast<std::uint32_t>(operand.displacement) >=
                      std::uint32_t{operand.size} - 1;
    if (wide && !(fixed && fits)) segments |= 1u << operand.segment;
  }
  return static_cast<std::uint8_t>(segments);
}

/// Each part is looked at with all that follow it. Code that has more is hardly any (memory that
/// was cleared is one store to the same place after another).
constexpr unsigned kMaxParts = 32;

bool changes_ecx(const RegisterEffect& e) {
  const bool target = e.kind != RegisterEffect::Kind::none && e.target == kEcx;
  return target || (e.others >> kEcx & 1) != 0;
}

/// Of blocks that are compared, what must not be in them: accesses whose place, size or number
/// depends on more than registers, those of more than BlockStore holds, flags that depend on a
/// count that is lost, and copies. Nor vector instructions: a block that is taken back is executed
/// again from its general registers and flags.
bool has_plain_accesses(const DecodedInstruction& info) {
  if (info.kind == Kind::sse) return false;
  if (shifts_by_cl(info) && (!info.register_form || changes_ecx(info.registers))) return false;
  if (info.kind == Kind::string && info.operand_count > 1) return false;  // told as copies
  const auto* end = info.operands.begin() + info.operand_count;
  return std::none_of(info.operands.begin(), end, [](const MemoryOperand& operand) {
    return operand.kind == OperandKind::address_after_pop ||
           operand.kind == OperandKind::bit_string || operand.kind == OperandKind::table ||
           operand.conditional_write || operand.size > sizeof BlockStore::value;
  });
}

/// Adds the accesses of one instruction, with their addresses in the same order.
void add_accesses(const AddressTracker& tracker, const DecodedInstruction& info,
                  std::uint32_t number, std::vector<BlockTemplate::Access>& accesses,
                  std::vector<Symbolic>& addresses) {
  const auto add = [&](const MemoryOperand& operand, bool write) {
    for (int i = 0; i < operand.count; ++i) {
      BlockTemplate::Access& access = accesses.emplace_back();
      access.size = static_cast<std::uint8_t>(operand.size);
      access.write = write;
      access.instruction = static_cast<std::uint16_t>(number);
      addresses.push_back(tracker.operand(operand));
      addresses.back().formula.constant += static_cast<std::uint32_t>(i * operand.stride);
    }
  };
  for (unsigned n = 0; n < info.operand_count; ++n) {
    if (info.operands[n].read) add(info.operands[n], false);
  }
  for (unsigned n = 0; n < info.operand_count; ++n) {
    if (info.operands[n].write) add(info.operands[n], true);
  }
}

/// Leaves the segment's base out where it is known as long as the template may run.
void fold_base(AddressFormula& formula, const BlockTemplate& block) {
  if (formula.segment == kCs && formula.mask == 0xffffffff) {
    formula.constant += block.key.code_base;
  } else if (formula.segment >= AddressFormula::kNoSegment ||
             (block.segments_flat >> formula.segment & 1) == 0) {
    return;
  }
  formula.segment = AddressFormula::kNoSegment;
}

/// What a shift by CL does to the flags only ECX tells, when the block has run: it must not change
/// before something else has set them. Returns how many of the first `count` instructions are good.
std::uint32_t set_flags(BlockTemplate& block, std::uint32_t count) {
  std::uint32_t by_count = 0;  // flags that depend on ECX as it is
  block.flags = {};
  block.shifts_by_count = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const DecodedInstruction& info = block.instructions[i].info;
    const FlagEffect effect = flag_effect_of(info, 0);
    if (shifts_by_cl(info)) {
      by_count = kArithmeticFlags;
      block.shifts_by_count = true;
    } else {
      by_count &= ~effect.written;
    }
    if (by_count != 0 && changes_ecx(info.registers)) return i;
    block.flags = block.flags + effect;
  }
  return count;
}

/// Whether the store that is access number `last` goes where an earlier instruction has stored, by
/// the same registers.
bool stores_again(const BlockTemplate& block, std::size_t last) {
  const BlockTemplate::Access& again = block.accesses[last];
  return std::any_of(block.accesses.begin(),
                     block.accesses.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](const BlockTemplate::Access& first) {
                       return first.write && first.instruction != again.instruction &&
                              first.address.differs_by_constant(again.address) &&
                              (again.address.constant - first.address.constant < first.size ||
                               first.address.constant - again.address.constant < again.size);
                     });
}

/// Finds the accesses of the first `count` instructions. Returns how many have addresses that can
/// be told.
std::uint32_t set_accesses(BlockTemplate& block, std::uint32_t count) {
  AddressTracker tracker(block.stack32);
  std::vector<Symbolic> addresses;
  block.accesses.clear();
  const std::uint32_t good = set_flags(block, count);
  if (good != count) return good;
  for (std::uint32_t i = 0; i < count; ++i) {
    const DecodedInstruction& info = block.instructions[i].info;
    add_accesses(tracker, info, i, block.accesses, addresses);
    tracker.execute(info);
  }
  for (std::size_t a = 0; a < addresses.size(); ++a) {
    BlockTemplate::Access& access = block.accesses[a];
    // What a store overwrites is looked at before the block runs.
    const bool told = access.write ? AddressTracker::resolve_at_entry(addresses[a], access.address)
                                   : tracker.resolve(addresses[a], access.address);
    if (!told) return access.instruction;
    fold_base(access.address, block);
    access.plain = access.address.is_plain();
    access.needs_exit = access.address.needs_exit();
    if (access.write && block.stores_apart && stores_again(block, a)) return access.instruction;
  }
  return count;
}

/// Sets the addresses of the first `count` instructions, as seen from the end of the last of them.
/// Returns how many instructions have theirs.
std::uint32_t set_addresses(BlockTemplate& block, std::uint32_t count, Detail detail) {
  if (detail == Detail::comparison) {
    const std::uint32_t good = set_accesses(block, count);
    if (good != count) return good;
  }
  AddressTracker tracker(block.stack32);
  std::vector<std::array<Symbolic, 2>> symbolic(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const BlockTemplate::Instruction& in = block.instructions[i];
    const std::uint32_t eip = block.key.linear + in.offset - block.key.code_base;
    for (unsigned e = 0; e < in.info.ea_count; ++e) {
      symbolic[i][e] = symbolic_address(tracker, in.info, e, eip);
    }
    tracker.execute(in.info);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    BlockTemplate::Instruction& in = block.instructions[i];
    for (unsigned e = 0; e < in.info.ea_count; ++e) {
      if (!tracker.resolve(symbolic[i][e], in.address[e])) return i;
      fold_base(in.address[e], block);
    }
  }
  return count;
}

void cut(BlockTemplate& block, std::uint32_t count) {
  if (count == block.instructions.size()) return;
  block.size = block.instructions[count].offset;
  block.instructions.resize(count);
}

}  // namespace

std::uint32_t BlockTemplate::search(std::uint32_t offset) const {
  const auto last = begins.begin() + count_;
  const auto it = std::lower_bound(begins.begin(), last, offset);
  return it != last && *it == offset ? static_cast<std::uint32_t>(it - begins.begin()) : count_;
}

FlagEffect BlockTemplate::counted_flag_effect(std::uint32_t count) const {
  counted_flags_.resize(kCounts);
  FlagEffect& effect = counted_flags_[count];
  if ((counts_known_ >> count & 1) != 0) return effect;
  counts_known_ |= 1u << count;
  effect = {};
  for (const Instruction& in : instructions) effect = effect + flag_effect_of(in.info, count);
  return effect;
}

bool BlockTemplate::was_left_inside(std::uint32_t which, std::uint32_t block_size) const {
  if (reported_tail || !instructions.back().info.control_flow) return true;
  const DecodedInstruction& info = instructions[which].info;
  if (which + 1 == count_) return info.kind == InstructionClass::call && !info.indirect;
  return block_size == info.length;
}

void BlockTemplate::find_needs() {
  has_addresses = !accesses.empty();
  stores = needs_exit = false;
  for (const Access& access : accesses) {
    stores |= access.write;
    needs_exit |= access.needs_exit;
  }
  for (const Instruction& in : instructions) {
    for (unsigned e = 0; e < in.info.ea_count; ++e) {
      has_addresses = true;
      needs_exit |= in.address[e].needs_exit();
    }
  }
}

void BlockTemplate::collect_addresses() {
  plain_.clear();
  others_.clear();
  for (Instruction& in : instructions) {
    in.first_address = static_cast<std::uint32_t>(plain_.size());
    for (unsigned a = 0; a < in.info.ea_count; ++a) {
      const AddressFormula& address = in.address[a];
      if (address.is_plain()) {
        plain_.push_back({address.constant, address.base});
      } else {
        others_.push_back({address, static_cast<std::uint32_t>(plain_.size())});
        plain_.push_back({0, BlockRegisters::kZero});
      }
    }
  }
}

void BlockTemplate::seal() {
  find_needs();
  count_ = static_cast<std::uint32_t>(instructions.size());
  counts_known_ = 0;
  begins.clear();
  for (const Instruction& in : instructions)
    begins.push_back(static_cast<std::uint16_t>(in.offset));
  begins.push_back(static_cast<std::uint16_t>(size));
  collect_addresses();
  whole_count = count_ + (next ? next->whole_count : 0);
  whole_stores = stores || (next && next->whole_stores);
  left_at_start = kAlways;
  if (count_ == 0) return;
  const DecodedInstruction& info = instructions.front().info;
  if (reported_tail || !instructions.back().info.control_flow) return;
  if (count_ > 1) {
    left_at_start = info.length;
  } else if (info.kind != InstructionClass::call || info.indirect) {
    left_at_start = kNever;
  }
}

BlockTemplate BlockTemplate::first(std::uint32_t count, Detail detail) const {
  BlockTemplate part = *this;
  part.comes_again = false;
  part.next.reset();
  cut(part, count);
  set_addresses(part, count, detail);
  part.seal();
  return part;
}

BlockCompiler::BlockCompiler(const BlockKey& key, CpuModel model, bool stack32,
                             std::uint8_t flat_segments, Detail detail, bool stores_apart)
    : model_(model), flat_segments_(flat_segments), detail_(detail) {
  block_.key = key;
  block_.stack32 = stack32;
  block_.stores_apart = stores_apart;
}

bool BlockCompiler::add(const DecodedInstruction& info) {
  if (!runs_unreported(info, model_)) return false;
  if (detail_ != Detail::nothing && !has_formulas(info)) return false;
  if (detail_ == Detail::comparison && !has_plain_accesses(info)) return false;
  const std::uint8_t flat = segments_to_be_flat(info, block_.stack32);
  if ((flat & ~flat_segments_) != 0) return false;
  block_.segments_flat |= flat;
  BlockTemplate::Instruction& in = block_.instructions.emplace_back();
  in.info = info;
  in.offset = block_.size;
  block_.size += info.length;
  for (unsigned i = 0; i < info.operand_count; ++i) {
    const MemoryOperand& operand = info.operands[i];
    const auto bit = static_cast<std::uint8_t>(1u << operand.segment);
    if (operand.read) block_.segments_read |= bit;
    if (operand.write) block_.segments_written |= bit;
  }
  return true;
}

BlockTemplate BlockCompiler::finish(std::uint32_t second_frame, bool complete) {
  block_.second_frame = second_frame;
  return finish(std::move(block_), complete, kMaxParts);
}

/// `block` and what follows it, in at most that many parts: the rest is reported.
BlockTemplate BlockCompiler::finish(BlockTemplate block, bool complete, unsigned parts) const {
  auto count = static_cast<std::uint32_t>(block.instructions.size());
  while (detail_ != Detail::nothing) {
    const std::uint32_t good = set_addresses(block, count, detail_);
    if (good == count) break;
    count = good;
  }
  if (count == block.instructions.size()) {
    block.reported_tail = !complete;
    block.seal();
    return block;
  }
  // At its beginning a part has all registers: it holds one instruction at least.
  if (parts == 1) {
    cut(block, count);
    block.reported_tail = true;
    block.seal();
    return block;
  }
  BlockTemplate rest;
  rest.key = block.key;
  const std::uint32_t begin = block.instructions[count].offset;
  rest.key.linear += begin;
  rest.key.frame = block.physical(begin).page() * kPageSize;
  rest.second_frame = block.second_frame;
  rest.stack32 = block.stack32;
  rest.stores_apart = block.stores_apart;
  rest.size = block.size - begin;
  rest.segments_read = block.segments_read;
  rest.segments_written = block.segments_written;
  rest.segments_flat = block.segments_flat;
  rest.instructions.assign(block.instructions.begin() + count, block.instructions.end());
  for (BlockTemplate::Instruction& in : rest.instructions) in.offset -= begin;
  cut(block, count);
  block.instructions.shrink_to_fit();
  block.reported_tail = true;
  block.next = std::make_shared<BlockTemplate>(finish(std::move(rest), complete, parts - 1));
  block.next->is_part = true;
  block.seal();
  return block;
}

}  // namespace citcat
