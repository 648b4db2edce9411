#include "replay/machine/run/engine_translations.h"

namespace citcat {

std::optional<Translation> EngineTranslations::translate(LinearAddr linear, EngineAccess kind) {
  auto known = translate_for_engine(linear, kind);
  if (!known) return known;
  known->holds_no_code = !cpu_.memory.holds_code(known->frame.page());
  share_entry(*known, linear, kind);
  return known;
}

/// The engine is about to translate code of the frame: from now on stores to it are checked.
void EngineTranslations::note_code(FrameNumber frame) {
  if (cpu_.memory.holds_code(frame)) return;
  cpu_.memory.note_code(frame);
  cpu_.engine.flush_tlb();
}

/// The engine has one entry for the code and the data of a page, the processor perhaps two, which
/// may differ. The engine's serves both where they lie in one frame, as far as is known by now.
void EngineTranslations::share_entry(Translation& known, LinearAddr page, EngineAccess kind) {
  if (kind == EngineAccess::fetch) {
    cpu_.engine_code.note(page, known.frame);
    const auto data = cpu_.mmu.look_up(page, Access::read, cpu_.program(), Lookup::held);
    known.readable = data && data->frame == known.frame;
    known.writable &= known.readable && data->writable;
    return;
  }
  const auto code = cpu_.engine_code.frame_of(page);
  known.executable = code && code->page() == known.frame.page();
}

std::optional<Translation> EngineTranslations::translate_for_engine(LinearAddr linear,
                                                                    EngineAccess kind) {
  const bool user = cpu_.user_mode();
  const LinearAddr page{linear};
  // The walk of a fetch is made when the instruction is prepared, that of an operand before.
  const Access access = kind == EngineAccess::write   ? Access::write
                        : kind == EngineAccess::fetch ? Access::execute
                                                      : Access::read;
  if (auto known = cpu_.mmu.look_up(page, access, program(user), Lookup::free)) {
    if (kind == EngineAccess::fetch) {
      if (!cpu_.memory.is_mapped(known->frame.page())) return std::nullopt;
      note_code(known->frame.page());
    }
    return known;
  }
  if (kind == EngineAccess::fetch || !flight_.active ||
      !lies_in_system_tables(linear.page_begin())) {
    return std::nullopt;
  }
  // Descriptor tables and task segments are reached with supervisor rights.
  try {
    cpu_.mmu.translate(page, access, Who::processor);
  } catch (const PageFault&) {
    return std::nullopt;
  }
  return cpu_.mmu.look_up(page, access, Who::processor, Lookup::free);
}

bool EngineTranslations::touches_system_tables() const {
  switch (flight_.info->kind) {
    case InstructionClass::pop_segment:
    case InstructionClass::mov_to_segment:
    case InstructionClass::load_far_pointer:
    case InstructionClass::lldt:
    case InstructionClass::ltr:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::in:
    case InstructionClass::out:
    case InstructionClass::ins:
    case InstructionClass::outs:
      return true;
    default:
      return looks_up_descriptor(*flight_.info);
  }
}

bool EngineTranslations::lies_in_system_tables(LinearAddr page) const {
  if (!touches_system_tables()) return false;
  const auto reaches = [&](std::uint64_t base, std::uint32_t limit) {
    const LinearAddr first{base};
    const std::uint64_t distance =
        cpu_.long_mode() ? page.value - first.page_begin().value : page.minus32(first.page_begin());
    return distance <= std::uint64_t{first.offset_in_page()} + limit;
  };
  const Engine& engine = cpu_.engine;
  const Segment ldt = engine.ldtr(), task = engine.tr();
  return reaches(engine.wide().gdtr_base(), engine.gdtr().limit) ||
         (!ldt.unusable && reaches(engine.wide().ldtr_base(), ldt.limit)) ||
         reaches(engine.wide().tr_base(), task.limit);
}

}  // namespace citcat
