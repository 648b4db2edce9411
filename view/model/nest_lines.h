#pragma once
// Calls, interrupts, exceptions and system calls that have not returned, as answers have them.

#include <vector>

#include "view/model/run_view.h"

namespace citcat::view {

/// A call, or else the event that entered a handler. Points into the OpenNest.
struct NestLine {
  Position at;
  const OpenCall* call = nullptr;
  const InterruptNest::Entered* entered = nullptr;
};
/// All of a nest, the innermost first.
std::vector<NestLine> nest_lines(const OpenNest& nest);
Json call_line(RunView& view, const OpenCall& call);
/// Always includes the address space that was interrupted.
Json event_line(RunView& view, const InterruptNest::Entered& entered);

}  // namespace citcat::view
