// Flows of instructions for systems: images of the state, model-specific registers, system calls.

#include <algorithm>

#include "x86/flow/flow_maker.h"

namespace citcat::flow {

/// FXSAVE and FXRSTOR, and the part of XSAVE that is the same (SDM vol. 1, 10.5.1).
void FlowMaker::add_image(bool saves) {
  flow_.uses_stack = true;
  const auto part = [&](PlaceRange range, unsigned offset, unsigned bytes = 0) {
    const unsigned count = bytes != 0 ? bytes : range.count;
    const ValueSpan memory = saves ? stores(offset, count) : loads(offset, count);
    if (saves) {
      effect({memory}, {at_place(range)});
    } else {
      effect({at_place(range)}, {memory},
             info_.kind == InstructionClass::xrstor ? std::vector{at_place(range)}
                                                    : std::vector<ValueSpan>{});
    }
  };
  part(place::one(place::kFpuControl), 0, 2);
  part({place::kFpuStatus, 2}, 2);
  part(place::one(place::kFpuTags), 4);
  part(place::one(place::kMxcsr), 24, 4);
  for (unsigned i = 0; i < 8; ++i) part(place::stack(i), 32 + 16 * i);
  for (unsigned i = 0; i < (info_.bits64 ? 16u : 8u); ++i) part(place::vector(i), 160 + 16 * i);
}

/// CS and SS, from what one of the model-specific registers says.
void FlowMaker::load_flat_segments(const ValueSpan& from) {
  for (const unsigned s : {kCs, kSs}) effect({at_place(place::segment(s))}, {}, {from});
}

bool FlowMaker::special_system() {
  const ValueSpan fs = at_place(place::segment(kFs)), gs = at_place(place::segment(kGs));
  const ValueSpan msrs = at_place(place::one(place::kMsrs));
  switch (info_.kind) {
    case InstructionClass::clts: {
      const ValueSpan cr0 = at_place(place::one(place::kControl));
      effect({cr0}, {cr0});
      return true;
    }
    case InstructionClass::fxsave:
    case InstructionClass::xsave:
      add_image(true);
      return true;
    case InstructionClass::fxrstor:
    case InstructionClass::xrstor:
      add_image(false);
      return true;
    case InstructionClass::load_far_pointer:
      effect({*target(operand(0))}, {loads(0, word())});
      effect({at_place(place::segment(info_.reg_field))}, {}, {loads(word(), 2)});
      return true;
    case InstructionClass::syscall: {
      effect({at_gpr(kEcx, 0, 8)}, {});
      for (unsigned bit = 0; bit < 32; ++bit) {
        const ValueSpan flag = at_place(place::flag(bit));
        if (info_.bits64) put_flag(at_gpr(11, bit / 8, 1), bit);
        effect({flag}, {flag}, {msrs});
      }
      if (info_.bits64) effect({at_gpr(11, 4, 4)}, {});
      load_flat_segments(msrs);
      return true;
    }
    case InstructionClass::sysret:
      for (unsigned bit = 0; bit < 32; ++bit) take_flag(bit, at_gpr(11, bit / 8, 1), false);
      load_flat_segments(msrs);
      branch_on({place::gpr(kEcx, 0, 8)});
      return true;
    case InstructionClass::sysenter:
      effect({at_gpr(kEsp, 0, 8)}, {}, {msrs});
      for (const unsigned bit : {9u, 16u, 17u}) effect({at_place(place::flag(bit))}, {});
      load_flat_segments(msrs);
      return true;
    case InstructionClass::sysexit:
      effect({at_gpr(kEsp, 0, 8)}, {at_gpr(kEcx, 0, 8)});
      load_flat_segments(msrs);
      branch_on({place::gpr(kEdx, 0, 8)});
      return true;
    case InstructionClass::segment_base: {
      const ValueSpan segment = (info_.reg_field & 1) == 0 ? fs : gs;
      if (info_.reg_field < 2) {
        effect({*target(operand(0))}, {}, {segment});
      } else {
        effect({segment}, {}, {segment, *source(operand(0))});
      }
      return true;
    }
    case InstructionClass::swapgs:
      effect({gs}, {}, {msrs, gs});
      effect({msrs}, {}, {msrs, gs});
      return true;
    case InstructionClass::wrmsr:
      for (const ValueSpan& to : {msrs, fs, gs}) {
        effect({to}, {}, {to, at_gpr(kEax, 0, 4), at_gpr(kEdx, 0, 4), at_gpr(kEcx, 0, 4)});
      }
      return true;
    case InstructionClass::rdmsr:
      for (const unsigned reg : {kEax, kEdx}) {
        effect({at_gpr(reg, 0, 8)}, {}, {msrs, fs, gs, at_gpr(kEcx, 0, 4), kInput});
      }
      return true;
    case InstructionClass::rdtsc:
    case InstructionClass::rdtscp:
    case InstructionClass::rdpmc:
      effect({at_gpr(kEax, 0, 8)}, {}, {kInput});
      effect({at_gpr(kEdx, 0, 8)}, {}, {kInput});
      if (info_.kind == InstructionClass::rdtscp) effect({at_gpr(kEcx, 0, 8)}, {}, {msrs});
      return true;
    case InstructionClass::random:
      effect({*target(operand(0))}, {}, {kInput});
      add_flag_effects({kInput});
      return true;
    case InstructionClass::cpuid:
      for (const unsigned reg : {kEax, kEbx, kEcx, kEdx}) {
        effect({at_gpr(reg, 0, 8)}, {}, {at_gpr(kEax, 0, 4), at_gpr(kEcx, 0, 4), kInput});
      }
      return true;
    case InstructionClass::rsm:
    case InstructionClass::loadall: {
      // All registers, from an image whose layout is the processor's own.
      std::vector<ValueSpan> to{
          {ValueSpan::Of::places, 0, place::kVectors},
          {ValueSpan::Of::places, place::kFlags, place::kCount - place::kFlags}};
      effect(to, {}, {kLoads});
      return true;
    }
    default:
      return false;
  }
}

}  // namespace citcat::flow
