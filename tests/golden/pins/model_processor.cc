#include "golden/pins/model_processor.h"

#include <bit>
#include <stdexcept>
#include <string>

namespace citcat::testing {
namespace {

constexpr std::uint16_t kCarry = 1, kParity = 4, kAdjust = 0x10, kZero = 0x40, kSign = 0x80,
                        kInterrupts = 0x200, kDown = 0x400, kOverflow = 0x800, kTrap = 0x100;
constexpr std::uint16_t kKnownFlags = 0x0fd5;

std::uint16_t low(std::uint32_t value) { return static_cast<std::uint16_t>(value); }

}  // namespace

ModelProcessor::ModelProcessor(const ModelTraits& traits)
    : memory(1u << 20), flags(traits.set_flags), traits_(traits) {}

// ---- bytes, operands, accesses

std::uint8_t ModelProcessor::code8() {
  const std::uint8_t byte = memory[at(s[cs], ip++)];
  step_.code.push_back(byte);
  return byte;
}
std::uint16_t ModelProcessor::code16() {
  const std::uint16_t first = code8();
  return low(first | code8() << 8);
}
/// One that is taken behind the operand's read.
std::uint16_t ModelProcessor::immediate(bool wide) {
  step_.immediates += wide ? 2 : 1;
  return wide ? code16() : code8();
}

void ModelProcessor::modrm() {
  const std::uint8_t byte = code8();
  field_ = byte >> 3 & 7;
  const unsigned mode = byte >> 6, rm = byte & 7;
  operand_ = {};
  if (mode == 3) {
    operand_.is_register = true;
    operand_.number = rm;
    return;
  }
  const std::uint16_t bases[8] = {low(r[bx] + r[si]),
                                  low(r[bx] + r[di]),
                                  low(r[bp] + r[si]),
                                  low(r[bp] + r[di]),
                                  r[si],
                                  r[di],
                                  r[bp],
                                  r[bx]};
  bool stack = rm == 2 || rm == 3 || rm == 6;
  std::uint16_t offset = bases[rm];
  if (mode == 0 && rm == 6) {
    offset = code16();
    stack = false;
  } else if (mode == 1) {
    offset = low(offset + static_cast<std::int8_t>(code8()));
  } else if (mode == 2) {
    offset = low(offset + code16());
  }
  operand_.offset = offset;
  operand_.segment = override_ >= 0 ? s[override_] : s[stack ? ss : ds];
}

std::uint16_t ModelProcessor::register_value(unsigned number, bool wide) const {
  if (wide) return r[number];
  return number < 4 ? r[number] & 0xff : r[number & 3] >> 8;
}
void ModelProcessor::set_register(unsigned number, bool wide, std::uint16_t value) {
  if (wide) {
    r[number] = value;
  } else if (number < 4) {
    r[number] = low((r[number] & 0xff00) | (value & 0xff));
  } else {
    r[number & 3] = low((r[number & 3] & 0xff) | value << 8);
  }
}
std::uint16_t ModelProcessor::get(const Operand& operand, bool wide) {
  return operand.is_register ? register_value(operand.number, wide)
                             : read(operand.segment, operand.offset, wide);
}
void ModelProcessor::put(const Operand& operand, bool wide, std::uint16_t value) {
  if (operand.is_register) {
    set_register(operand.number, wide, value);
  } else {
    write(operand.segment, operand.offset, wide, value);
  }
}
std::uint16_t ModelProcessor::read(std::uint16_t segment, std::uint16_t offset, bool wide) {
  const std::uint32_t address = at(segment, offset);
  std::uint16_t value = memory[address];
  if (wide) value = low(value | memory[at(segment, low(offset + 1))] << 8);
  step_.accesses.push_back({ModelCycle::read, address, wide ? 2u : 1u, value});
  return value;
}
void ModelProcessor::write(std::uint16_t segment, std::uint16_t offset, bool wide,
                           std::uint16_t value) {
  const std::uint32_t address = at(segment, offset);
  memory[address] = static_cast<std::uint8_t>(value);
  if (wide) memory[at(segment, low(offset + 1))] = static_cast<std::uint8_t>(value >> 8);
  step_.accesses.push_back({ModelCycle::write, address, wide ? 2u : 1u, value});
}
void ModelProcessor::push(std::uint16_t value) {
  r[sp] = low(r[sp] - 2);
  write(s[ss], r[sp], true, value);
}
std::uint16_t ModelProcessor::pop() {
  const std::uint16_t value = read(s[ss], r[sp], true);
  r[sp] = low(r[sp] + 2);
  return value;
}
std::uint16_t ModelProcessor::port_in(std::uint16_t port, bool wide) {
  std::uint16_t value = 0;
  for (unsigned i = 0; i < (wide ? 2u : 1u); ++i) {
    auto& waiting = ports[low(port + i)];
    if (waiting.empty()) continue;
    value = low(value | waiting.front() << (8 * i));
    waiting.erase(waiting.begin());
  }
  step_.accesses.push_back({ModelCycle::in, port, wide ? 2u : 1u, value});
  return value;
}
void ModelProcessor::port_out(std::uint16_t port, bool wide, std::uint16_t value) {
  step_.accesses.push_back({ModelCycle::out, port, wide ? 2u : 1u, value});
}

// ---- arithmetic

void ModelProcessor::result_flags(std::uint16_t value, bool wide) {
  if (!wide) value &= 0xff;
  set(kZero, value == 0);
  set(kSign, (value & (wide ? 0x8000 : 0x80)) != 0);
  set(kParity, std::popcount(static_cast<unsigned>(value & 0xff)) % 2 == 0);
}

/// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP by their numbers.
std::uint16_t ModelProcessor::alu(unsigned kind, std::uint16_t a, std::uint16_t b, bool wide) {
  const std::uint32_t top = wide ? 0x8000 : 0x80, mask = 2 * top - 1;
  if (kind == 1 || kind == 4 || kind == 6) {
    const auto value = low(kind == 1 ? a | b : kind == 4 ? a & b : a ^ b);
    result_flags(value, wide);
    set(kCarry | kOverflow | kAdjust, false);
    return value;
  }
  const std::uint32_t carry = (kind == 2 || kind == 3) && (flags & kCarry) != 0 ? 1 : 0;
  const bool adds = kind == 0 || kind == 2;
  const std::uint32_t x = a & mask, y = b & mask;
  const std::uint32_t value = adds ? x + y + carry : x - y - carry;
  set(kCarry, (value & ~mask) != 0);
  set(kAdjust, ((x ^ y ^ value) & 0x10) != 0);
  set(kOverflow, ((adds ? ~(x ^ y) : x ^ y) & (x ^ value) & top) != 0);
  result_flags(low(value & mask), wide);
  return low(value & mask);
}

std::uint16_t ModelProcessor::step_by_one(std::uint16_t value, bool wide, bool up) {
  const bool carry = (flags & kCarry) != 0;
  const std::uint16_t result = alu(up ? 0 : 5, value, 1, wide);
  set(kCarry, carry);
  return result;
}

/// SHL, SHR and SAR, by counts for which the flags are defined or not looked at.
std::uint16_t ModelProcessor::shift(unsigned kind, std::uint16_t value, unsigned count, bool wide) {
  const unsigned bits = wide ? 16 : 8;
  for (; count != 0; --count) {
    const bool top = (value >> (bits - 1) & 1) != 0;
    if (kind == 4) {
      set(kCarry, top);
      value = low(value << 1);
      set(kOverflow, ((value >> (bits - 1) & 1) != 0) != top);
    } else {
      set(kCarry, (value & 1) != 0);
      value = low(value >> 1);
      if (kind == 7 && top) value = low(value | 1u << (bits - 1));
      set(kOverflow, kind == 5 && top);
    }
    if (!wide) value &= 0xff;
    result_flags(value, wide);
    set(kAdjust, kind == 4 && (value & 0x10) != 0);
  }
  return value;
}

bool ModelProcessor::condition(unsigned number) const {
  const auto has = [&](std::uint16_t flag) { return (flags & flag) != 0; };
  bool is = false;
  switch (number >> 1) {
    case 0:
      is = has(kOverflow);
      break;
    case 1:
      is = has(kCarry);
      break;
    case 2:
      is = has(kZero);
      break;
    case 3:
      is = has(kCarry) || has(kZero);
      break;
    case 4:
      is = has(kSign);
      break;
    case 5:
      is = has(kParity);
      break;
    case 6:
      is = has(kSign) != has(kOverflow);
      break;
    default:
      is = has(kZero) || has(kSign) != has(kOverflow);
      break;
  }
  return is != ((number & 1) != 0);
}

// ---- one step

ModelStep ModelProcessor::step() {
  shadow_ = false;
  if (in_repeat_) {
    step_ = {};
    step_.linear = repeated_.linear;
    step_.shown = repeated_.shown;
    override_ = repeated_override_;
    string(repeated_opcode_);
    step_.next = linear();
    return step_;
  }
  step_ = {};
  step_.linear = linear();
  start_ = ip;
  override_ = -1;
  repeat_ = 0;
  std::uint8_t opcode = 0;
  for (;;) {
    last_prefix_ = ip;
    opcode = code8();
    const bool segment = (opcode & 0xe7) == 0x26;
    const bool repeats = (opcode & 0xfe) == 0xf2 || (traits_.has_nec && (opcode & 0xfe) == 0x64);
    if (!segment && !repeats && opcode != 0xf0) break;
    if (segment) override_ = opcode >> 3 & 3;
    if (repeats) repeat_ = opcode;
    if (opcode == 0xf0) step_.locked = true;
    ++step_.prefixes;
  }
  execute(opcode);
  if (step_.shown.empty()) step_.shown = step_.code;
  step_.next = linear();
  return step_;
}

ModelStep ModelProcessor::interrupt(std::uint8_t vector) {
  step_ = {};
  step_.is_entry = true;
  step_.recorded = false;
  step_.linear = linear();
  step_.broken_off = in_repeat_;
  step_.locked = true;
  in_repeat_ = false;
  halted_ = false;
  step_.accesses.push_back({ModelCycle::acknowledge, 0, 1, vector});
  enter(vector, ip);
  step_.next = linear();
  return step_;
}

void ModelProcessor::enter(std::uint8_t vector, std::uint16_t back) {
  const auto push_all = [&] {
    push(flags);
    push(s[cs]);
    push(back);
  };
  if (!traits_.vector_first) push_all();
  const std::uint16_t offset = read(0, low(vector * 4), true);
  const std::uint16_t segment = read(0, low(vector * 4 + 2), true);
  if (traits_.vector_first) push_all();
  set(kInterrupts | kTrap, false);
  jump(segment, offset);
}

void ModelProcessor::jump(std::uint16_t segment, std::uint16_t offset) {
  s[cs] = segment;
  ip = offset;
  step_.jumped = true;
}

void ModelProcessor::execute(std::uint8_t opcode) {
  const bool done = execute_alu(opcode) || execute_stack(opcode) || execute_moves(opcode) ||
                    execute_jumps(opcode) || execute_ports(opcode) || execute_groups(opcode) ||
                    execute_flags(opcode) || (traits_.has_8087 && execute_8087(opcode)) ||
                    (traits_.has_186 && execute_186(opcode)) ||
                    (traits_.has_nec && execute_nec(opcode));
  if (done) return;
  if (traits_.has_186 && !traits_.has_nec) {
    undefined();
    return;
  }
  throw std::logic_error("the model has no opcode " + std::to_string(opcode));
}

/// An opcode that is none: interrupt 6, back to the instruction.
void ModelProcessor::undefined() {
  step_.recorded = false;
  step_.accesses.clear();
  enter(6, start_);
}

bool ModelProcessor::execute_alu(std::uint8_t opcode) {
  if (opcode < 0x40 && (opcode & 7) < 6) {
    const bool wide = (opcode & 1) != 0;
    const unsigned kind = opcode >> 3;
    if ((opcode & 7) >= 4) {
      const std::uint16_t b = wide ? code16() : code8();
      const std::uint16_t value = alu(kind, register_value(ax, wide), b, wide);
      if (kind != 7) set_register(ax, wide, value);
      return true;
    }
    modrm();
    record_operand();
    const bool to_register = (opcode & 2) != 0;
    const std::uint16_t e = get(operand_, wide), g = register_value(field_, wide);
    const std::uint16_t value = to_register ? alu(kind, g, e, wide) : alu(kind, e, g, wide);
    if (kind == 7) return true;
    if (to_register) {
      set_register(field_, wide, value);
    } else {
      put(operand_, wide, value);
    }
    return true;
  }
  if (opcode >= 0x40 && opcode < 0x50) {
    r[opcode & 7] = step_by_one(r[opcode & 7], true, opcode < 0x48);
    return true;
  }
  if (opcode == 0xa8 || opcode == 0xa9) {
    const bool wide = opcode == 0xa9;
    alu(4, register_value(ax, wide), wide ? code16() : code8(), wide);
    return true;
  }
  if (opcode == 0x84 || opcode == 0x85) {
    modrm();
    record_operand();
    alu(4, get(operand_, opcode == 0x85), register_value(field_, opcode == 0x85), opcode == 0x85);
    return true;
  }
  return false;
}

bool ModelProcessor::execute_stack(std::uint8_t opcode) {
  if (opcode >= 0x50 && opcode < 0x58) {
    record_push();
    const auto before = low(r[sp] - (traits_.pushes_old_sp ? 0 : 2));
    push(opcode == 0x54 ? before : r[opcode & 7]);
    return true;
  }
  if (opcode >= 0x58 && opcode < 0x60) {
    record(at(s[ss], r[sp]));
    const std::uint16_t value = pop();
    r[opcode & 7] = value;
    return true;
  }
  if (opcode < 0x20 && (opcode & 7) == 6) {
    record_push();
    push(s[opcode >> 3 & 3]);
    return true;
  }
  if (opcode < 0x20 && (opcode & 7) == 7 && opcode != 0x0f) {
    record(at(s[ss], r[sp]));
    s[opcode >> 3 & 3] = pop();
    shadow_ = true;
    return true;
  }
  if (opcode == 0x9c) {
    record_push();
    push(flags);
    return true;
  }
  if (opcode == 0x9d) {
    record(at(s[ss], r[sp]));
    flags = low((pop() & kKnownFlags) | traits_.set_flags);
    return true;
  }
  return false;
}

bool ModelProcessor::execute_moves(std::uint8_t opcode) {
  const bool wide = (opcode & 1) != 0;
  switch (opcode) {
    case 0x86:
    case 0x87: {
      modrm();
      record_operand();
      const std::uint16_t e = get(operand_, wide);
      put(operand_, wide, register_value(field_, wide));
      set_register(field_, wide, e);
      return true;
    }
    case 0x88:
    case 0x89:
      modrm();
      record_operand();
      put(operand_, wide, register_value(field_, wide));
      return true;
    case 0x8a:
    case 0x8b:
      modrm();
      record_operand();
      set_register(field_, wide, get(operand_, wide));
      return true;
    case 0x8c:
      modrm();
      record_operand();
      put(operand_, true, s[field_ & 3]);
      return true;
    case 0x8e:
      modrm();
      record_operand();
      s[field_ & 3] = get(operand_, true);
      shadow_ = true;
      return true;
    case 0x8d:
      modrm();
      r[field_] = operand_.offset;
      return true;
    case 0x90:
      return true;
    case 0xa0:
    case 0xa1:
    case 0xa2:
    case 0xa3: {
      const std::uint16_t offset = code16();
      record(at(data_segment(), offset));
      if (opcode < 0xa2) {
        set_register(ax, wide, read(data_segment(), offset, wide));
      } else {
        write(data_segment(), offset, wide, register_value(ax, wide));
      }
      return true;
    }
    case 0xc6:
    case 0xc7:
      modrm();
      record_operand();
      put(operand_, wide, wide ? code16() : code8());
      return true;
    default:
      break;
  }
  if (opcode >= 0xb0 && opcode < 0xc0) {
    set_register(opcode & 7, opcode >= 0xb8, opcode >= 0xb8 ? code16() : code8());
    return true;
  }
  return string(opcode);
}

bool ModelProcessor::execute_jumps(std::uint8_t opcode) {
  const auto near = [&](std::uint16_t to) { jump(s[cs], to); };
  if ((opcode >= 0x70 && opcode < 0x80) || (opcode >= 0xe0 && opcode < 0xe4)) {
    const auto distance = static_cast<std::int8_t>(code8());
    const std::uint16_t target = low(ip + distance);
    record(at(s[cs], target));
    bool taken = false;
    if (opcode < 0x80) {
      taken = condition(opcode & 15);
    } else if (opcode == 0xe3) {
      taken = r[cx] == 0;
    } else {
      r[cx] = low(r[cx] - 1);
      taken = r[cx] != 0 && (opcode == 0xe2 || ((flags & kZero) != 0) == (opcode == 0xe1));
    }
    if (taken) near(target);
    return true;
  }
  switch (opcode) {
    case 0xe8:
    case 0xe9: {
      const std::uint16_t distance = code16();
      const std::uint16_t target = low(ip + distance);
      record(at(s[cs], target));
      if (opcode == 0xe8) {
        record_push();
        push(ip);
      }
      near(target);
      return true;
    }
    case 0xeb: {
      const auto distance = static_cast<std::int8_t>(code8());
      const std::uint16_t target = low(ip + distance);
      record(at(s[cs], target));
      near(target);
      return true;
    }
    case 0xea:
    case 0x9a: {
      const std::uint16_t offset = code16(), segment = code16();
      record(at(segment, offset));
      if (opcode == 0x9a) {
        record_push();
        push(s[cs]);
        push(ip);
      }
      jump(segment, offset);
      return true;
    }
    case 0xc2:
    case 0xc3:
    case 0xcb: {
      const std::uint16_t more = opcode == 0xc2 ? code16() : 0;
      record(at(s[ss], r[sp]));
      const std::uint16_t offset = pop();
      const std::uint16_t segment = opcode == 0xcb ? pop() : s[cs];
      r[sp] = low(r[sp] + more);
      jump(segment, offset);
      return true;
    }
    case 0xcd: {
      const std::uint8_t vector = code8();
      record_push();
      enter(vector, ip);
      return true;
    }
    case 0xcf: {
      record(at(s[ss], r[sp]));
      std::uint16_t offset = 0, segment = 0, popped = 0;
      if (traits_.returns_flags_first) {
        popped = read(s[ss], low(r[sp] + 4), true);
        offset = pop();
        segment = pop();
        r[sp] = low(r[sp] + 2);
      } else {
        offset = pop();
        segment = pop();
        popped = pop();
      }
      flags = low((popped & kKnownFlags) | traits_.set_flags);
      jump(segment, offset);
      return true;
    }
    default:
      return false;
  }
}

bool ModelProcessor::execute_ports(std::uint8_t opcode) {
  const bool by_number = (opcode & 0xfc) == 0xe4, by_dx = (opcode & 0xfc) == 0xec;
  if (!by_number && !by_dx) return false;
  const bool wide = (opcode & 1) != 0;
  const std::uint16_t port = by_number ? code8() : r[dx];
  if ((opcode & 2) != 0) {
    port_out(port, wide, register_value(ax, wide));
  } else {
    set_register(ax, wide, port_in(port, wide));
  }
  return true;
}

bool ModelProcessor::execute_groups(std::uint8_t opcode) {
  const bool wide = (opcode & 1) != 0;
  switch (opcode) {
    case 0x80:
    case 0x81:
    case 0x83: {
      modrm();
      record_operand();
      const std::uint16_t e = get(operand_, wide);
      std::uint16_t b = immediate(opcode == 0x81);
      if (opcode == 0x83) b = low(static_cast<std::int8_t>(b));
      const std::uint16_t value = alu(field_, e, b, wide);
      if (field_ != 7) put(operand_, wide, value);
      return true;
    }
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      modrm();
      record_operand();
      const unsigned count = opcode < 0xd2 ? 1 : r[cx] & 0xff;
      put(operand_, wide, shift(field_, get(operand_, wide), count, wide));
      return true;
    }
    case 0xf6:
    case 0xf7:
      modrm();
      record_operand();
      if (field_ == 0) {
        const std::uint16_t e = get(operand_, wide);
        alu(4, e, immediate(wide), wide);
      } else if (field_ == 2) {
        put(operand_, wide, low(~get(operand_, wide)));
      } else if (field_ == 3) {
        put(operand_, wide, alu(5, 0, get(operand_, wide), wide));
      } else {
        multiply(wide);
      }
      return true;
    case 0xfe:
    case 0xff:
      modrm();
      record_operand();
      if (field_ < 2) {
        put(operand_, wide, step_by_one(get(operand_, wide), wide, field_ == 0));
        return true;
      }
      if (field_ == 4) {
        if (operand_.is_register) record(at(s[cs], r[operand_.number]));
        jump(s[cs], get(operand_, true));
        return true;
      }
      return false;
    default:
      return false;
  }
}

/// MUL alone.
void ModelProcessor::multiply(bool wide) {
  if (field_ != 4) throw std::logic_error("the model multiplies by MUL alone");
  const std::uint32_t product = register_value(ax, wide) * std::uint32_t{get(operand_, wide)};
  r[ax] = low(product);
  if (wide) r[dx] = low(product >> 16);
  set(kCarry | kOverflow, (wide ? product >> 16 : product >> 8) != 0);
}

bool ModelProcessor::execute_flags(std::uint8_t opcode) {
  switch (opcode) {
    case 0xf4:
      step_.accesses.push_back({ModelCycle::halt, 0, 0, 0});
      step_.halted = halted_ = true;
      return true;
    case 0xf8:
    case 0xf9:
      set(kCarry, opcode == 0xf9);
      return true;
    case 0xfa:
      set(kInterrupts, false);
      return true;
    case 0xfb:
      shadow_ = (flags & kInterrupts) == 0;
      set(kInterrupts, true);
      return true;
    case 0xfc:
    case 0xfd:
      set(kDown, opcode == 0xfd);
      return true;
    default:
      return false;
  }
}

// ---- strings

bool ModelProcessor::string(std::uint8_t opcode) {
  const bool moves = opcode >= 0xa4 && opcode < 0xb0 && (opcode & 0xfe) != 0xa8;
  const bool to_ports = (opcode & 0xfc) == 0x6c && traits_.has_186;
  if (!moves && !to_ports) return false;
  if (repeat_ == 0) {
    string_once(opcode);
    return true;
  }
  if (!in_repeat_) {
    step_.shown = step_.code;
    if (r[cx] == 0) return true;
    repeated_ = step_;
    repeated_opcode_ = opcode;
    repeated_override_ = override_;
  }
  const std::uint16_t end =
      in_repeat_ ? low(start_ + static_cast<std::uint32_t>(repeated_.shown.size())) : ip;
  string_once(opcode);
  r[cx] = low(r[cx] - 1);
  const bool compares = (opcode & 0xfe) == 0xa6 || (opcode & 0xfe) == 0xae;
  bool goes_on = r[cx] != 0;
  if (compares && repeat_ >= 0xf2) goes_on &= ((flags & kZero) != 0) == (repeat_ == 0xf3);
  if (compares && repeat_ < 0xf2) goes_on &= ((flags & kCarry) != 0) == (repeat_ == 0x65);
  in_repeat_ = goes_on;
  // Interrupted, it is come back to at a prefix.
  const std::uint16_t again = traits_.keeps_one_prefix ? low(end - 2) : start_;
  ip = goes_on ? again : end;
  return true;
}

void ModelProcessor::string_once(std::uint8_t opcode) {
  const bool wide = (opcode & 1) != 0;
  const auto step = low((flags & kDown) != 0 ? (wide ? -2 : -1) : (wide ? 2 : 1));
  const auto source = [&] {
    record(at(data_segment(), r[si]));
    const std::uint16_t value = read(data_segment(), r[si], wide);
    r[si] = low(r[si] + step);
    return value;
  };
  const auto destination = [&] {
    record(at(s[es], r[di]));
    const std::uint16_t offset = r[di];
    r[di] = low(r[di] + step);
    return offset;
  };
  switch (opcode & 0xfe) {
    case 0xa4: {
      const std::uint16_t value = source();
      write(s[es], destination(), wide, value);
      break;
    }
    case 0xa6: {
      record(at(data_segment(), r[si]));
      const std::uint16_t to = destination();
      std::uint16_t a = 0, b = 0;
      if (traits_.compares_destination_first) {
        b = read(s[es], to, wide);
        a = read(data_segment(), r[si], wide);
      } else {
        a = read(data_segment(), r[si], wide);
        b = read(s[es], to, wide);
      }
      r[si] = low(r[si] + step);
      alu(7, a, b, wide);
      break;
    }
    case 0xaa:
      write(s[es], destination(), wide, register_value(ax, wide));
      break;
    case 0xac:
      set_register(ax, wide, source());
      break;
    case 0xae:
      alu(7, register_value(ax, wide), read(s[es], destination(), wide), wide);
      break;
    case 0x6c: {
      const std::uint16_t value = port_in(r[dx], wide);
      write(s[es], destination(), wide, value);
      break;
    }
    default:
      port_out(r[dx], wide, source());
      break;
  }
}

// ---- the 8087

/// FNINIT; FLD, FADD, FSTP of eight bytes; FWAIT. The processor reads a word of any
/// operand, the coprocessor what it needs besides (8087 data sheet, "Processor interface").
bool ModelProcessor::execute_8087(std::uint8_t opcode) {
  if (opcode == 0x9b) return true;
  if ((opcode & 0xf8) != 0xd8) return false;
  modrm();
  record_operand();
  if (operand_.is_register) {
    if (opcode != 0xdb || field_ != 4 || operand_.number != 3)
      throw std::logic_error("the model has no such instruction of the 8087");
    return true;
  }
  const auto word = [&](unsigned i) { return low(operand_.offset + 2 * i); };
  const std::uint16_t first = read(operand_.segment, operand_.offset, true);
  if (field_ == 3) {
    const auto bits = std::bit_cast<std::uint64_t>(stack_.at(--stack_used_));
    for (unsigned i = 0; i < 4; ++i)
      write(operand_.segment, word(i), true, low(static_cast<std::uint32_t>(bits >> (16 * i))));
  } else {
    std::uint64_t bits = first;
    for (unsigned i = 1; i < 4; ++i)
      bits |= std::uint64_t{read(operand_.segment, word(i), true)} << (16 * i);
    const auto value = std::bit_cast<double>(bits);
    if (opcode == 0xdd) {
      stack_.at(stack_used_++) = value;
    } else {
      stack_.at(stack_used_ - 1) += value;
    }
  }
  return true;
}

// ---- the 186, and NEC's

bool ModelProcessor::execute_186(std::uint8_t opcode) {
  switch (opcode) {
    case 0x60: {
      record_push();
      const std::uint16_t before = r[sp];
      if (traits_.pusha_upward) {
        r[sp] = low(before - 16);
        for (unsigned i = 8; i-- > 0;)
          write(s[ss], low(before - 2 * (i + 1)), true, i == sp ? before : r[i]);
      } else {
        for (unsigned i = 0; i < 8; ++i) push(i == sp ? before : r[i]);
      }
      return true;
    }
    case 0x61:
      record(at(s[ss], r[sp]));
      for (unsigned i = 8; i-- > 0;) {
        const std::uint16_t value = pop();
        if (i != sp) r[i] = value;
      }
      return true;
    case 0x62: {
      modrm();
      record_operand();
      const auto value = static_cast<std::int16_t>(r[field_]);
      const auto least = static_cast<std::int16_t>(read(operand_.segment, operand_.offset, true));
      const auto most =
          static_cast<std::int16_t>(read(operand_.segment, low(operand_.offset + 2), true));
      if (value < least || value > most) {
        step_.recorded = false;
        enter(5, start_);
      }
      return true;
    }
    case 0x68:
    case 0x6a: {
      record_push();
      const std::uint16_t value =
          opcode == 0x68 ? code16() : low(static_cast<std::int8_t>(code8()));
      push(value);
      return true;
    }
    case 0x69:
    case 0x6b: {
      modrm();
      record_operand();
      const auto a = static_cast<std::int16_t>(get(operand_, true));
      const std::uint16_t raw = immediate(opcode == 0x69);
      const std::int32_t b =
          opcode == 0x69 ? static_cast<std::int16_t>(raw) : static_cast<std::int8_t>(raw);
      r[field_] = low(static_cast<std::uint32_t>(a * b));
      const bool fits = a * b == static_cast<std::int16_t>(r[field_]);
      set(kCarry | kOverflow, !fits);
      return true;
    }
    case 0xc0:
    case 0xc1: {
      modrm();
      record_operand();
      const std::uint16_t e = get(operand_, opcode == 0xc1);
      const unsigned count = immediate(false);
      put(operand_, opcode == 0xc1, shift(field_, e, count, opcode == 0xc1));
      return true;
    }
    case 0xc8: {
      record_push();
      const std::uint16_t size = code16();
      if (code8() != 0) throw std::logic_error("the model has no nested ENTER");
      push(r[bp]);
      r[bp] = r[sp];
      r[sp] = low(r[sp] - size);
      return true;
    }
    case 0xc9:
      record(at(s[ss], r[bp]));
      r[sp] = r[bp];
      r[bp] = pop();
      return true;
    default:
      return false;
  }
}

bool ModelProcessor::execute_nec(std::uint8_t opcode) {
  if (opcode != 0x0f) return false;
  const std::uint8_t second = code8();
  const bool wide = (second & 1) != 0;
  if (second >= 0x10 && second < 0x20) {
    modrm();
    record_operand();
    const std::uint16_t e = get(operand_, wide);
    const unsigned number = second < 0x18 ? r[cx] & 0xff : immediate(false);
    const std::uint16_t bit = low(1u << (number & (wide ? 15 : 7)));
    switch (second >> 1 & 3) {
      case 0:
        set(kCarry | kOverflow, false);
        set(kZero, (e & bit) == 0);
        break;
      case 1:
        put(operand_, wide, low(e & ~bit));
        break;
      case 2:
        put(operand_, wide, low(e | bit));
        break;
      default:
        put(operand_, wide, low(e ^ bit));
        break;
    }
    return true;
  }
  if (second == 0x28 || second == 0x2a) {
    modrm();
    record_operand();
    const std::uint16_t e = get(operand_, false), digit = r[ax] & 15;
    const bool left = second == 0x28;
    put(operand_, false, left ? low((e << 4 | digit) & 0xff) : low(digit << 4 | e >> 4));
    r[ax] = low((r[ax] & 0xfff0) | (left ? e >> 4 : e & 15));
    return true;
  }
  return false;
}

}  // namespace citcat::testing
