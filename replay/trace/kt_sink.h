#pragma once
// Writes what a replay does as KT.

#include <cstdint>
#include <limits>
#include <optional>

#include "events/machine/cpu_traits.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"
#include "replay/trace/address_space_records.h"
#include "replay/trace/kt_image.h"

namespace citcat {

struct KtOptions {
  std::uint64_t from = 0;                ///< first instruction position written
  std::uint64_t to = ~std::uint64_t{0};  ///< first one not written
  std::uint32_t from_iteration = 0;      ///< of a REP, the same
  std::uint32_t to_iteration = 0;
  bool offsets = false;          ///< offsets in CS instead of linear addresses
  bool process_records = false;  ///< PID and MMU records (docs/formats/kt.md)
  bool wide = false;  ///< addresses of 64 bits are understood (RecordSink; KtSink asks its
                      ///< writer)
  bool zero_count_repeats = true;  ///< a REP that did nothing gets a record with E = 0
  /// What is written begins the trace: with process records it then begins with what
  /// address_space_records() gives. Else it goes on from another piece of it.
  bool begins_trace = true;
};

/// The address that KT gives an instruction.
inline std::uint32_t kt_address(const ExecutedInstruction& e, const KtOptions& options) {
  return options.offsets ? static_cast<std::uint32_t>(e.offset) : e.linear.low32();
}
/// An executed instruction as KT has it.
KtInstruction kt_instruction(const ExecutedInstruction& e, const KtOptions& options);
/// Default size of the code segment that the instruction was executed in.
inline std::uint8_t code_bits(const DecodedInstruction& info) {
  if (info.bits64) return 64;
  return (info.address_bits == 32) != info.address_prefix ? 32 : 16;
}

/// The form in which a processor's trace is written.
inline KtForm kt_form(CpuModel model) {
  return cpu_traits(model).has_long_mode ? KtForm::wide : KtForm::narrow;
}

/// Throws UsageError where the machine has addresses of more than 32 bits.
void require_narrow_addresses(const Machine& machine);

/// How a trace notes an event of that kind.
KtNote::Kind note_kind(DeliveredEvent::Kind kind);

/// Selects a part of the run. Positions do not only grow: an interrupt within a REP is taken at
/// N+K, and its handler begins at N. Everything from the first position of the part on belongs to
/// it.
class TraceRange {
 public:
  TraceRange() = default;
  TraceRange(Position from, Position to) : from_(from), to_(to) {}
  /// Whether what is reported at `now` belongs to the part; must be called in program order.
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
class KtSink final : public Observer {
 public:
  KtSink(KtWriter& writer, const KtOptions& options);

  /// Throws UsageError where addresses have more bits than the writer's records.
  void watch(const Machine& machine) override;

  Interest interest() const override {
    return {.code = options_.offsets ? Detail::blocks : Detail::records,
            .mappings = options_.process_records};
  }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  RecordRoom record_room(Position now) override;
  void recorded(std::size_t bytes, std::uint64_t instructions) override {
    writer_.commit(bytes, instructions);
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr at, std::span<const std::uint8_t> bytes, Position now) override {
    external_write(at, static_cast<std::uint32_t>(bytes.size()), now);
  }
  /// For who knows how many bytes were written, and not which.
  void external_write(PhysAddr at, std::uint32_t size, Position now);
  void translation_dropped(LinearAddr page, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;
  /// From now on these are written, in place of what the options said. `begins`: the trace does so
  /// there; else it goes on.
  void set_range(Position from, Position to, bool begins);
  /// The replay is over with this many instructions completed: notes whether a REP that was
  /// reported last is one of them.
  void end(std::uint64_t completed);

 private:
  KtTemplate record(const ExecutedInstruction& e) const {
    return {kt_address(e, options_), {e.info->bytes.data(), e.info->length}, e.ea_count};
  }
  bool wanted(Position now);
  bool wanted(const ExecutedBlock& block, Position first) const {
    return first.instruction >= blocks_from_ && first.instruction + block.count() <= blocks_to_;
  }
  static bool has_image(const ExecutedBlock& block) {
    return block.note() != nullptr && *block.note() != nullptr;
  }
  void write_image(const ExecutedBlock& block) {
    const auto& image = static_cast<const KtImage&>(**block.note());
    std::uint8_t* const out = writer_.next();
    writer_.commit(image.size(), block.count());
    image.write(out, block.addresses());
  }
  void write(const ExecutedBlock& block, Position first);
  void write_with_care(const ExecutedBlock& block, Position first);
  bool make_image(const ExecutedBlock& block);
  void write_wide(const ExecutedInstruction& e);
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
  void note(KtNote::Kind kind, Position now, std::uint64_t where = 0, std::uint32_t size = 0,
            std::uint32_t value = 0);

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  KtWriter& writer_;
  KtOptions options_;
  TraceRange range_;
  const Machine* machine_ = nullptr;
  bool notes_;  ///< are kept
  bool preamble_due_;
  /// Blocks from here to there are written without a closer look; kNone while the next record is to
  /// be looked at.
  std::uint64_t blocks_from_ = kNone, blocks_to_;
  bool look_ = true;       ///< at the next record: it may be elsewhere than the last one suggests
  bool displaced_ = true;  ///< it does
  bool repeats_ = false;   ///< the last one was of a REP, and `repeat_` has counted it
  KtCounter repeat_;
  std::uint8_t bits_ = 0;  ///< of the last record
};

}  // namespace citcat
