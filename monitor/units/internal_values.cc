#include "monitor/units/internal_values.h"

#include <cstdio>

namespace citcat::monitor {

void InternalValues::say(const char* op) {
  const auto low = [this](unsigned n) {
    return static_cast<std::uint32_t>(seen_.flight.gpr_after(n, seen_.cpu.registers));
  };
  say_values(op, {low(0), low(3), low(1), low(2)});
}

void InternalValues::say_random(const char* op) {
  const InsnClass& what = seen_.flight.insn->what;
  const std::uint64_t number = seen_.flight.gpr_after(what.destination, seen_.cpu.registers) &
                               address_mask(what.operand_bytes);
  say_values(op,
             {static_cast<std::uint32_t>(number), 0, 1, static_cast<std::uint32_t>(number >> 32)});
}

void InternalValues::say_values(const char* op, std::array<std::uint32_t, 4> values) {
  char text[128];
  const Flight& flight = seen_.flight;
  const bool wide = flight.insn->code == CodeSize::bits64;
  const std::uint64_t ip = flight.insn->narrowed(flight.linear - (wide ? 0 : seen_.code.base()));
  char its[16] = "value";
  if (seen_.cpu.several) std::snprintf(its, sizeof its, "value-of %u", seen_.cpu.number);
  std::snprintf(text, sizeof text, "%s %llu,%s,%0*llx,%08x,%08x,%08x,%08x", its,
                static_cast<unsigned long long>(flight.completed), op, wide ? 16 : 8,
                static_cast<unsigned long long>(ip), values[0], values[1], values[2], values[3]);
  seen_.cpu.sink.say(text);
}

}  // namespace citcat::monitor
