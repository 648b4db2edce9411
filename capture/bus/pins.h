#pragma once
// Pins of a processor bus: what a decoder asks for by name, and how their levels are taken out of
// raw samples.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// A pin some bus decoder knows.
struct PinDescription {
  std::string name;     ///< as in the data sheet, without the mark of an active-low pin
  std::string aliases;  ///< other names in use, separated by blanks
  bool required = true;
  std::string cost;      ///< what is lost when a pin that is not required is missing
  int address_bit = -1;  ///< of an address line: which
};

/// Rows for a bus of pins `stem``first`..`stem``last`, e.g. A8..A19, lowest first. `address_bit` is
/// that of the first one, or -1.
void add_pins(std::vector<PinDescription>& pins, const std::string& stem, int first, int last,
              int address_bit, const std::string& alias_stem = "");

/// Where a pin's level is found in a sample.
struct PinChoice {
  int channel = -1;  ///< -1: not captured
  bool inverted = false;
};

/// Reads one pin, for decoders that look at a single pin in most samples.
class PinLevel {
 public:
  PinLevel() = default;
  explicit PinLevel(const PinChoice& pin) {
    if (pin.channel < 0) return;
    byte_ = static_cast<std::size_t>(pin.channel) / 8;
    bit_ = static_cast<std::uint8_t>(1U << pin.channel % 8);
    low_ = pin.inverted ? bit_ : std::uint8_t{0};
  }

  /// Its level; one that was not captured is low.
  bool operator()(const std::uint8_t* sample) const { return (sample[byte_] & bit_) != low_; }

 private:
  std::size_t byte_ = 0;
  std::uint8_t bit_ = 0, low_ = 0;  ///< of the sample's byte; what the bit is where the pin is low
};

/// Gathers up to 64 pins, in any order of channels, into a number: by one table look-up for each
/// byte of the sample that holds any of them.
class PinGather {
 public:
  PinGather() = default;
  /// Bit i of the result is the level of pins[i]; a pin that was not captured reads as 0.
  explicit PinGather(std::span<const PinChoice> pins) {
    for (std::size_t bit = 0; bit < pins.size(); ++bit) {
      if (pins[bit].channel < 0) continue;
      const auto channel = static_cast<std::size_t>(pins[bit].channel);
      Lookup& lookup = lookup_for(channel / 8);
      for (std::size_t value = 0; value < 256; ++value) {
        const bool level = ((value >> (channel % 8)) & 1) != 0;
        if (level != pins[bit].inverted) lookup.table[value] |= std::uint64_t{1} << bit;
      }
    }
  }

  /// The pins' levels in one sample. The sample must be as long as the source's unit.
  std::uint64_t operator()(const std::uint8_t* sample) const {
    std::uint64_t value = 0;
    for (const Lookup& lookup : lookups_) value |= lookup.table[sample[lookup.byte]];
    return value;
  }

 private:
  struct Lookup {
    std::size_t byte = 0;
    std::array<std::uint64_t, 256> table{};
  };

  Lookup& lookup_for(std::size_t byte) {
    for (Lookup& lookup : lookups_)
      if (lookup.byte == byte) return lookup;
    lookups_.push_back({byte, {}});
    return lookups_.back();
  }

  std::vector<Lookup> lookups_;
};

}  // namespace citcat
