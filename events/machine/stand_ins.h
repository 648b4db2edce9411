#pragma once
// Memory beyond 4 GiB. Captures, archives and the replay keep physical addresses in 32 bits, which
// is enough for all memory that a run uses. A capture therefore shows each used page frame beyond 4
// GiB at another page frame below 4 GiB that the machine does not have: its stand-in. A PhysAddr is
// always the address of the stand-in; page tables, CR3 and all output contain a MachineAddr.
// docs/long-mode.md says where one is converted to the other.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/machine/address.h"

namespace citcat {

class StandIns {
 public:
  /// The number of low address bits that a page and its stand-in have in common. A cache with ways
  /// of up to 16 MiB chooses its sets by these bits, so it behaves as in the machine.
  static constexpr unsigned kCommonBits = 24;
  /// The end of addresses whose frame numbers have 32 bits: 16 TiB.
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << 44;

  /// From now on the page at `held` stands for the one at `machine`; a repetition changes nothing.
  /// Returns an error for people, or "".
  std::string add(PhysAddr held, MachineAddr machine);

  /// The address at which the byte is held: its own below 4 GiB, else that of the stand-in. Nullopt
  /// for a page beyond 4 GiB without a stand-in, and for a page that is itself a stand-in.
  std::optional<PhysAddr> held(MachineAddr a) const;
  /// The address in the machine of the byte that is held there.
  MachineAddr machine(PhysAddr held) const;
  bool is_stand_in(PhysAddr held) const { return machine_frames_.count(held.page()) != 0; }

  struct Page {
    PhysAddr held;
    MachineAddr machine;
  };
  /// All, in the order in which they were added.
  const std::vector<Page>& pages() const { return pages_; }

 private:
  std::vector<Page> pages_;
  std::unordered_map<PhysAddr::PageNumber, MachineAddr::PageNumber> machine_frames_;
  std::unordered_map<MachineAddr::PageNumber, PhysAddr::PageNumber> stand_ins_;
};

}  // namespace citcat
