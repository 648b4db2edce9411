#pragma once

#include <cstdint>
#include <optional>

#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"
#include "replay/trace/kt_sink.h"
#include "tools/idtrace/trace_output.h"

namespace citcat::tools {

/// Writes IDtrace's files of a replay: of the instructions at one privilege level, 3 unless told
/// otherwise, because programs are what IDtrace instruments.
class IdtraceObserver final : public Observer {
 public:
  /// `output` must outlive the observer. `level`: nothing for all.
  IdtraceObserver(IdtraceOutput& output, TraceRange range, std::optional<std::uint32_t> level)
      : output_(output), range_(range), wanted_level_(level) {}

  Wants wants() const override { return {.instructions = true}; }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void block(const ExecutedBlock& block, Position first) override;
  void delivered(const DeliveredEvent& event, Position now) override;

 private:
  std::uint32_t level_now() const;
  std::uint32_t level_of(const DecodedInstruction& info);
  bool wants_level(std::uint32_t level) const { return !wanted_level_ || level == *wanted_level_; }

  IdtraceOutput& output_;
  TraceRange range_;
  std::optional<std::uint32_t> wanted_level_;
  const Machine* machine_ = nullptr;
  std::uint32_t level_ = 0;  ///< of what ran last, or before a delivery
  bool in_handler_ = false;  ///< of which nothing has been told
};

}  // namespace citcat::tools
