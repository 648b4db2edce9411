#pragma once
// A few instructions on an 8088, what its bus shows of them, and the recording made of that.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "capture/import/import.h"
#include "events/on_chip_marker.h"
#include "events/recording.h"

namespace citcat::test {

/// Code at 0100:0000, a handler for vector 8 at 0050:0000, one for NMI at 0054:0000, a stack at
/// 2000:0100, data at 3000:0000.
class WatchedGuest {
 public:
  WatchedGuest();

  void code(std::initializer_list<int> bytes) { put(0x1000, bytes); }
  void handler(std::initializer_list<int> bytes) { put(0x500, bytes); }
  void put(std::uint32_t address, std::initializer_list<int> bytes);
  void set(const char* name, std::uint32_t value);
  void processor(CpuModel model) { state_.model = model; }
  /// Acknowledged by the processor at this position.
  void interrupt_at(Position position) { add(Interrupt::Kind::external, 8, position); }
  /// Its pin rises so many transactions before the processor takes it at this position.
  void nmi_at(Position position, std::size_t earlier = 0) {
    add(Interrupt::Kind::nmi, 2, position);
    nmi_earlier_ = earlier;
  }
  /// The monitor names its entry to system management mode, at 3000:8000.
  void smi_at(Position position) { add(Interrupt::Kind::smi, 0, position); }
  /// An interrupt of a device on the chip: not acknowledged on the bus.
  void on_chip_at(Position position, std::uint8_t vector = 8) {
    add(Interrupt::Kind::on_chip, vector, position);
  }
  /// What the RDTSC of this instruction gives.
  void internal_value(Position position, std::uint64_t value);
  /// What the next access to a port reads, whole; the bus shows its bytes.
  void port_read(std::uint16_t port, std::uint8_t size, std::uint32_t value);
  /// What shows these, as parse_on_chip_marker() reads it.
  void marker(const char* text) { markers_.push_back(parse_on_chip_marker(text)); }

  /// Runs `instructions` and records what the bus shows: data reads, writes, port accesses and
  /// acknowledges, in their order; no counts.
  ImportedRecording record(std::uint64_t instructions) const;
  const std::vector<Position>& positions() const { return positions_; }

 private:
  CpuState state_;
  MemoryImage image_;
  void add(Interrupt::Kind kind, std::uint8_t vector, Position position);

  std::vector<Position> positions_;
  std::vector<Interrupt> interrupts_;
  std::vector<InternalRead> internal_reads_;
  std::vector<IoRead> io_reads_;
  std::vector<OnChipMarker> markers_;
  std::size_t nmi_earlier_ = 0;
};

}  // namespace citcat::test
