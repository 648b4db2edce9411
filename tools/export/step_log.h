#pragma once
// What a StepTool received from a part of a run, kept for the process that puts the parts together.
// It is written and read by processes that were forked from one program, so code is stored as it
// lies in memory.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "tools/export/told_step.h"
#include "tools/host/part_spool.h"

namespace citcat::tools {

/// Receives the contents of a log, in its order.
class StepLogListener {
 public:
  virtual ~StepLogListener() = default;
  /// Is told before a step of it is. Returns StepCode::known.
  virtual std::uint64_t know(const StaticInstruction& code) = 0;
  virtual void told_step(const ToldStep& step, std::span<const StepAccess> accesses) = 0;
  virtual void told_stretch(StepStretch stretch) = 0;
  virtual void told_event(const ToldEvent& event) = 0;
  /// Steps that are written already; the first is that instruction at that address. What they
  /// wrote is told next, piece by piece.
  virtual void told_written(LinearAddr first, std::uint64_t instruction,
                            const StepTotals& totals) = 0;
  virtual void told_text(std::span<const std::uint8_t> text) = 0;
};

class StepLog {
 public:
  explicit StepLog(std::shared_ptr<PartSpool> spool) : spool_(std::move(spool)) {}

  void step(const ToldStep& step, std::span<const StepAccess> accesses);
  void stretch(const StepStretch& stretch);
  void event(const ToldEvent& event);
  void written(LinearAddr first, std::uint64_t instruction, const StepTotals& totals,
               const std::vector<PartSpool::Piece>& text);
  /// Where all of it lies.
  void save(ByteWriter& out);
  void load(ByteReader& in);
  /// For a log that was loaded. The code that it reports lives as long as the log.
  void tell(StepLogListener& listener);

 private:
  std::uint32_t number_of(const StaticInstruction& code);
  void keep_piece();

  std::shared_ptr<PartSpool> spool_;
  std::vector<PartSpool::Piece> pieces_;
  ByteWriter buffer_;
  std::unordered_map<const StaticInstruction*, std::uint32_t> numbers_;
  std::deque<StaticInstruction> instructions_;
  std::deque<StepCode> code_;  ///< of them
};

}  // namespace citcat::tools
