// Handlers that work on registers alone.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

void add_registers(HandlerTable& t) {
  for_each_number<4>([&](auto size) {
    add_arithmetic_registers<size>(t);
    add_exchange_registers<size>(t);
  });
  for_each_number<3>([&](auto i) { add_bit_registers_of<i + 1>(t); });
  add_bit_registers(t);
  add_vector_registers(t);
  t[kNothing].in_registers[0] = nothing;
}

}  // namespace citcat::fast
