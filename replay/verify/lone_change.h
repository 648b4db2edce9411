#pragma once
// Other bus masters transfer sectors and packets; a wrongly captured bit of a read changes one byte
// among thousands that stay as they are. Both look the same to the derivation of external writes.

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "events/recording.h"

namespace citcat {

/// Says whether an external write is the only one near it.
class LoneChanges {
 public:
  /// `writes` must outlive the object. `ram_bytes`: of the machine, 0 if it is not known.
  explicit LoneChanges(const ExternalWrites& writes, std::uint32_t ram_bytes = 0)
      : writes_(writes), ram_bytes_(ram_bytes) {}

  /// Memory or ROM: not the video memory and adapters from A0000h to DFFFFh, whose reads need not
  /// return what was written, not after the RAM, where nothing keeps it, and not from 2 GiB to
  /// 4 GiB, where PCs have devices.
  bool is_memory(PhysAddr address) const;
  /// No external write of the recording, at any time, goes to another dword of the page frame of
  /// `address`, and that is memory.
  bool stands_alone(PhysAddr address);

 private:
  const ExternalWrites& writes_;
  std::uint32_t ram_bytes_;
  /// By page frame, the number of the only dword written, or a mark that there are several.
  std::optional<std::unordered_map<FrameNumber, std::uint64_t>> pages_;
};

}  // namespace citcat
