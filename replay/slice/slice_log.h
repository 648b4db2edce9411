#pragma once
// A stretch of a run, written down so that one can go through it backwards: what ran, which memory
// it touched, what came from outside.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"
#include "x86/flow/value_flow.h"

namespace citcat {

/// An access to memory, within one page frame.
struct LoggedAccess {
  LinearAddr linear;  ///< 0 where that is not known
  PhysAddr physical;
  std::uint16_t size = 0;
  std::uint16_t instruction = 0;  ///< number in the piece of code
  AccessKind kind = AccessKind::data;
  bool write = false;
};

/// An instruction at its place.
struct LoggedCode {
  DecodedInstruction info;
  LinearAddr linear;
  PhysAddr physical;
};

/// Instructions that ran one after the other; each of their executions is one entry.
class CodePiece {
 public:
  std::vector<LoggedCode> code;

  /// What instruction `i` makes of what. Found out when it is first asked for.
  const ValueFlow& flow(std::size_t i) const;
  /// All that any of it writes in registers.
  const PlaceSet& written() const;
  bool branches() const;
  /// A far transfer is in it, which may change more than its flow says (far_flow.h).
  bool transfers_far() const;

 private:
  void look() const;
  mutable std::vector<std::unique_ptr<ValueFlow>> flows_;
  mutable PlaceSet written_;
  mutable bool looked_at_ = false, branches_ = false, transfers_far_ = false;
};

/// What was read from a port.
struct LoggedPortRead {
  std::uint16_t port = 0;
  std::uint32_t size = 0, value = 0;
  std::size_t number = 0;  ///< of the last transfer of it, among the recording's
};

struct LoggedDelivery {
  DeliveredEvent event;
  LinearAddr linear;  ///< of the instruction that was interrupted
};

struct LogEntry {
  enum class Kind : std::uint8_t {
    code,        ///< all of a piece, once
    iterations,  ///< of a repeated string, `count` of them
    delivery,    ///< of an interrupt or exception
    external,    ///< another bus master's write
    unfinished,  ///< what an instruction stored that was left
  } kind = Kind::code;
  Position first;
  std::uint32_t piece = 0;  ///< of code; of a delivery, the number of its event
  std::uint32_t count = 1;  ///< iterations; bytes of another master's write
  std::uint32_t step = 0;   ///< of the addresses, from one iteration to the next
  std::uint32_t accesses = 0, access_count = 0;  ///< in SliceLog::accesses()
  std::uint32_t ports = 0, port_count = 0;       ///< in SliceLog::ports()
  std::uint64_t number = 0;  ///< of another master's write, among the recording's
};

/// The observer that writes it. It receives everything and keeps what runs between begin() and
/// end().
class SliceLog final : public Observer {
 public:
  /// How many reads of ports, and how many writes of other masters, the replay has used.
  struct Used {
    std::size_t port_reads = 0, external_writes = 0;
  };
  explicit SliceLog(std::function<Used()> used) : used_(std::move(used)) {}

  /// What is run until begin() does not matter up to there.
  void skip_to(std::uint64_t instruction) { skip_to_ = instruction; }
  void begin();
  void end();

  std::span<const LogEntry> entries() const { return entries_; }
  std::span<const LoggedAccess> accesses(const LogEntry& e) const {
    return std::span(accesses_).subspan(e.accesses, e.access_count);
  }
  std::span<const LoggedPortRead> ports(const LogEntry& e) const {
    return std::span(ports_).subspan(e.ports, e.port_count);
  }
  const CodePiece& piece(const LogEntry& e) const { return pieces_[e.piece]; }
  const LoggedDelivery& event(const LogEntry& e) const { return events_[e.piece]; }

  Interest interest() const override { return {.code = Detail::references}; }
  void watch(const Machine& machine) override { machine_ = &machine; }
  Interest interest_from(std::uint64_t instruction) override;
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void instruction(const ExecutedInstruction& e, Position now) override {
    iterations(e, 1, 0, now);
  }
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;

 private:
  void log_block(const ExecutedBlock& block, Position first);
  LogEntry& add(LogEntry::Kind kind, Position first);
  void add_access(PhysAddr a, std::uint32_t size, AccessKind kind, bool write);
  void take_pending(LogEntry& entry);
  void flush_others();
  void drop_begun();
  std::uint32_t piece_of(const ExecutedBlock& block);
  std::uint32_t piece_of(const ExecutedInstruction& e);
  std::uint32_t find_piece(CodePiece&& piece);

  std::function<Used()> used_;
  const Machine* machine_ = nullptr;
  bool on_ = false;
  std::uint64_t skip_to_ = 0;
  std::vector<LogEntry> entries_;
  std::vector<LoggedAccess> accesses_;
  std::vector<LoggedPortRead> ports_;
  std::vector<LoggedDelivery> events_;
  std::deque<CodePiece> pieces_;  ///< of all stretches: each is kept once
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_;  ///< by place and bytes

  std::vector<LoggedAccess> pending_;  ///< reported, and of no instruction that completed yet
  std::vector<LoggedPortRead> pending_ports_;
  bool begun_ = false;  ///< an instruction was fetched: it is what they are of
  std::optional<LoggedDelivery> delivering_;
  Position delivering_at_;
  std::optional<LoggedDelivery> software_;  ///< of an INT that has not completed yet
};

}  // namespace citcat
