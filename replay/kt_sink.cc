#include "replay/kt_sink.h"

#include <algorithm>

namespace citcat {

KtInstruction kt_instruction(const ExecutedInstruction& e, const KtOptions& options) {
  KtInstruction record;
  record.eip = options.offsets ? e.eip : e.linear;
  record.code = e.info->bytes;
  record.size = e.info->length;
  record.address_count = e.ea_count;
  record.address = {e.ea[0], e.ea[1]};
  return record;
}

void KtSink::instruction(const ExecutedInstruction& e, Position now) {
  if (!wanted(now)) return;
  const bool nothing_done = e.info->is_repeated() && e.ea_count == 0 && e.info->ea_count != 0;
  if (nothing_done && !options_.zero_count_repeats) return;
  writer_.instruction(kt_instruction(e, options_));
}

void KtSink::address_space(std::uint32_t cr3, Position now) {
  if (options_.process_records && wanted(now)) writer_.process(kt_process(cr3));
}

void KtSink::mapping(LinearAddr page, PhysAddr frame, Position now) {
  if (options_.process_records && wanted(now)) {
    writer_.translation(frame.page(), page.value);
  }
}

}  // namespace citcat
