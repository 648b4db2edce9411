#pragma once
// Pin levels as text files of other programs.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "capture/inspect/extra_signals.h"
#include "capture/inspect/text_out.h"
#include "formats/captures/samples.h"

namespace citcat {

/// Receives every change of the levels.
class SampleWriter {
 public:
  virtual ~SampleWriter() = default;
  /// `number` is the sample's; `previous` is empty for the first one.
  virtual void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
                      std::span<const std::uint8_t> previous) = 0;
  /// After the last one: what there is to say of times before `end`.
  virtual void finish(std::uint64_t /*end*/) {}
};

/// `target` is vcd, ols or samples-csv. `info` and `out` must outlive the writer, and so must
/// `extra`, signals for a vcd, which may be null.
std::unique_ptr<SampleWriter> make_sample_writer(std::string_view target, const SampleInfo& info,
                                                 TextOut& out, ExtraSignals* extra);

}  // namespace citcat
