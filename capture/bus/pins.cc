#include "capture/bus/pins.h"

#include "capture/bus/missing_lines.h"

namespace citcat {

void add_pins(std::vector<PinDescription>& pins, const std::string& stem, int first, int last,
              int address_bit, const std::string& alias_stem) {
  for (int i = first; i <= last; ++i) {
    PinDescription pin;
    pin.name = stem + std::to_string(i);
    if (!alias_stem.empty()) pin.aliases = alias_stem + std::to_string(i);
    pin.address_bit = address_bit < 0 ? -1 : address_bit + i - first;
    if (pin.address_bit >= 0) {
      pin.required = false;
      pin.cost = kAddressBitMissing;
    }
    pins.push_back(pin);
  }
}

}  // namespace citcat
