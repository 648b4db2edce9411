#pragma once
// A processor that is recorded: the emulator's side of it, and models of the parts that the
// emulator does not show.

#include "monitor/bus/bus_model.h"
#include "monitor/bus/guest_memory.h"
#include "monitor/bus/record_sink.h"
#include "monitor/instructions/segment_limits.h"
#include "monitor/log/interrupt_log.h"
#include "monitor/processor/segment_bases.h"
#include "monitor/state/data_breakpoints.h"
#include "monitor/state/registers.h"
#include "monitor/walk/page_walker.h"

namespace citcat::monitor {

struct ObservedProcessor {
  ObservedProcessor(GuestMemory& its_memory, RecordSink& its_sink, InterruptLog& its_log,
                    Registers& its_registers, CacheModel model)
      : memory(its_memory),
        sink(its_sink),
        log(its_log),
        registers(its_registers),
        bus(its_memory, its_sink, model),
        walker(its_memory, bus) {}
  ObservedProcessor(const ObservedProcessor&) = delete;
  ObservedProcessor& operator=(const ObservedProcessor&) = delete;

  bool in_real_mode() const { return (walker.cr0() & 1) == 0; }  ///< CR0.PE
  bool has_long_mode() const { return registers.long_mode_registers().has_value(); }
  void load_breakpoints() { breakpoints.load(registers.state(), has_long_mode()); }
  /// Returns whether the A20 gate is open.
  bool follow_a20() {
    const bool open = registers.state().a20;
    walker.set_a20(open);
    return open;
  }
  std::uint64_t segment_base(unsigned segment, std::uint16_t selector) {
    return bases.of(segment, selector, in_real_mode(), registers);
  }

  GuestMemory& memory;
  RecordSink& sink;
  InterruptLog& log;
  Registers& registers;
  BusModel bus;
  PageWalker walker;
  SegmentLimits segments;  ///< of code of 16 and 32 bits
  SegmentBases bases;
  DataBreakpoints breakpoints;
  /// What WRMSR and XSETBV have written and CPUID has told so far. The emulator tells no other way.
  ModelFacts facts;
  unsigned number = 0;
  bool several = false;  ///< it is one of several
  bool in_system_management = false;
};

}  // namespace citcat::monitor
