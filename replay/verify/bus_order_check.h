#pragma once
// Compares a replay with a bus that shows every access, byte for byte in the order of each kind:
// addresses of data reads, addresses and values of writes, port accesses. It needs no counts and
// says exactly where the two diverge, so it measures how right a guess is. It skips reads of page
// directories and tables on the bus where the replay reads something else, because the processor's
// TLB need not be the replay's. No manual says in which order descriptor tables, task segments and
// interrupt frames are accessed.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "events/recording.h"
#include "replay/machine/block_judge.h"
#include "replay/machine/machine.h"

namespace citcat {

/// Ends the run at the first difference and at the end of the evidence.
class BusOrderCheck final : public BlockJudge {
 public:
  struct Byte {
    std::uint64_t transaction = 0;
    PhysAddr address;        ///< as captured, or the port
    std::uint8_t value = 0;  ///< 0 of reads, which the evidence does not keep
    bool operator==(const Byte&) const = default;
  };
  enum class Kind : std::uint8_t { read, write, port, fetch };
  struct Difference {
    Kind kind = Kind::read;
    Byte expected, found;
    bool operator==(const Difference&) const = default;
  };

  /// Compares up to the interrupt acknowledge number `interrupts` of the evidence.
  BusOrderCheck(std::unique_ptr<EvidenceReader> evidence, std::uint64_t interrupts)
      : evidence_(std::move(evidence)), interrupts_(interrupts) {}

  /// With this, an instruction that differs is completed before the run ends, reads of one
  /// instruction may come in any order, and code is compared too: only bytes run that the bus shows
  /// being fetched at about that time.
  void complete_instructions() { completes_ = true; }
  /// Then: the bytes that the bus shows being written in place of what the instruction in progress
  /// or just completed writes.
  const std::vector<Byte>& written() const { return written_; }

  const std::optional<Difference>& difference() const { return difference_; }
  /// Addresses of what the bus reads and writes next, at the first difference.
  const std::vector<PhysAddr>& next_accesses() const { return next_accesses_; }
  /// Bytes; of code transactions; of what is written, where instructions are completed, address and
  /// value.
  std::uint64_t agreed() const { return agreed_; }
  /// Whether the replay has made everything that the evidence shows.
  bool exhausted();
  /// The last transaction that the replay is known to have made.
  std::uint64_t last_agreed() const { return last_agreed_; }

  void judges(Machine& machine) override { machine_ = &machine; }
  bool judges_blocks() const override { return false; }
  Interest interest() const override { return Interest::everything(); }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void address_space(AddressSpaceId cr3, Position) override {
    tables_.emplace(cr3 / kPageSize, 0u);
  }
  void instruction(const ExecutedInstruction& e, Position now) override;

 private:
  std::deque<Byte>& queue(Kind kind) { return queues_[static_cast<std::size_t>(kind)]; }
  bool pull();
  void differ(const Difference& difference);
  bool fetched_lately(PhysAddr address) const;
  void compare(Kind kind, PhysAddr address, std::uint8_t value, bool in_any_order = false);
  void bring_forward(Kind kind, PhysAddr address);
  bool fill(Kind kind);
  bool is_table(const Byte& byte) const;
  unsigned level_of(FrameNumber page) const;
  void pass_over(const Byte& byte);
  void settle_reads();
  void compare_port(std::uint16_t port, std::uint32_t size, std::uint32_t value);

  std::unique_ptr<EvidenceReader> evidence_;
  std::uint64_t interrupts_;
  std::uint64_t acknowledged_ = 0;
  bool at_end_ = false;
  Machine* machine_ = nullptr;
  std::deque<Byte> queues_[3];
  struct Fetch {
    std::uint64_t transaction = 0;
    PhysAddr address;
    std::uint32_t size = 0;
  };
  std::deque<Fetch> fetches_, recent_fetches_;
  std::uint64_t last_agreed_ = 0;
  std::uint64_t agreed_ = 0;
  std::optional<Difference> difference_;
  /// Frames of page directories and tables, with their level where it is known, else 0.
  std::unordered_map<FrameNumber, unsigned> tables_;
  bool completes_ = false, ended_ = false;
  std::vector<Byte> written_;
  std::vector<PhysAddr> next_accesses_;
  std::uint64_t last_read_ = 0;  ///< the last transaction of those that the replay has read
};

}  // namespace citcat
