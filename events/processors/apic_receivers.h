#pragma once
// Messages of the APIC bus, and which processors take them (Intel SDM vol. 3, 10.6).

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/processors/bus_note.h"

namespace citcat {

/// Registers of a local APIC: where they are, and some of them (Intel SDM vol. 3, table 10-1).
inline constexpr std::uint32_t kApicRegisters = 0xfee00000, kApicRegisterBytes = 0x1000;
inline constexpr std::uint32_t kApicCommand = 0x300, kApicCommandHigh = 0x310;

/// A message: four bytes, as in records of type 17 (docs/formats/capture.md).
struct ApicMessage {
  /// Delivery modes, and shorthands for the destination.
  enum Mode : std::uint8_t { kFixed = 0, kLowest = 1, kNmi = 4, kInit = 5, kStartup = 6 };
  enum Shorthand : std::uint8_t { kNone, kSelf, kAll, kAllButSelf };

  explicit ApicMessage(std::uint64_t data);
  /// That which the lower half of the command register (ICR) asks for; the destination is in the
  /// upper half.
  static ApicMessage of_command(std::uint32_t low);

  /// The message in the form that the constructor takes.
  std::uint64_t data() const {
    return vector | std::uint64_t{mode} << 8 | std::uint64_t{destination} << 16 |
           std::uint64_t{details} << 24;
  }
  bool is_logical() const { return (details & 1) != 0; }
  bool is_level() const { return (details & 2) != 0; }
  std::uint8_t shorthand() const { return details >> 4 & 3; }
  /// One of those that it goes to takes it.
  bool is_to_one_of_many() const { return mode == kLowest; }
  std::string text() const;

  std::uint8_t vector = 0, mode = 0, destination = 0, details = 0;
};

/// Which processors messages go to, as far as the registers show that they write.
class ApicReceivers {
 public:
  using Set = std::bitset<kMostProcessors>;
  struct Sets {
    Set may, sure;  ///< those that it may go to, and those among them that it goes to
  };

  /// `ids`: the IDs of the processors' local APICs.
  explicit ApicReceivers(std::vector<std::uint8_t> ids)
      : ids_(std::move(ids)), processors_(ids_.size()) {}

  /// A register, by its offset.
  void wrote(std::size_t processor, std::uint32_t offset, std::uint32_t value);
  /// INIT.
  void reset(std::size_t processor) { processors_[processor] = {}; }
  /// `knows_destination`: the message has it, or a shorthand in its place.
  Sets of(const ApicMessage& message, std::size_t sender, bool knows_destination = true) const;

 private:
  struct Processor {
    std::optional<std::uint8_t> logical_id;
    bool is_flat = false;
  };
  std::vector<std::uint8_t> ids_;
  std::vector<Processor> processors_;
};

}  // namespace citcat
