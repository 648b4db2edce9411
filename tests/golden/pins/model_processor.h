#pragma once
// A small model of the processors of 16 bits, for tests that draw pins: it executes the programs of
// this folder, and tells for each instruction what crosses the bus and what a KT trace has of it.
// After the 8086 Family User's Manual, the iAPX 186 and the V20/V30 User's Manual; it shares no
// code with what it is held against.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace citcat::testing {

/// What tells the modelled processors apart.
struct ModelTraits {
  bool has_186 = false, has_nec = false, has_8087 = false;
  bool pushes_old_sp = false;        ///< PUSH SP: the 286 and later
  std::uint16_t set_flags = 0xf002;  ///< that are always set
  bool vector_first = true;          ///< an interrupt reads its vector before it pushes
  bool pusha_upward = false, compares_destination_first = false;
  bool returns_flags_first = false;  ///< IRET: FLAGS, IP, CS
  bool keeps_one_prefix = true;      ///< an interrupted REP returns to its last prefix
};

enum class ModelCycle : std::uint8_t { read, write, in, out, acknowledge, halt };

struct ModelAccess {
  ModelCycle cycle{};
  std::uint32_t address = 0;
  unsigned size = 0;  ///< bytes
  std::uint16_t value = 0;
};

/// An instruction, an iteration of a REP, or the entry of an interrupt from outside.
struct ModelStep {
  std::uint32_t linear = 0;
  std::vector<std::uint8_t> code;  ///< with prefixes; empty: nothing was taken from the queue
  unsigned prefixes = 0;           ///< bytes of `code`
  unsigned immediates = 0;         ///< bytes at the end that are taken behind the operand's read
  bool locked = false, is_entry = false;
  bool recorded = true;                  ///< has a record of KT
  std::vector<std::uint8_t> shown;       ///< bytes of the record
  std::vector<std::uint32_t> addresses;  ///< of the record
  std::vector<ModelAccess> accesses;
  bool jumped = false;      ///< the queue is emptied
  bool broken_off = false;  ///< an entry between two iterations
  std::uint32_t next = 0;   ///< linear address that is executed next
  bool halted = false;
};

class ModelProcessor {
 public:
  explicit ModelProcessor(const ModelTraits& traits);

  std::vector<std::uint8_t> memory;
  enum Register { ax, cx, dx, bx, sp, bp, si, di };
  enum Segment { es, cs, ss, ds };
  std::array<std::uint16_t, 8> r{};
  std::array<std::uint16_t, 4> s{};
  std::uint16_t ip = 0, flags = 0;
  /// What ports give, one after the other; 0 where there is no more.
  std::map<std::uint16_t, std::vector<std::uint8_t>> ports;

  ModelStep step();
  ModelStep interrupt(std::uint8_t vector);
  bool halted() const { return halted_; }
  /// Whether an interrupt from outside can be taken here.
  bool takes_interrupts() const { return (flags & 0x200) != 0 && !shadow_; }
  bool in_repeat() const { return in_repeat_; }
  std::uint32_t linear() const { return at(s[cs], ip); }

 private:
  struct Operand {
    bool is_register = false;
    unsigned number = 0;
    std::uint16_t segment = 0, offset = 0;
  };
  static std::uint32_t at(std::uint16_t segment, std::uint16_t offset) {
    return (segment * 16u + offset) & 0xfffff;
  }

  std::uint8_t code8();
  std::uint16_t code16();
  std::uint16_t immediate(bool wide);
  void modrm();
  std::uint16_t get(const Operand& operand, bool wide);
  void put(const Operand& operand, bool wide, std::uint16_t value);
  std::uint16_t register_value(unsigned number, bool wide) const;
  void set_register(unsigned number, bool wide, std::uint16_t value);
  std::uint16_t read(std::uint16_t segment, std::uint16_t offset, bool wide);
  void write(std::uint16_t segment, std::uint16_t offset, bool wide, std::uint16_t value);
  void push(std::uint16_t value);
  std::uint16_t pop();
  std::uint16_t port_in(std::uint16_t port, bool wide);
  void port_out(std::uint16_t port, bool wide, std::uint16_t value);
  std::uint16_t data_segment() const { return override_ >= 0 ? s[override_] : s[ds]; }

  void set(std::uint16_t flag, bool on) {
    flags = static_cast<std::uint16_t>(on ? flags | flag : flags & ~flag);
  }
  void result_flags(std::uint16_t value, bool wide);
  std::uint16_t alu(unsigned kind, std::uint16_t a, std::uint16_t b, bool wide);
  std::uint16_t step_by_one(std::uint16_t value, bool wide, bool up);
  std::uint16_t shift(unsigned kind, std::uint16_t value, unsigned count, bool wide);
  bool condition(unsigned number) const;

  void jump(std::uint16_t segment, std::uint16_t offset);
  void enter(std::uint8_t vector, std::uint16_t back);
  void record_operand() {
    if (!operand_.is_register) record(at(operand_.segment, operand_.offset));
  }
  void record(std::uint32_t address) { step_.addresses.push_back(address); }
  void record_push() { record(at(s[ss], static_cast<std::uint16_t>(r[sp] - 2))); }

  void execute(std::uint8_t opcode);
  bool execute_alu(std::uint8_t opcode);
  bool execute_stack(std::uint8_t opcode);
  bool execute_moves(std::uint8_t opcode);
  bool execute_jumps(std::uint8_t opcode);
  bool execute_ports(std::uint8_t opcode);
  bool execute_groups(std::uint8_t opcode);
  bool execute_flags(std::uint8_t opcode);
  bool execute_8087(std::uint8_t opcode);
  bool execute_186(std::uint8_t opcode);
  bool execute_nec(std::uint8_t opcode);
  void undefined();
  bool string(std::uint8_t opcode);
  void string_once(std::uint8_t opcode);
  void multiply(bool wide);

  ModelTraits traits_;
  ModelStep step_;
  Operand operand_;
  unsigned field_ = 0;  ///< ModRM.reg
  int override_ = -1;
  std::uint8_t repeat_ = 0;  ///< prefix
  std::uint16_t start_ = 0, last_prefix_ = 0;
  bool halted_ = false, shadow_ = false, in_repeat_ = false;
  std::array<double, 8> stack_{};  ///< of the 8087
  unsigned stack_used_ = 0;
  ModelStep repeated_;  ///< what was taken from the queue for a REP
  std::uint8_t repeated_opcode_ = 0;
  int repeated_override_ = -1;
};

}  // namespace citcat::testing
