#pragma once
// Where a run meets breakpoints and watchpoints, found at the speed of blocks: a block that ran is
// examined as a whole, with everything that it read and stored, and nothing in it is judged.

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/machine/block_judge.h"
#include "replay/machine/machine.h"
#include "replay/machine/store_trap.h"
#include "replay/session/moment.h"

namespace citcat {

/// Bytes of physical memory that are watched, within one frame.
struct MemoryWatch {
  PhysAddr address;
  std::uint32_t size = 1;
  bool reads = false, writes = false;
  bool operator==(const MemoryWatch&) const = default;
};

struct StopSet {
  std::vector<LinearAddr> code;  ///< of first bytes of instructions, ascending
  std::vector<MemoryWatch> memory;
  bool empty() const { return code.empty() && memory.empty(); }
  /// Where nothing but stores within one frame is looked for: bytes that hold all that is watched.
  std::optional<MemoryWatch> only_stores() const;
};

/// One place where a run meets a StopSet.
struct StopHit {
  enum class Kind : std::uint8_t { code, read, write } kind = Kind::code;
  /// Before what meets it: the last place at or before this one where a replay can be. With
  /// `outside` strictly before it.
  Moment at;
  bool outside = false;  ///< another bus master wrote
  AccessKind access = AccessKind::data;
  LinearAddr code;   ///< of the instruction, or of the one interrupted
  PhysAddr address;  ///< of what was accessed, and its size
  std::uint32_t size = 0;
};

/// The judge of an uncompared run. At first it looks for nothing, which costs nothing.
class StopJudge final : public BlockJudge {
 public:
  /// A search from where the replay is.
  struct Search {
    const StopSet* stops = nullptr;  ///< must outlive it
    Moment from;        ///< where the replay is; code that is about to run there does not count
    bool last = false;  ///< find the last one, else the first
    Moment before{~std::uint64_t{0}, {}};  ///< nothing from here on counts
    /// Takes every access to watched memory, in the order of time; no code counts then.
    std::vector<StopHit>* all = nullptr;
  };
  void begin(const Search& search);
  /// Ends the search.
  std::optional<StopHit> end();
  /// Has the replay go on with nothing looked for but whether anything is stored to what is
  /// watched; null: no longer.
  void set_trap(const MemoryWatch* watched);
  /// Something was, or may have been, since the trap was set.
  bool trap_is_met() const { return trap_.met; }
  StoreTrap* store_trap() override { return &trap_; }
  /// Tells `observer`, which may be null, of deliveries, ports, other masters' writes, dropped
  /// translations, address spaces, HLT, the shutdown, and of the instructions that load EFLAGS,
  /// IRET and RSM among them; from position `from` on. `each`: of every instruction, fetch, read
  /// and store.
  void tell(Observer* observer, Position from, bool each) {
    observer_ = observer;
    told_from_ = from;
    tells_each_ = observer != nullptr && each;
  }

  /// While it is silent, the run is not reported, because it was reported before.
  void set_silent(bool on) { silent_ = on; }

  void judges(Machine& machine) override { machine_ = &machine; }
  bool judges_blocks() const override { return true; }
  Interest interest() const override { return {.reads = true}; }
  Position expected() override;
  bool expects_stores() const override { return false; }
  bool may_run_block(Position, std::uint32_t) override { return !tells_each(); }
  BatchRoom may_run_batch(Position, std::uint32_t most) override {
    return tells_each() ? BatchRoom{} : BatchRoom{most, most};
  }
  InstructionNumbers reads_of_interest(Position) const override {
    return watches_reads_ ? InstructionNumbers::all() : InstructionNumbers{};
  }
  void agreed(const JudgedBlock& block, Position first) override;
  std::uint32_t agreed_iterations(const StringIterations& run, Position first) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void translation_dropped(LinearAddr page, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;

 private:
  bool tells(Position now) const { return observer_ != nullptr && !silent_ && now >= told_from_; }
  bool tells_each() const { return tells_each_ && !silent_; }
  bool tells_each(Position now) const { return tells_each() && now >= told_from_; }
  bool looks() const {
    return search_.stops != nullptr && (!hit_ || search_.last || search_.all != nullptr);
  }
  bool counts(const StopHit& hit) const;
  void meet(const StopHit& hit) {
    if (!counts(hit)) return;
    if (search_.all != nullptr) search_.all->push_back(hit);
    hit_ = hit;
  }
  void access(StopHit::Kind kind, PhysAddr a, std::uint32_t size, AccessKind why, Moment at);
  void look_at_block(const JudgedBlock& block, Position first);
  template <class F>
  void for_each_in(const JudgedBlock& block, Position first, F&& consider);
  bool is_watched(StopHit::Kind kind, PhysAddr a, std::uint32_t size) const;
  LinearAddr next() const { return machine_->next_linear(); }
  Moment moment(Position now) const { return {deliveries_, now}; }

  Machine* machine_ = nullptr;
  StoreTrap trap_;
  Observer* observer_ = nullptr;
  Position told_from_;
  bool tells_each_ = false, silent_ = false;
  Search search_;
  bool watches_reads_ = false;
  std::uint64_t deliveries_ = 0;
  /// Before the delivery in progress.
  std::optional<Moment> delivering_;
  LinearAddr interrupted_;  ///< by it
  LinearAddr instruction_;  ///< fetched last
  std::optional<StopHit> hit_;
};

}  // namespace citcat
