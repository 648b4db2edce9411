#pragma once
// Interruptions of the code in one drmemtrace file, as the markers that DynamoRIO's rules require:
// an event says where the code was interrupted, and after the return the code goes on there.

#include <cstdint>
#include <vector>

#include "events/machine/address.h"
#include "tools/export/drmemtrace_entries.h"

namespace citcat::tools {

class DrmemtraceContexts {
 public:
  /// `hardware`: with the markers of whole-system traces. Else events are those of a kernel, which
  /// all tools know.
  explicit DrmemtraceContexts(bool hardware) : hardware_(hardware) {}

  /// Code was interrupted at `at`. `returns_anywhere`: DynamoRIO does not ask where this one
  /// returns to, as after SYSENTER.
  void interrupt(LinearAddr at, bool returns_anywhere, DrmemtraceEntries& out);
  /// Goes on at `to`, with `open` interruptions open. What goes on elsewhere than where it was
  /// interrupted (a signal, another task, code that mends a fault) does so by a kernel's event.
  void go_on(LinearAddr to, unsigned open, DrmemtraceEntries& out);
  /// Goes on at `to` instead of `from`, because of what this file does not show: the system, of a
  /// program; another thread. `by_call`: it asked the system for something.
  void moved(LinearAddr from, LinearAddr to, bool by_call, DrmemtraceEntries& out);
  /// All return.
  void end(DrmemtraceEntries& out);
  unsigned open() const { return open_; }

 private:
  struct Interrupted {
    LinearAddr at;
    bool counts = false;  ///< it is an interruption, and no way to go on elsewhere
    bool hardware = false;
    bool returns_anywhere = false;
  };
  void push(Interrupted context, DrmemtraceEntries& out);
  Interrupted pop(DrmemtraceEntries& out);
  void go_elsewhere(LinearAddr at, LinearAddr to, DrmemtraceEntries& out);

  bool hardware_;
  std::vector<Interrupted> contexts_;
  unsigned open_ = 0;  ///< that count
  unsigned hardware_open_ = 0;
};

}  // namespace citcat::tools
