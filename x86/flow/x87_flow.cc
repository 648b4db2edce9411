// By opcode and ModRM, as the tables of the Intel SDM have them (vol. 2, appendix A.5). Registers
// written are numbered as they are after the instruction, registers read as they are before it.

#include "x86/flow/x87_flow.h"

namespace citcat {
namespace {

constexpr ValueSpan kAllLoads{ValueSpan::Of::loads, 0, ValueSpan::kAll};
constexpr ValueSpan kAllStores{ValueSpan::Of::stores, 0, ValueSpan::kAll};
constexpr PlaceRange kConditions{place::kFpuStatus + 1, 1}, kExceptions{place::kFpuStatus, 1};

ValueSpan in_place(PlaceRange range) { return {ValueSpan::Of::places, range.first, range.count}; }
ValueSpan st(unsigned number) { return in_place(place::stack(number & 7)); }

class X87Flow {
 public:
  X87Flow(const DecodedInstruction& info, ValueFlow& flow) : info_(info), flow_(flow) {
    flow_.uses_stack = true;
  }

  void add() {
    if (info_.register_form) {
      of_registers();
    } else {
      of_memory();
    }
  }

 private:
  void push() { flow_.stack_moves = 1; }
  void pop(int count = 1) { flow_.stack_moves = static_cast<std::int8_t>(-count); }
  /// Register `to` after the instruction takes the value of `from`.
  void copy(ValueSpan to, ValueSpan from) { flow_.effects.push_back({{to}, {from}, {}}); }
  void constant(ValueSpan to) { flow_.effects.push_back({{to}, {}, {}}); }
  /// A result that is rounded, and the exceptions that it may leave.
  void compute(ValueSpan to, std::vector<ValueSpan> from) {
    from.push_back(in_place(place::one(place::kFpuControl)));
    flow_.effects.push_back({{to}, {}, from});
    from.push_back(in_place(kExceptions));
    flow_.effects.push_back({{in_place(kExceptions)}, {}, from});
  }
  void compare(std::vector<ValueSpan> from) {
    flow_.effects.push_back({{in_place(kConditions)}, {}, from});
    from.push_back(in_place(kExceptions));
    flow_.effects.push_back({{in_place(kExceptions)}, {}, from});
  }
  /// FCOMI and its like: ZF, PF and CF; OF, SF and AF are cleared.
  void compare_to_flags(std::vector<ValueSpan> from) {
    ValueEffect effect;
    for (const unsigned bit : {0u, 2u, 6u}) effect.to.push_back(in_place(place::flag(bit)));
    effect.whole = from;
    flow_.effects.push_back(effect);
    for (const unsigned bit : {4u, 7u, 11u}) constant(in_place(place::flag(bit)));
  }

  void of_memory();
  void of_registers();
  void store(bool pops) {
    compute(kAllStores, {st(0)});
    if (pops) pop();
  }
  void load() {
    push();
    compute(st(0), {kAllLoads});
  }
  void arithmetic_of_memory();
  void of_d9(unsigned rm);
  void transcendental(unsigned rm);
  void save_image(unsigned begin, bool with_registers);
  void load_image(unsigned begin, bool with_registers);
  void initialise();
  /// Bytes of the image without registers.
  unsigned environment() const { return info_.operand_bytes == 2 ? 14 : 28; }

  const DecodedInstruction& info_;
  ValueFlow& flow_;
};

void X87Flow::arithmetic_of_memory() {
  const unsigned operation = info_.reg_field;
  if (operation == 2 || operation == 3) {
    compare({st(0), kAllLoads});
    if (operation == 3) pop();
  } else {
    compute(st(0), {st(0), kAllLoads});
  }
}

void X87Flow::initialise() { constant(in_place({place::kFpuStatus, 4})); }

void X87Flow::save_image(unsigned begin, bool with_registers) {
  const auto bytes = [](unsigned first, unsigned count) {
    return ValueSpan{ValueSpan::Of::stores, static_cast<std::uint16_t>(first),
                     static_cast<std::uint16_t>(count)};
  };
  const unsigned step = begin == 14 ? 2 : 4;
  copy(bytes(0, 2), in_place(place::one(place::kFpuControl)));
  copy(bytes(step, 2), in_place({place::kFpuStatus, 2}));
  copy(bytes(2 * step, 2), in_place(place::one(place::kFpuTags)));
  if (!with_registers) return;
  for (unsigned i = 0; i < 8; ++i) copy(bytes(begin + 10 * i, 10), st(i));
  initialise();
}

void X87Flow::load_image(unsigned begin, bool with_registers) {
  const auto bytes = [](unsigned first, unsigned count) {
    return ValueSpan{ValueSpan::Of::loads, static_cast<std::uint16_t>(first),
                     static_cast<std::uint16_t>(count)};
  };
  const unsigned step = begin == 14 ? 2 : 4;
  flow_.effects.push_back({{in_place(place::one(place::kFpuControl))}, {}, {bytes(0, 2)}});
  copy(in_place({place::kFpuStatus, 2}), bytes(step, 2));
  flow_.effects.push_back({{in_place(place::one(place::kFpuTags))}, {}, {bytes(2 * step, 2)}});
  for (unsigned i = 0; i < 8; ++i) {
    if (with_registers) {
      copy(st(i), bytes(begin + 10 * i, 10));
    } else {
      // The top may be another one: any of them may be the one that was meant.
      std::vector<ValueSpan> all{bytes(step, 2)};
      for (unsigned r = 0; r < 8; ++r) all.push_back(st(r));
      flow_.effects.push_back({{st(i)}, {}, all});
    }
  }
}

void X87Flow::of_memory() {
  const unsigned operation = info_.reg_field;
  switch (info_.opcode) {
    case 0xd8:
    case 0xda:
    case 0xdc:
    case 0xde:
      return arithmetic_of_memory();
    case 0xd9:
      if (operation == 0) return load();
      if (operation == 2 || operation == 3) return store(operation == 3);
      if (operation == 4) return load_image(environment(), false);
      if (operation == 5) {
        flow_.effects.push_back({{in_place(place::one(place::kFpuControl))}, {}, {kAllLoads}});
      } else if (operation == 6) {
        save_image(environment(), false);
      } else if (operation == 7) {
        flow_.effects.push_back({{kAllStores}, {}, {in_place(place::one(place::kFpuControl))}});
      }
      return;
    case 0xdb:
      if (operation == 0) return load();
      if (operation == 5) {
        push();
        return copy(st(0), kAllLoads);
      }
      if (operation == 7) {
        copy(kAllStores, st(0));
        return pop();
      }
      return store(operation != 2);
    case 0xdd:
      if (operation == 0) return load();
      if (operation == 4) return load_image(environment(), true);
      if (operation == 6) return save_image(environment(), true);
      if (operation == 7) return copy(kAllStores, in_place({place::kFpuStatus, 2}));
      return store(operation != 2);
    default:  // DF
      if (operation == 0 || operation == 4 || operation == 5) return load();
      return store(operation != 2);
  }
}

void X87Flow::transcendental(unsigned rm) {
  switch (rm) {
    case 1:  // FYL2X, FPATAN
    case 3:
      compute(st(0), {st(0), st(1)});
      return pop();
    case 2:  // FPTAN
      push();
      constant(st(0));
      return compute(st(1), {st(0)});
    case 4:  // FXTRACT
      push();
      compute(st(0), {st(0)});
      return compute(st(1), {st(0)});
    case 5:  // FPREM1
      compute(st(0), {st(0), st(1)});
      return compare({st(0), st(1)});
    case 6:  // FDECSTP: the top is one lower, and nothing is written
      copy(st(0), st(7));
      return push();
    case 7:  // FINCSTP
      copy(st(7), st(0));
      return pop();
    default:  // F2XM1
      return compute(st(0), {st(0)});
  }
}

void X87Flow::of_d9(unsigned rm) {
  switch (info_.reg_field) {
    case 0:  // FLD ST(i)
      push();
      return copy(st(0), st(rm));
    case 1:  // FXCH
      copy(st(0), st(rm));
      return copy(st(rm), st(0));
    case 3:  // FSTP ST(i), by an encoding that is not in the manuals but works (docs/fidelity.md)
      copy(st(rm + 7), st(0));
      return pop();
    case 4:
      if (rm < 2) return copy(st(0), st(0));  // FCHS, FABS: nearly
      return compare({st(0), in_place(place::one(place::kFpuTags))});
    case 5:
      push();
      return constant(st(0));
    case 6:
      return transcendental(rm);
    case 7:
      if (rm == 0 || rm == 5) {  // FPREM, FSCALE
        compute(st(0), {st(0), st(1)});
        if (rm == 0) compare({st(0), st(1)});
        return;
      }
      if (rm == 1) {  // FYL2XP1
        compute(st(0), {st(0), st(1)});
        return pop();
      }
      if (rm == 3) {  // FSINCOS
        push();
        compute(st(0), {st(0)});
        return compute(st(1), {st(0)});
      }
      return compute(st(0), {st(0)});
    default:
      return;  // FNOP
  }
}

void X87Flow::of_registers() {
  const unsigned operation = info_.reg_field, rm = info_.rm_field & 7u;
  const auto conditional_move = [&] {
    ValueEffect effect{{st(0)}, {st(0), st(rm)}, {}};
    for (const unsigned bit : {0u, 2u, 6u}) effect.whole.push_back(in_place(place::flag(bit)));
    flow_.effects.push_back(effect);
  };
  switch (info_.opcode) {
    case 0xd8:
      if (operation == 2 || operation == 3) {
        compare({st(0), st(rm)});
        if (operation == 3) pop();
      } else {
        compute(st(0), {st(0), st(rm)});
      }
      return;
    case 0xd9:
      return of_d9(rm);
    case 0xda:
      if (operation < 4) return conditional_move();
      compare({st(0), st(1)});  // FUCOMPP
      return pop(2);
    case 0xdb:
      if (operation < 4) return conditional_move();
      if (operation >= 5) return compare_to_flags({st(0), st(rm)});
      if (rm == 2) constant(in_place(kExceptions));  // FNCLEX
      if (rm == 3) initialise();
      return;
    case 0xdc:
    case 0xde: {
      const bool pops = info_.opcode == 0xde;
      if (operation == 2 || operation == 3) {
        compare({st(0), st(rm)});
        if (operation == 3) pop(pops ? 2 : 1);
        if (operation == 2 && pops) pop();
        return;
      }
      compute(st(pops ? rm + 7 : rm), {st(0), st(rm)});
      if (pops) pop();
      return;
    }
    case 0xdd:
      if (operation == 1) {
        copy(st(0), st(rm));
        return copy(st(rm), st(0));
      }
      if (operation == 2) return copy(st(rm), st(0));
      if (operation == 3) {
        copy(st(rm + 7), st(0));
        return pop();
      }
      if (operation >= 4) {
        compare({st(0), st(rm)});
        if (operation == 5) pop();
      }
      return;
    default:  // DF
      if (operation == 4 && rm == 0) {
        return copy(in_place(place::gpr(kEax, 0, 2)), in_place({place::kFpuStatus, 2}));
      }
      if (operation >= 5) {
        compare_to_flags({st(0), st(rm)});
        return pop();
      }
      if (operation == 0) return pop();  // FFREEP
      if (operation == 1) {
        copy(st(0), st(rm));
        return copy(st(rm), st(0));
      }
      copy(st(rm + 7), st(0));
      return pop();
  }
}

}  // namespace

void add_x87_flow(const DecodedInstruction& info, ValueFlow& flow) { X87Flow(info, flow).add(); }

}  // namespace citcat
