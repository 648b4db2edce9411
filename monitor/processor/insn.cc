#include "monitor/processor/insn.h"

#include <cstddef>

namespace citcat::monitor {

void complete(Insn& insn, const Insn* before, CacheModel model) {
  const InsnClass& what = insn.what;
  insn.ends_plainly = what.kind == InsnKind::plain && !what.misdone && what.mmx == MmxUse::none &&
                      what.loaded_segments == 0;
  insn.accesses_plainly = what.kind == InsnKind::plain && !what.marks_descriptor;
  insn.accesses_unseen = insn.accesses_plainly || what.kind == InsnKind::movs ||
                         what.kind == InsnKind::stos || what.kind == InsnKind::lods ||
                         what.kind == InsnKind::scas;
  insn.loads_unseen = insn.accesses_unseen && !what.updates_memory;
  insn.segments = 0;
  for (const int segment : {what.loads_from, what.stores_to})
    if (segment >= 0 && insn.code != CodeSize::bits64)
      insn.segments |= static_cast<std::uint8_t>(1u << segment);
  insn.in_first_page =
      insn.size <= left_in_page(insn.linear) &&
      (before == nullptr || (before->in_first_page && before->linear >> 12 == insn.linear >> 12));
  if (before == nullptr) return;
  const std::uint32_t line = fetched_together(model);
  const std::uint64_t first = insn.linear / line;
  insn.continues_line = (before->linear + before->size - 1) / line == first &&
                        (insn.linear + insn.size - 1) / line == first;
}

void complete_block(std::span<Insn> block) {
  unsigned alike = 0;
  constexpr unsigned kMost = 255;
  for (std::size_t n = block.size(); n-- != 0;) {
    block[n].alike_behind = static_cast<std::uint8_t>(alike);
    alike = block[n].waits && block[n].continues_line && alike < kMost ? alike + 1 : 0;
  }
}

}  // namespace citcat::monitor
