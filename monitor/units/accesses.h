#pragma once
// Data accesses: what a processor shows where the emulator makes different ones.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "monitor/processor/observation.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class Accesses {
 public:
  Accesses(Observation& seen, Units& units)
      : seen_(seen), cpu_(seen.cpu), flight_(seen.flight), units_(units) {}

  /// An instruction has read or written memory, at an address of the machine.
  void make(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address, bool device,
            std::span<const std::uint8_t> value);
  /// CMPS faults at ES:[EDI]: what it has read by then.
  void read_first_string(const LoggedState& state);

 private:
  struct StringRead {
    std::uint64_t linear = 0;
    PhysicalAddress physical = 0;
    bool device = false;
    std::size_t size = 0;
    std::array<std::uint8_t, 16> bytes{};
  };
  /// One access as it was made, or as far as a processor makes it.
  struct Access {
    bool store;
    std::uint64_t linear;
    PhysicalAddress physical;
    bool device;
    std::span<const std::uint8_t> value;
  };
  void make_plainly(const Insn& insn, Access access);
  void make_otherwise(const Insn& insn, Access access);
  bool take_for_x87(const Insn& insn, Access& access);
  void compare_strings(const StringRead& read);
  void show(const StringRead& read);
  void show_part(bool store, PhysicalAddress physical, bool device,
                 std::span<const std::uint8_t> bytes);
  bool reads_permission(const Insn& insn, std::uint64_t linear);
  void transfer(const Access& access);
  std::span<const std::uint8_t> as_moved(const Insn& insn, const Access& access);
  std::span<const std::uint8_t> as_pushed(const Access& access);
  std::span<const std::uint8_t> may_update(const Insn& insn, const Access& access);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Flight& flight_;
  Units& units_;
  StringRead held_back_;  ///< of the iteration of CMPS in progress
};

}  // namespace citcat::monitor
