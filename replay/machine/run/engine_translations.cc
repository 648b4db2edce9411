#include "replay/machine/run/engine_translations.h"

#include "replay/machine/run/code_frames.h"

namespace citcat {

std::optional<Translation> EngineTranslations::translate(LinearAddr linear, EngineAccess kind) {
  auto known = translate_for_engine(linear, kind);
  if (known && kind == EngineAccess::write && code_frames_.begins_to_patch(known->frame.page())) {
    return std::nullopt;
  }
  if (known) share_entry(*known, linear, kind);
  return known;
}

/// The engine has one entry for the code and the data of a page, the processor perhaps two, which
/// may differ. The engine's serves both where they lie in one frame, as far as is known by now.
void EngineTranslations::share_entry(Translation& known, LinearAddr page, EngineAccess kind) {
  if (kind == EngineAccess::fetch) {
    cpu_.engine_code.note(page, known.frame);
    const auto data = cpu_.mmu.held(page, Access::read, cpu_.user_mode());
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
  if (kind == EngineAccess::fetch) running_.surroundings = RunningBlock::kUnknown;
  if (cpu_.by_blocks) {
    if (auto known = translate_for_block(page, access)) return known;
    if (running_.block != nullptr || kind == EngineAccess::fetch) return std::nullopt;
  }
  if (auto known = cpu_.mmu.peek(page, access, user)) {
    if (kind == EngineAccess::fetch) {
      if (!cpu_.memory.is_mapped(known->frame.page())) return std::nullopt;
      code_frames_.note_code(known->frame.page());
    }
    return allow_engine(*known, access);
  }
  if (kind == EngineAccess::fetch || !flight_.active ||
      !lies_in_system_tables(linear.page_begin())) {
    return std::nullopt;
  }
  // Descriptor tables and task segments are reached with supervisor rights.
  try {
    cpu_.mmu.translate(page, access, false);
  } catch (const PageFault&) {
    return std::nullopt;
  }
  const auto known = cpu_.mmu.peek(page, access, false);
  if (!known) return std::nullopt;
  return allow_engine(*known, access);
}

/// What the engine may keep of a translation: nothing that would hide an effect of a later access.
std::optional<Translation> EngineTranslations::translate_for_block(LinearAddr page, Access access) {
  if (running_.block != nullptr && access != Access::execute && drops_code(*running_.block, page)) {
    return std::nullopt;
  }
  const auto known = cpu_.mmu.translate_quietly(page, access, cpu_.user_mode());
  if (!known) return std::nullopt;
  const std::uint32_t frame = known->frame.page();
  if (!cpu_.memory.is_mapped(frame)) return std::nullopt;
  constexpr std::uint32_t kLastPage = 0xfffff;  // an access there may run past 4 GiB, and fault
  if (access != Access::execute && page.page() == kLastPage) return std::nullopt;
  if (access == Access::read && !cpu_.memory.has_defined(frame)) return std::nullopt;
  if (access == Access::execute) code_frames_.note_code(frame);
  return allow_engine(*known, access);
}

/// Blocks store without telling where: the first store to a page must not pass for a load.
Translation EngineTranslations::allow_engine(Translation known, Access access) {
  known.holds_no_code = !cpu_.memory.holds_code(known.frame.page());
  if (!cpu_.by_blocks) return known;
  known.writable = access == Access::write;
  if (!known.writable) return known;
  if (expectation_.keeps_account) {
    cpu_.memory.note_stores(known.frame.page());
  } else {
    cpu_.memory.lend(known.frame.page());
  }
  return known;
}

/// With one TLB for code and data the entry of `page` takes the place of one of the block's. Should
/// the block store into itself then, and its page need another walk, it would not show how much of
/// it has run.
bool EngineTranslations::drops_code(const BlockTemplate& block, LinearAddr page) const {
  const LinearAddr first{block.key.linear}, last = first.plus32(block.whole_size() - 1);
  return cpu_.mmu.takes_place_of(page, first) || cpu_.mmu.takes_place_of(page, last);
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
  const auto reaches = [&](std::uint32_t base, std::uint32_t limit) {
    const LinearAddr first{base};
    return page.minus32(first.page_begin()) <= first.offset_in_page() + limit;
  };
  const TableRegister gdt = cpu_.engine.gdtr();
  const Segment ldt = cpu_.engine.ldtr(), task = cpu_.engine.tr();
  return reaches(gdt.base, gdt.limit) || (!ldt.unusable && reaches(ldt.base, ldt.limit)) ||
         reaches(task.base, task.limit);
}

}  // namespace citcat
