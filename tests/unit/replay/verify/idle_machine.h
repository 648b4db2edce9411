#pragma once
// A machine that stands at the beginning of a recording and never runs: for what looks at memory.

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "replay/session/replayer.h"

namespace citcat::test {

/// Memory from 1000h to 10ffh holds the numbers of its bytes, modulo 256; no more is defined.
class IdleMachine {
 public:
  IdleMachine() {
    recording_.initial.model = CpuModel::p6;
    recording_.initial.ram_bytes = 0x20000;
    for (std::uint32_t i = 0; i < 0x100; ++i) {
      recording_.image.set(PhysAddr{0x1000 + i}, static_cast<std::uint8_t>(i));
    }
  }
  /// To be changed before the machine is asked for.
  Recording& recording() { return recording_; }
  Machine& machine() {
    if (!replayer_) replayer_ = std::make_unique<Replayer>(recording_, nullptr, ReplayOptions{});
    return replayer_->machine();
  }
  Memory& memory() { return machine().memory(); }
  void store(std::uint32_t address, std::initializer_list<std::uint8_t> bytes) {
    memory().store(PhysAddr{address}, {bytes.begin(), bytes.size()});
  }

 private:
  Recording recording_;
  std::unique_ptr<Replayer> replayer_;
};

}  // namespace citcat::test
