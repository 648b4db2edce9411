#pragma once
// Memory beyond 4 GiB. Captures, archives and the replay keep physical addresses in 32 bits, and no
// run uses more memory than that has room for. So a capture shows each page frame beyond 4 GiB that
// is used at another one below, at which the machine has nothing: its stand-in. A PhysAddr is
// always an address as held, with stand-ins; what page tables and CR3 hold, and what people and
// other programs are told, is a MachineAddr. docs/long-mode.md says where one becomes the other.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "events/address.h"

namespace citcat {

class StandIns {
 public:
  /// Address bits that a page and its stand-in have in common: what a cache of up to 16 MiB in each
  /// way takes its sets from is the machine's.
  static constexpr unsigned kCommonBits = 24;
  /// Frame numbers have 32 bits: 16 TiB.
  static constexpr std::uint64_t kEnd = std::uint64_t{1} << 44;

  /// From now on the page at `held` stands for the one at `machine`. Said again it changes nothing.
  /// Returns what is wrong with it, for people, or "".
  std::string add(PhysAddr held, MachineAddr machine);

  /// Where the byte is held: below 4 GiB where the machine has it, if nothing else is held there.
  /// Nullopt for a page that has no stand-in, and for one that is a stand-in.
  std::optional<PhysAddr> held(MachineAddr a) const;
  /// What the machine has at that address.
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
