#include "tools/export/drmemtrace_contexts.h"

#include <optional>

namespace citcat::tools {

void DrmemtraceContexts::push(Interrupted context, DrmemtraceEntries& out) {
  contexts_.push_back(context);
  open_ += context.counts ? 1 : 0;
  hardware_open_ += context.hardware ? 1 : 0;
  out.marker(context.hardware ? DrMarker::hardware_event : DrMarker::kernel_event,
             context.at.value);
}

DrmemtraceContexts::Interrupted DrmemtraceContexts::pop(DrmemtraceEntries& out) {
  const Interrupted context = contexts_.back();
  contexts_.pop_back();
  open_ -= context.counts ? 1 : 0;
  hardware_open_ -= context.hardware ? 1 : 0;
  // DynamoRIO wants some value, and does not read it.
  out.marker(context.hardware ? DrMarker::hardware_return : DrMarker::kernel_transfer,
             context.at.value);
  return context;
}

void DrmemtraceContexts::interrupt(LinearAddr at, bool returns_anywhere, DrmemtraceEntries& out) {
  // DynamoRIO takes 30 that are open for a fault of the trace (tools/invariant_checker.cpp), and
  // counts only these.
  constexpr unsigned kMostOpen = 29;
  push({at, true, hardware_ && hardware_open_ < kMostOpen, returns_anywhere}, out);
}

/// Goes on at `to`, where `at` was to be expected: back from where it went earlier, or away.
void DrmemtraceContexts::go_elsewhere(LinearAddr at, LinearAddr to, DrmemtraceEntries& out) {
  if (!contexts_.empty() && !contexts_.back().counts) {
    const LinearAddr before = pop(out).at;
    if (before == to) return;
    at = before;
  }
  push({at}, out);
}

void DrmemtraceContexts::go_on(LinearAddr to, unsigned open, DrmemtraceEntries& out) {
  std::optional<Interrupted> last;
  while (open_ > open) last = pop(out);
  if (last && last->at != to && !last->returns_anywhere) go_elsewhere(last->at, to, out);
}

void DrmemtraceContexts::moved(LinearAddr from, LinearAddr to, bool by_call,
                               DrmemtraceEntries& out) {
  if (contexts_.empty() && by_call) return out.marker(DrMarker::kernel_transfer, from.value);
  go_elsewhere(from, to, out);
}

void DrmemtraceContexts::end(DrmemtraceEntries& out) {
  while (!contexts_.empty()) pop(out);
}

}  // namespace citcat::tools
