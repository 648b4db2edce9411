#pragma once
// The end of an instruction: reports it to the listeners, and moves the position past it.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/segment_rights.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class DebugUnit;
class ExceptionDelivery;
class FloatingPoint;
class PortAccesses;
class SegmentLoader;

/// report_completed() while InFlight still says what it did; retire() when its effects on the
/// engine are there. Both are called once for each instruction, the first for each iteration of a
/// REP too.
class Retirement {
 public:
  /// All must outlive the object.
  Retirement(CpuContext& cpu, InFlight& flight, Expectation& expectation, SegmentRights& rights,
             DebugUnit& debug, SegmentLoader& segments, ExceptionDelivery& delivery,
             FloatingPoint& fpu, PortAccesses& ports)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        rights_(rights),
        debug_(debug),
        segments_(segments),
        delivery_(delivery),
        fpu_(fpu),
        ports_(ports) {}

  /// Tells the instruction or iteration in flight, and its stores.
  void report_completed();
  /// The instruction or iteration in flight, as observers see it.
  ExecutedInstruction executed() const;
  /// After the last iteration, or any other instruction.
  void retire();
  /// After the instruction. From the 386 on EIP goes on from FFFF to 10000, where the next fetch
  /// is refused, in 16-bit code too.
  std::uint64_t next_ip() const;
  /// Both, of an instruction that was made here and goes on after itself.
  void complete_emulated();
  /// After one that was made here and was told has led elsewhere. `flags_before`: EFLAGS as TF in
  /// them was before it.
  void finish_mode_switch(std::uint32_t flags_before);

 private:
  void report_descriptors();
  void after_system(const DecodedInstruction& info);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  SegmentRights& rights_;
  DebugUnit& debug_;
  SegmentLoader& segments_;
  ExceptionDelivery& delivery_;
  FloatingPoint& fpu_;
  PortAccesses& ports_;
};

}  // namespace citcat
