#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/kt.h"
#include "replay/block_template.h"
#include "replay/observer.h"

namespace citcat {

struct KtOptions {
  std::uint64_t from = 0;                ///< first instruction position written
  std::uint64_t to = ~std::uint64_t{0};  ///< first one not written
  bool offsets = false;                  ///< offsets in CS instead of linear addresses
  bool process_records = false;          ///< PID and MMU records (docs/formats/kt.md)
  bool zero_count_repeats = true;        ///< a REP that did nothing gets a record with E = 0
};

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
  void block(const ExecutedBlock& block, Position first) override;
  void address_space(std::uint32_t cr3, Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;

 private:
  /// The records of a block, complete but for the addresses.
  struct Image {
    struct Hole {
      AddressFormula address;
      std::uint32_t at = 0;
    };
    std::vector<std::uint8_t> records;  ///< filled up to a multiple of kStep
    std::size_t size = 0;
    std::vector<Hole> holes;
  };
  static constexpr std::size_t kStep = 32;

  bool wanted(Position now) const {
    return now.instruction >= options_.from && now.instruction < options_.to;
  }
  const Image& image_of(const BlockTemplate& block);
  Image make_image(const BlockTemplate& block) const;

  KtWriter& writer_;
  KtOptions options_;
  std::vector<std::unique_ptr<Image>> images_;  ///< by BlockTemplate::number
};

}  // namespace citcat
