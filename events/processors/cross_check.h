#pragma once
// Checks that the processors of a machine agree with each other: every value that one of them took
// from outside was the last one that some processor, or a device, had written before it in the
// order of the bus. A recording of one processor alone cannot show that.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/processors/apic_messages.h"
#include "events/processors/bus_parts.h"
#include "events/processors/line_owners.h"
#include "events/processors/shared_bus.h"

namespace citcat {

/// Something that cannot have happened on one bus.
struct BusContradiction {
  std::uint8_t processor = 0;
  BusTransaction t;  ///< of that processor; of a note its index, position and address
  std::string reason, expected, found;
};

struct CrossCheckResult {
  std::uint64_t transactions = 0;  ///< of all processors
  std::uint64_t reads = 0;         ///< reads, fetches and fills of memory that were compared
  std::uint64_t from_others = 0;   ///< external writes that other processors are known to have made
  std::uint64_t from_devices = 0;  ///< that a device is known or taken to have made
  std::uint64_t unexplained = 0;   ///< that nobody made
  std::uint64_t invalidations = 0;  ///< lines made a processor's own without being read
  std::uint64_t contradictions = 0;
  std::optional<BusContradiction> first;
  bool clean() const { return contradictions == 0; }
};

class CrossCheck {
 public:
  /// `apic_ids`: one for each processor. `ram_bytes`: above this address there is no memory; 0: not
  /// known. `shows_sharing`: the bus shows HIT#, LOCK# and invalidations, which tell who had which
  /// line of `line_bytes`.
  CrossCheck(std::vector<std::uint8_t> apic_ids, std::uint32_t ram_bytes, bool shows_sharing,
             std::uint32_t line_bytes);

  void take(const SharedEvent& event);
  /// After the last event.
  void finish();
  const CrossCheckResult& result() const { return result_; }
  /// By processor: external writes that another processor made, by their ordinals, ascending.
  const std::vector<std::vector<std::size_t>>& from_others() const { return from_others_; }
  /// The same, and those among adapters and firmware, where devices may write too, that show what
  /// another processor wrote there last.
  const std::vector<std::vector<std::size_t>>& told_by_others() const { return told_by_others_; }
  /// Memory as the bus left it; nullopt of a device, and where nothing is known.
  std::optional<std::uint8_t> byte(PhysAddr a) const;
  /// See ApicMessages::unasked().
  std::optional<BusNote> unasked_message(std::size_t processor) const {
    return messages_.unasked(processor);
  }
  /// The processor that may hold another value of the byte in its cache.
  std::optional<std::uint8_t> owner(PhysAddr a) const { return owners_.owner(a); }

 private:
  /// Memory as the bus left it, and who did.
  struct Part {
    std::array<std::uint8_t, kBusPart> value{};
    std::array<std::uint8_t, kBusPart> writer{};  ///< kUnknown, kInitially, or of a processor
    std::array<std::uint64_t, kBusPart / 4> transaction{};  ///< of the writer, of each dword
  };
  /// An external write whose reads are going on.
  struct Pending {
    std::size_t ordinal = 0;
    bool contradicted = false, device = false;
    bool of_another = false;  ///< of a device: is_of_another()
    bool of_shown = false;    ///< a device wrote it that the capture shows
  };

  static std::uint32_t offset(PhysAddr a) { return a.offset_in(kBusPart); }
  Part& part(PhysAddr a) { return parts_.find_or_make(bus_part(a)); }
  const Part* known_part(PhysAddr a) const { return parts_.find(bus_part(a)); }
  void read(const SharedEvent& event);
  std::uint32_t first_other(const BusTransaction& t);
  bool is_of_another(const SharedEvent& event) const;
  bool is_of_shown_device(const SharedEvent& event) const;
  void write(std::uint8_t writer, PhysAddr address, std::span<const std::uint8_t> bytes,
             std::uint64_t transaction);
  void settle(std::uint8_t processor);
  std::string lock(std::uint8_t processor, const BusTransaction& t);
  void follow_messages(const SharedEvent& event);
  void flush(const SharedEvent& event);
  void check_count(const SharedEvent& event);
  void contradict(const SharedEvent& event, std::string reason, std::string expected,
                  std::string found);
  std::string who(const Part& part, std::uint32_t offset) const;

  std::uint32_t ram_bytes_;
  bool shows_sharing_;
  CrossCheckResult result_;
  LineOwners owners_;
  ApicMessages messages_;
  std::optional<std::uint8_t> locked_by_;  ///< who has read with LOCK# and not written all of it
  unsigned locked_reads_ = 0;              ///< that are still to be written
  BusParts<Part> parts_;
  std::vector<std::optional<Pending>> pending_;
  /// By processor: whether accesses to memory so far had counts, and the first one without.
  struct Counts {
    bool any = false;
    std::optional<SharedEvent> missing;
  };
  std::vector<Counts> counts_;
  std::vector<std::vector<std::size_t>> from_others_, told_by_others_;
};

/// Takes all of a bus.
CrossCheckResult check_shared_bus(SharedBus& bus, CrossCheck& check);

}  // namespace citcat
