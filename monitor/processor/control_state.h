#pragma once
// The processor's mode, and the registers that decide how memory is reached.

#include "monitor/processor/code_stream.h"
#include "monitor/processor/descriptor_tables.h"
#include "monitor/processor/recording.h"

namespace citcat::monitor {

class ControlState {
 public:
  ControlState(ObservedProcessor& cpu, Recording& recording, CodeStream& code,
               DescriptorTables& tables)
      : cpu_(cpu), recording_(recording), code_(code), tables_(tables) {}

  /// A recording begins, or the processor begins anew.
  void take();
  /// The same without a look at what is not recorded.
  void take_paging();
  /// RSM has loaded all of it.
  void take(const LoggedState& loaded);
  /// An instruction has written a control register. `left`: the state that it left, where the
  /// emulator has gone on since.
  void load(const InsnClass& what, const LoggedState* left);
  /// Ends the recording where paging is of a kind that is not followed, or the processor has state
  /// that is not.
  void refuse_unheld();

 private:
  void change_mode();

  ObservedProcessor& cpu_;
  Recording& recording_;
  CodeStream& code_;
  DescriptorTables& tables_;
};

}  // namespace citcat::monitor
