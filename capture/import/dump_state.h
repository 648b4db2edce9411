#pragma once
// The meaning of the words in a driver's state block, in both versions of its layout
// (driver-kmod/uapi/citcat_dump.h).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver-kmod/uapi/citcat_dump.h"
#include "events/machine/address.h"
#include "events/machine/cpu_state.h"
#include "events/machine/memory_image.h"

namespace citcat {

/// Which words hold the registers. A driver in a 64-bit kernel writes a block of version 1 and
/// another one beside it; a monitor that knows processors with long mode, one of version 2.
enum class DumpForm : std::uint8_t { narrow, narrow_and_wide, wide };

/// The places, in bytes, of the fields on which the length of a block depends.
struct DumpLayout {
  std::uint32_t version;
  std::uint32_t cpuid_count;

  std::uint32_t cpuid(std::uint32_t n) const { return cpuid_count + 4 + CITCAT_CPUID_BYTES * n; }
  std::uint32_t msr_count(std::uint32_t leaves) const { return cpuid(leaves); }
  std::uint32_t end(std::uint32_t leaves, std::uint32_t msrs) const {
    return msr_count(leaves) + 4 + CITCAT_MSR_BYTES * msrs;
  }
};

/// The layout of 64 bits for version 2, else the one of 32.
DumpLayout dump_layout(std::uint32_t version);

/// CPUID leaves and MSRs in a block.
struct DumpCounts {
  std::uint32_t leaves = 0, msrs = 0;
};

/// Takes words out of a window and keeps the names of those that are not there.
class DumpWords {
 public:
  /// `written`, which must outlive it, has what was written into the window at `base`.
  DumpWords(const MemoryImage& written, PhysAddr base) : written_(written), base_(base) {}

  /// The word at `offset`; `fallback` when it was never written, and `name` becomes unknown.
  std::uint32_t get(std::uint32_t offset, const std::string& name, std::uint32_t fallback = 0);
  std::vector<std::string> take_missing() { return std::move(missing_); }

 private:
  const MemoryImage& written_;
  PhysAddr base_;
  std::vector<std::string> missing_{};
};

/// Processor model of a CPUID family (leaf 1, EAX bits 8-11), unknown when there is no such leaf.
CpuModel cpu_model_of(const std::vector<CpuidLeaf>& leaves);

/// The state in a block of `counts` and of `form`, whose end word is at `end` if it is known. What
/// was not written, and what no block holds, is `unknown`; what is there and makes no sense is a
/// warning.
CpuState read_dump(DumpWords& in, const DumpLayout& layout, DumpForm form, DumpCounts counts,
                   std::optional<std::uint32_t> end, std::vector<std::string>& warnings);

}  // namespace citcat
