#pragma once
// The driver's window in RAM: the state that it has dumped there, and its stop marker.

#include <cstdint>
#include <span>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/processor/insn.h"

namespace citcat::monitor {

class DriverWindow {
 public:
  /// `base`: 0 for none.
  void open(std::uint32_t base) { base_ = base; }
  bool is_open() const { return base_ != 0; }
  std::uint32_t base() const { return base_; }
  void note_store(std::uint64_t physical, std::span<const std::uint8_t> value) {
    if (base_ != 0 && physical == base_ + CITCAT_MARK_OFFSET && value.size() == 4 &&
        dword_of(value) == CITCAT_MARK_STOP)
      stop_marker_ = true;
  }
  /// The driver has stored its stop marker.
  bool stop_marker_seen() const { return stop_marker_; }

 private:
  std::uint32_t base_ = 0;
  bool stop_marker_ = false;
};

}  // namespace citcat::monitor
