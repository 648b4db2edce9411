#pragma once
// Writes what a replay does as KT.

#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "replay/machine/block_template.h"
#include "replay/machine/observer.h"
#include "replay/trace/address_space_records.h"
#include "replay/trace/kt_image.h"

namespace citcat {

struct KtOptions {
  std::uint64_t from = 0;                ///< first instruction position written
  std::uint64_t to = ~std::uint64_t{0};  ///< first one not written
  std::uint32_t from_iteration = 0;      ///< of a REP, the same
  std::uint32_t to_iteration = 0;
  bool offsets = false;            ///< offsets in CS instead of linear addresses
  bool process_records = false;    ///< PID and MMU records (docs/formats/kt.md)
  bool zero_count_repeats = true;  ///< a REP that did nothing gets a record with E = 0
};

/// The address that KT gives an instruction.
inline std::uint32_t kt_address(const ExecutedInstruction& e, const KtOptions& options) {
  return options.offsets ? e.eip : e.linear.low32();
}
/// An executed instruction as KT has it.
KtInstruction kt_instruction(const ExecutedInstruction& e, const KtOptions& options);
/// Default size of the code segment that the instruction was executed in.
inline std::uint8_t code_bits(const DecodedInstruction& info) {
  return (info.address_bits == 32) != info.address_prefix ? 32 : 16;
}

/// How a trace notes an event of that kind.
KtNote::Kind note_kind(DeliveredEvent::Kind kind);

/// Which part of the run is told. Positions do not only grow: an interrupt within a REP is taken
/// at N+K, and its handler begins at N. What follows the first place of a part belongs to it.
class TraceRange {
 public:
  TraceRange() = default;
  TraceRange(Position from, Position to) : from_(from), to_(to) {}
  /// Whether what is told at `now` belongs to the part; to be asked in program order.
  bool has(Position now) {
    if (!begun_) begun_ = now >= from_;
    if (begun_ && !ended_) ended_ = now >= to_;
    return begun_ && !ended_;
  }
  bool begun() const { return begun_; }
  Position from() const { return from_; }
  Position to() const { return to_; }

 private:
  Position from_, to_{std::numeric_limits<std::uint64_t>::max(), 0};
  bool begun_ = false, ended_ = false;
};

/// Writes the instruction stream of a replay as KT, and notes where the writer keeps them.
class KtSink final : public Sink {
 public:
  KtSink(KtWriter& writer, const KtOptions& options);

  /// The machine of the replay: with process records the trace then begins with what
  /// address_space_records() gives. Not for one that goes on from another trace.
  void attach(const Machine& machine) { machine_ = &machine; }

  Detail detail() const override {
    return options_.process_records ? Detail::accesses : Detail::instructions;
  }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void block(const ExecutedBlock& block, Position first) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr at, std::span<const std::uint8_t> bytes, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;
  void address_space(std::uint32_t cr3, Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;
  /// From now on these are written, in place of what the options said. `begins`: the trace does so
  /// there; else it goes on.
  void set_range(Position from, Position to, bool begins);
  /// The replay is over with so many instructions completed: notes whether a REP that was told last
  /// is one of them.
  void end(std::uint64_t completed);

 private:
  KtTemplate record(const ExecutedInstruction& e) const {
    return {kt_address(e, options_), {e.info->bytes.data(), e.info->length}, e.ea_count};
  }
  bool wanted(Position now);
  bool wanted(const BlockTemplate& block, Position first) const {
    return first.instruction >= blocks_from_ && first.instruction + block.count() <= blocks_to_;
  }
  /// BlockTemplate::read_by_sink is a KtImage of this sink's.
  bool has_image(const BlockTemplate& block) const { return block.reader == id_; }
  void write_image(const ExecutedBlock& block) {
    const auto& image = *static_cast<const KtImage*>(block.code->read_by_sink);
    std::uint8_t* const out = writer_.next();
    writer_.commit(image.size(), block.count());
    image.write(out, *block.registers);
  }
  void block_with_care(const ExecutedBlock& block, Position first);
  bool make_image(const BlockTemplate& block);
  void begin();
  void look_before(const DecodedInstruction& info, std::uint32_t eip, unsigned addresses,
                   Position now);
  void look_after(const DecodedInstruction& info, std::uint32_t eip, unsigned addresses,
                  Position now);
  void look_at_next() {
    look_ = true;
    blocks_from_ = kNone;
  }
  void make_room(Position now);
  void note(KtNote::Kind kind, Position now, std::uint32_t where = 0, std::uint32_t size = 0,
            std::uint32_t value = 0);

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  KtWriter& writer_;
  KtOptions options_;
  TraceRange range_;
  const Machine* machine_ = nullptr;
  bool notes_;  ///< are kept
  bool preamble_due_ = true;
  /// Blocks from here to there are written without a closer look; kNone while the next record is to
  /// be looked at.
  std::uint64_t blocks_from_ = kNone, blocks_to_;
  bool look_ = true;  ///< at the next record: it may stand elsewhere than the last one suggests
  bool displaced_ = true;  ///< it does
  bool repeats_ = false;   ///< the last one was of a REP, and `repeat_` has counted it
  KtCounter repeat_;
  std::uint8_t bits_ = 0;  ///< of the last record
  static inline std::atomic<std::uint64_t> last_id_ = 0;
  const std::uint64_t id_ = ++last_id_;   ///< BlockTemplate::reader of blocks that have an image
  std::vector<KtImage::Pointer> images_;  ///< by BlockTemplate::place
};

}  // namespace citcat
