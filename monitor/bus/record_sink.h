#pragma once
// The bus records of a recording on their way out of the emulator. They go through a pipe to
// `citcat record`, which owns the file: if the emulator crashes, what it has sent is kept.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "monitor/bus/record_packer.h"

namespace citcat::monitor {

/// Types and flags of docs/formats/capture.md.
enum class RecordType : std::uint8_t {
  code_read = 1,
  data_read = 2,
  data_write = 3,
  io_read = 4,
  io_write = 5,
  interrupt_acknowledge = 6,
  halt = 7,
  shutdown = 8,
  flush = 9,
  nmi = 10,
  reset = 11,
  smi = 12,
  // With several processors.
  local_interrupt = 16,
  message = 17,
  init = 18,
  startup = 19,
  invalidate = 20,
  reached = 21,
  high = 22,
};
enum RecordFlag : std::uint8_t {
  kLineBurst = 1,
  kVictimWriteBack = 2,
  kUncached = 4,
  kSnoopWriteBack = 8,
  kDriver = 16,
  kFillForStore = 32,
  kSharedFill = 64,  ///< of several processors: HIT#
  kLock = 128,       ///< of several processors: LOCK#
};

/// Who drives a record, of several processors: one of them, or another bus master.
inline constexpr unsigned kMostProcessors = 14, kOtherMaster = 14;

/// Collects records and sends them in large blocks.
class RecordSink {
 public:
  /// Takes over two descriptors: records go to `data`, lines of text to `control`. `packs`: records
  /// go in chunks of RecordPacker; several processors have none that do.
  RecordSink(int data, int control, bool packs = false);

  /// From now on records name the processor that drives them, and their clock is that of all.
  void show_processors() { several_ = true; }
  bool shows_processors() const { return several_; }
  /// The one that drives the following records.
  void select(unsigned processor) { driver_ = processor; }
  unsigned selected() const { return driver_; }
  /// Position that the following records of the selected processor carry.
  void set_position(std::uint64_t instructions, std::uint32_t iterations) {
    positions_[driver_].instructions = instructions;
    positions_[driver_].iterations = iterations;
  }
  /// With several processors: advances the clock by what the selected one has done, shown or not.
  void pass_time();

  /// One transfer; split where it crosses an aligned dword, as a 32-bit bus does.
  void single(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
              unsigned flags) {
    if ((address & 3) + bytes.size() <= 4 && !bytes.empty()) [[likely]]
      put(type, address, bytes, flags, 0, kClocksSingle);
    else
      split(type, address, bytes, flags);
  }
  /// A port access of 1, 2 or 4 bytes; where it crosses an aligned dword it is two transfers, the
  /// upper one first (80386 Hardware Reference Manual, table 3-4; Embedded Intel486 Processor
  /// Hardware Reference Manual, table 4-7).
  void port(RecordType type, std::uint32_t port, std::uint32_t value, unsigned size);
  /// Half a line or a whole 16-byte one.
  void line_part(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
                 unsigned flags, unsigned burst);
  /// An event without address: acknowledge (value is the vector), halt, flush.
  void event(RecordType type, std::uint8_t value, unsigned size, unsigned flags = 0);

  /// The selected processor accepts an interrupt from its local APIC (0 fixed, 4 NMI).
  void local_interrupt(std::uint8_t vector, std::uint8_t mode);
  /// It sends a message to others: vector, delivery mode, destination, details.
  void message(std::uint32_t message);
  /// A line that it shares becomes its own.
  void invalidate(std::uint64_t line, unsigned flags) {
    put(RecordType::invalidate, line, {}, flags, 0, kClocksSingle);
  }

  /// The recording ends at the selected processor's position.
  void reached() { put(RecordType::reached, 0, {}, 0, 0, 0); }

  /// The emulator, and no processor, has stored this byte, which the instruction at the present
  /// position reads.
  void say_left(std::uint64_t machine, std::uint8_t value);
  /// The selected processor must have dropped its translation of the page at this linear address
  /// before the instruction, or the iteration, at its present position.
  void say_dropped(std::uint64_t page);
  /// Sends a line of text at once; records made before it have been sent by then.
  void say(std::string_view line);
  void flush();

  std::uint64_t records() const { return records_; }
  /// The reader is gone: nothing more can be kept.
  bool failed() const { return failed_; }

 private:
  // Synthetic bus clocks, as in the captures of docs/formats/capture.md.
  static constexpr unsigned kClocksSingle = 2, kClocksHalfLine = 5;

  struct Position {
    std::uint64_t instructions = 0;
    std::uint32_t iterations = 0;
    std::uint64_t told = 0;  ///< what the clock of all has gone on by
  };

  std::uint64_t clock();
  void say_upper_half(std::uint32_t upper);
  [[gnu::always_inline]] void pack(const RecordFields& record,
                                   std::span<const std::uint8_t> bytes) {
    while (!packer_->put(record, bytes)) [[unlikely]] flush();
    ++records_;
  }
  using Record = std::array<std::uint64_t, 5>;
  void store_record(const Record& record);
  void put(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
           unsigned flags, unsigned burst, unsigned clocks);
  void put_whole(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
                 unsigned flags, unsigned burst);
  void split(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
             unsigned flags);
  void send(int descriptor, std::span<const std::uint8_t> bytes);

  int data_, control_;
  std::optional<RecordPacker> packer_;
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  std::array<Position, kOtherMaster + 1> positions_{};
  unsigned driver_ = 0;
  bool several_ = false;
  std::uint64_t passed_ = 0;  ///< of several processors: what all of them have done
  std::uint64_t bus_clocks_ = 0;
  std::uint32_t upper_ = 0;  ///< half of the addresses of the records that follow
  std::uint64_t records_ = 0;
  bool failed_ = false;
};

}  // namespace citcat::monitor
