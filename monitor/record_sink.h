#pragma once
// The bus records of a recording on their way out of the emulator. They go through a pipe to
// `citcat record`, which owns the file: whatever happens to the emulator, what was sent is kept.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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
  flush = 9,
  nmi = 10,
  stand_in = 15,
};
enum RecordFlag : std::uint8_t {
  kLineBurst = 1,
  kVictimWriteBack = 2,
  kUncached = 4,
  kSnoopWriteBack = 8,
  kDriver = 16,
  kFillForStore = 32,
};

/// Collects records and sends them in large blocks.
class RecordSink {
 public:
  /// Takes over two descriptors: records go to `data`, lines of text to `control`.
  RecordSink(int data, int control);

  /// Position that the following records carry.
  void set_position(std::uint64_t instructions, std::uint32_t iterations) {
    instructions_ = instructions;
    iterations_ = iterations;
  }

  /// One transfer; split where it crosses an aligned dword, as a 32-bit bus does.
  void single(RecordType type, std::uint32_t address, std::span<const std::uint8_t> bytes,
              unsigned flags);
  /// A port access of 1, 2 or 4 bytes; where it crosses an aligned dword it is two transfers, the
  /// upper one first (80386 Hardware Reference Manual, table 3-4; Embedded Intel486 Processor
  /// Hardware Reference Manual, table 4-7).
  void port(RecordType type, std::uint32_t port, std::uint32_t value, unsigned size);
  /// Half a line or a whole 16-byte one.
  void line_part(RecordType type, std::uint32_t address, std::span<const std::uint8_t> bytes,
                 unsigned flags, unsigned burst);
  /// An event without address: acknowledge (value is the vector), halt, flush.
  void event(RecordType type, std::uint8_t value, unsigned size, unsigned flags = 0);

  /// The page of the machine is shown at `held` from now on.
  void stand_in(std::uint32_t held, std::uint64_t machine);

  /// Sends a line of text at once; records made before it have been sent by then.
  void say(std::string_view line);
  void flush();

  std::uint64_t records() const { return records_; }
  /// The reader is gone: nothing more can be kept.
  bool failed() const { return failed_; }

 private:
  void put(RecordType type, std::uint32_t address, std::span<const std::uint8_t> bytes,
           unsigned flags, unsigned burst, unsigned clocks);
  void send(int descriptor, std::span<const std::uint8_t> bytes);

  int data_, control_;
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  std::uint64_t instructions_ = 0;
  std::uint32_t iterations_ = 0;
  std::uint64_t bus_clocks_ = 0;
  std::uint64_t records_ = 0;
  bool failed_ = false;
};

}  // namespace citcat::monitor
