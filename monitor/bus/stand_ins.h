#pragma once
// Pages beyond 4 GiB. Records have addresses of 32 bits. So each used page beyond that is shown at
// a page below, where the machine has nothing; a STANDIN record says so first
// (docs/formats/capture.md). Everything else in the monitor knows these addresses only.

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "monitor/bus/guest_memory.h"
#include "monitor/bus/record_sink.h"

namespace citcat::monitor {

class StandIns {
 public:
  StandIns(GuestMemory& memory, RecordSink& sink) : memory_(memory), sink_(sink) {}

  /// What a machine's physical address is shown as: itself below 4 GiB, and otherwise in a page
  /// that may be given out now. Nullopt where that is not possible: see problem().
  std::optional<std::uint32_t> shown(std::uint64_t machine) {
    // Mostly nothing is shown elsewhere.
    if (machine < k4GiB && taken_.empty()) return static_cast<std::uint32_t>(machine);
    return shown_or_given(machine);
  }
  /// Whether anything is shown elsewhere.
  bool any() const { return !taken_.empty(); }
  /// Why something could not be shown; nullptr as long as everything could.
  const char* problem() const { return problem_; }

 private:
  std::optional<std::uint32_t> shown_or_given(std::uint64_t machine);
  std::optional<std::uint32_t> give_out(std::uint64_t frame);
  void find_room();

  /// A page is shown where the lower 24 address bits are its own. Pages that have these in common
  /// are shown in one room after the other.
  static constexpr unsigned kCommonFrameBits = 12;
  static constexpr std::uint64_t k4GiB = std::uint64_t{1} << 32;

  GuestMemory& memory_;
  RecordSink& sink_;
  std::vector<std::uint32_t> rooms_;  ///< of 16 MiB each: frame numbers
  std::array<std::uint16_t, 1u << kCommonFrameBits> given_{};
  std::unordered_map<std::uint64_t, std::uint32_t> frames_;  ///< by those of the machine
  std::vector<bool> taken_;                                  ///< frames below 4 GiB
  const char* problem_ = nullptr;
};

}  // namespace citcat::monitor
