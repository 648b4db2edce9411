#pragma once
// Compares a replay with a bus that shows every access, byte for byte in the order of each kind:
// addresses of data reads, addresses and values of writes, port accesses. It needs no counts and
// says exactly where the two part, which makes it a measure of how right a guess is.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "events/recording.h"
#include "replay/machine.h"
#include "replay/observer.h"

namespace citcat {

/// Ends the run (EvidenceEnd) at the first difference, and where the evidence ends.
class BusOrderCheck final : public Sink {
 public:
  struct Byte {
    std::uint64_t transaction = 0;
    std::uint32_t address = 0;  ///< as captured
    std::uint8_t value = 0;     ///< 0 of reads, which the evidence does not keep
    bool operator==(const Byte&) const = default;
  };
  enum class Kind : std::uint8_t { read, write, port };
  struct Difference {
    Kind kind = Kind::read;
    Byte expected, found;
    bool operator==(const Difference&) const = default;
  };

  /// Compares up to the interrupt acknowledge number `interrupts` of the evidence.
  BusOrderCheck(std::unique_ptr<EvidenceReader> evidence, std::uint64_t interrupts)
      : evidence_(std::move(evidence)), interrupts_(interrupts) {}
  void attach(Machine& machine) { machine_ = &machine; }

  const std::optional<Difference>& difference() const { return difference_; }
  std::uint64_t agreed() const { return agreed_; }  ///< bytes

  bool wants_reads() const override { return true; }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;

 private:
  std::deque<Byte>& queue(Kind kind) { return queues_[static_cast<std::size_t>(kind)]; }
  bool pull();
  void compare(Kind kind, std::uint32_t address, std::uint8_t value);

  std::unique_ptr<EvidenceReader> evidence_;
  std::uint64_t interrupts_;
  std::uint64_t acknowledged_ = 0;
  bool at_end_ = false;
  Machine* machine_ = nullptr;
  std::deque<Byte> queues_[3];
  std::uint64_t agreed_ = 0;
  std::optional<Difference> difference_;
};

}  // namespace citcat
