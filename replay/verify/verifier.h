#pragma once
// Checks a replay against everything the bus showed: each captured write in address, bytes and
// order, each port access, each special cycle, each write-back of a line, reads where they can be
// distinguished, the hardware's own instruction stream where pins gave one.
//
// The order must be that of the bus, with two freedoms: posted writes may pass port accesses, and
// bytes of one instruction may come in another order where the processor's own is not known; where
// a monitor counts instructions, in the same one each time.
//
// The verifier is the judge that the machine calls; the comparisons themselves are in Comparison
// and its matchers.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "replay/machine/block_judge.h"
#include "replay/session/replayer.h"
#include "replay/verify/block_comparison.h"
#include "replay/verify/comparison.h"

namespace citcat {

class Verifier final : public BlockJudge {
 public:
  Verifier(const Recording& recording, std::unique_ptr<EvidenceReader> evidence,
           const VerifierOptions& options);
  ~Verifier() override;

  // BlockJudge. Each throws ReplayStopped at the first disagreement.
  void judges(Machine& machine) override {
    comparison_.machine = &machine;
    if (comparison_.reads != nullptr) comparison_.reads->judges(machine);
  }
  bool judges_blocks() const override { return plain(); }
  Interest interest() const override {
    return {.reads = comparison_.reads != nullptr || comparison_.orders_reads};
  }
  Position expected() override { return blocks_.expected(); }
  bool expects_stores() const override { return !comparison_.write_back; }
  bool may_run_block(Position first, std::uint32_t count) override {
    return blocks_.may_run_block(first, count);
  }
  BatchRoom may_run_batch(Position first, std::uint32_t most) override {
    const std::uint32_t count = blocks_.may_run(first, most);
    return {count, blocks_.due_within(first, count)};
  }
  InstructionNumbers reads_of_interest(Position first) const override {
    return blocks_.reads_of_interest(first);
  }
  bool agrees(const JudgedBlock& block, Position first) override {
    return blocks_.agrees(block, first);
  }
  void agreed(const JudgedBlock& block, Position first) override { blocks_.agreed(block, first); }
  std::uint32_t agreed_iterations(const StringIterations& run, Position first) override {
    return blocks_.agreed_iterations(run, first);
  }
  void copied(PhysAddr from, PhysAddr to, std::uint32_t size) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void halted(Position now) override;
  void cache_flushed(bool write_back, Position now) override;
  void shutdown(Position now) override;

  /// After a complete replay: nothing captured before `end` may be left over. Throws ReplayStopped.
  void finish(Position end) { comparison_.end(end); }
  /// The same for what the replay reported: a divergence if there is something left over.
  ReplayReport finish(ReplayReport report);
  const VerifyTotals& totals() const { return comparison_.result.totals; }
  /// Whether only plain agreement is accepted, besides undefined flags in interrupt frames:
  /// anything that the full comparison would adopt or excuse is a divergence. A divergence must
  /// therefore be confirmed by a comparison without VerifierOptions::plain; agreement need not be.
  bool plain() const { return comparison_.plain; }
  /// From here on a plain comparison takes for right, and notes, what another one has to explain;
  /// `doubts` must outlive the verifier.
  void put_off(Doubts& doubts) { comparison_.doubts = &doubts; }
  /// Every byte taken over from the bus.
  const std::vector<Adoption>& adoptions() const { return comparison_.result.adoptions; }
  /// The comparison at an instruction boundary, to return to. Only for a verifier that does not
  /// compare final memory. The owner of the reader given to the constructor must take it back too.
  struct Checkpoint {
    ComparisonProgress progress;
    FinalMemoryCheck::Progress final_memory;
    std::size_t external_changes = 0;
    std::shared_ptr<const ReadMatcher::Checkpoint> reads;  ///< null where reads are not compared
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& checkpoint);
  /// Whether the comparison has places at which another one can begin (VerifierOptions::begin): a
  /// plain one may.
  bool has_places() const { return comparison_.has_places(); }
  /// The place where it is, at an instruction boundary.
  ComparisonPlace place() {
    follow_untold_flags();
    return comparison_.place();
  }
  /// At VerifierOptions::from, where the replay has been put and so many external writes were made
  /// before.
  void begin_part(std::size_t external_writes);
  /// At VerifierOptions::to: all that belongs before it is compared. Throws ReplayStopped where
  /// something is left.
  void end_part();
  /// At the end of the last part: compare_final() is then of what all parts were shown. False where
  /// that is not known, because the evidence goes on.
  bool end_last_part();
  /// What was found of the order of stores.
  const OrderOfStores& order_of_stores() const { return comparison_.stores_order; }
  /// For trials: other writes to believe from here on, and memory that the capture showed wrongly.
  void waive(std::vector<std::uint64_t> transactions) {
    comparison_.policy.waived = std::move(transactions);
  }
  void correct_memory(PhysAddr a, std::span<const std::uint8_t> bytes) {
    if (comparison_.reads != nullptr) comparison_.reads->correct(a, bytes);
  }
  /// To be called after memory was corrected here: write-backs that wait for their bytes are
  /// compared again.
  void memory_changed(PhysAddr a) {
    comparison_.check_window(window_of(comparison_.memory().captured(a)));
  }
  /// A write-back of this line is taken for right, whatever it shows.
  void forgive_line(PhysAddr a) { comparison_.lines.forgive(comparison_.memory().captured(a)); }
  /// The captured transaction that agreed last.
  std::uint64_t last_agreed() const { return comparison_.result.last_agreed; }

  /// The first captured write or port access that was read from the evidence and that the replay
  /// has not made; nullopt where it has made all of them.
  std::optional<std::uint64_t> first_missing() const;

  /// The run goes on beyond the end of the evidence: from now on anything that the bus would have
  /// shown ends it.
  void go_beyond() { comparison_.beyond = true; }

  /// Compares the machine's memory with what the writes on the bus leave (forms without
  /// write-back; empty otherwise), or with `captured`.
  FinalMemory compare_final(const MemoryImage* captured) const;

 private:
  struct Stored {
    std::uint8_t value = 0, undefined = 0;  ///< of one byte, and its bits that no manual defines
  };
  // Writes.
  void stored_in_cache(PhysAddr a, Stored byte, Position now);
  bool is_visible(PhysAddr a, Position now) const;
  void match_byte(PhysAddr a, Stored byte, Position now);
  void complete_stores(std::uint64_t identity, Position now);
  void check_windows(PhysAddr a, std::size_t size, Position now);
  std::uint64_t undefined_bits(std::span<const std::uint8_t> bytes);

  // Flags.
  void follow_untold_flags();
  std::optional<FlagImages::Image> note_image(PhysAddr a, std::span<const std::uint8_t> bytes);
  bool holds_specific_results() const;
  void note_specific_results(PhysAddr a, std::span<const std::uint8_t> bytes);

  void check_bit_change(PhysAddr a, const ExternalChange& change, Position now);
  bool repeats_again(const DecodedInstruction& info, Position now) const;
  void check_start(const ExecutedInstruction& e, Position now);
  void match_read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now);
  void match_port(const PortUse& use, Position now);
  bool begin_port(Position now);
  bool expect_port(bool begun);
  void check_special(BusOp op, Position now);

  Comparison comparison_;
  BlockComparison blocks_{comparison_};
};

}  // namespace citcat
