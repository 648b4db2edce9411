#pragma once
// What is observed of one processor: the parts that every unit works with.

#include "monitor/processor/code_stream.h"
#include "monitor/processor/control_state.h"
#include "monitor/processor/descriptor_tables.h"
#include "monitor/processor/flight.h"
#include "monitor/processor/linear_memory.h"
#include "monitor/processor/observed_processor.h"
#include "monitor/processor/recording.h"

namespace citcat::monitor {

struct Observation {
  Observation(GuestMemory& memory, RecordSink& sink, InterruptLog& log, Registers& registers,
              CacheModel model)
      : cpu(memory, sink, log, registers, model) {
    cpu.bus.set_descriptors([this](PhysicalAddress address) { return tables.hold(address); });
    cpu.walker.set_dropped([this](std::uint64_t page) { cpu.sink.say_dropped(page); });
  }

  ObservedProcessor cpu;
  Flight flight;
  Recording recording{cpu, flight};
  LinearMemory linear{cpu};
  DescriptorTables tables{cpu, linear};
  CodeStream code{cpu};
  ControlState control{cpu, recording, code, tables};
};

}  // namespace citcat::monitor
