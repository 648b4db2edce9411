#pragma once
// A few instructions on an 8088, what its bus shows of them, and the recording made of that.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "capture/import.h"
#include "events/recording.h"

namespace citcat::test {

/// Code at 0100:0000, a handler for vector 8 at 0050:0000, a stack at 2000:0100, data at 3000:0000.
class WatchedGuest {
 public:
  WatchedGuest();

  void code(std::initializer_list<int> bytes) { put(0x1000, bytes); }
  void handler(std::initializer_list<int> bytes) { put(0x500, bytes); }
  void put(std::uint32_t address, std::initializer_list<int> bytes);
  void set(const char* name, std::uint32_t value);
  /// Acknowledged by the processor at this position.
  void interrupt_at(Position position) { positions_.push_back(position); }

  /// Runs `instructions` and records what the bus shows: data reads, writes and acknowledges, in
  /// their order; no counts.
  ImportedRecording record(std::uint64_t instructions) const;
  const std::vector<Position>& positions() const { return positions_; }

 private:
  CpuState state_;
  MemoryImage image_;
  std::vector<Position> positions_;
};

}  // namespace citcat::test
