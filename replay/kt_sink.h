#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "formats/kt.h"
#include "replay/block_template.h"
#include "replay/kt_image.h"
#include "replay/observer.h"

namespace citcat {

struct KtOptions {
  std::uint64_t from = 0;                ///< first instruction position written
  std::uint64_t to = ~std::uint64_t{0};  ///< first one not written
  bool offsets = false;                  ///< offsets in CS instead of linear addresses
  bool process_records = false;          ///< PID and MMU records (docs/formats/kt.md)
  bool zero_count_repeats = true;        ///< a REP that did nothing gets a record with E = 0
};

/// The address that KT gives an instruction.
inline std::uint32_t kt_address(const ExecutedInstruction& e, const KtOptions& options) {
  return options.offsets ? e.eip : e.linear;
}
/// An executed instruction as KT has it.
KtInstruction kt_instruction(const ExecutedInstruction& e, const KtOptions& options);
/// The process number of an address space.
inline std::uint32_t kt_process(std::uint32_t cr3) { return cr3 >> 12; }

/// Writes the instruction stream of a replay as KT.
class KtSink final : public Sink {
 public:
  KtSink(KtWriter& writer, const KtOptions& options) : writer_(writer), options_(options) {}

  Detail detail() const override {
    return options_.process_records ? Detail::accesses : Detail::instructions;
  }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void block(const ExecutedBlock& block, Position first) override;
  void address_space(std::uint32_t cr3, Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;
  /// From now on these are written, in place of what the options said.
  void set_range(std::uint64_t from, std::uint64_t to) {
    options_.from = from;
    options_.to = to;
  }

 private:
  KtTemplate record(const ExecutedInstruction& e) const {
    return {kt_address(e, options_), {e.info->bytes.data(), e.info->length}, e.ea_count};
  }
  bool wanted(Position now) const {
    return now.instruction >= options_.from && now.instruction < options_.to;
  }
  bool wanted(const BlockTemplate& block, Position first) const {
    return first.instruction >= options_.from && first.instruction + block.count() <= options_.to;
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

  KtWriter& writer_;
  KtOptions options_;
  static inline std::atomic<std::uint64_t> last_id_ = 0;
  const std::uint64_t id_ = ++last_id_;   ///< BlockTemplate::reader of blocks that have an image
  std::vector<KtImage::Pointer> images_;  ///< by BlockTemplate::place
};

}  // namespace citcat
