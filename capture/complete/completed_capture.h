#pragma once
// A capture whose addresses are completed by running the processor (address_completer.h): its
// reader sees a capture with all address lines.

#include <functional>
#include <memory>
#include <optional>

#include "capture/bus/source.h"
#include "capture/complete/guided_processor.h"
#include "capture/import/where.h"

namespace citcat {

struct CompletionOptions {
  /// The processor in the state at the start. Called for each attempt to begin.
  std::function<std::unique_ptr<GuidedProcessor>()> make_processor;
  /// Where it has that state; nothing: with its first fetch.
  std::optional<Where> start;
  std::uint32_t address_mask = 0;  ///< all address bits of the processor
  std::uint32_t queue_bytes = 4;
};

/// Transactions before the start that show no memory are handed out, the others are not. The
/// capture ends, with a warning, before the first transaction that contradicts the processor.
std::unique_ptr<CaptureReader> complete_addresses(std::unique_ptr<CaptureReader> capture,
                                                  CompletionOptions options);

}  // namespace citcat
