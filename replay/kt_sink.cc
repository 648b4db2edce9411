#include "replay/kt_sink.h"

namespace citcat {

KtInstruction kt_instruction(const ExecutedInstruction& e, const KtOptions& options) {
  KtInstruction record;
  record.eip = kt_address(e, options);
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
  writer_.instruction(record(e), e.ea[0], e.ea[1]);
}

void KtSink::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                        Position now) {
  if (!wanted(now)) return;
  const KtTemplate all = record(first);
  for (std::uint32_t i = 0; i < count; ++i) {
    writer_.instruction(all, first.ea[0] + i * step, first.ea[1] + i * step);
  }
}

/// False where `block` can have none.
bool KtSink::make_image(const BlockTemplate& block) {
  if (block.place == BlockTemplate::kNowhere) return false;
  if (block.place >= images_.size()) images_.resize(2 * std::size_t{block.place} + 64);
  KtImage::Pointer& image = images_[block.place] = KtImage::make(block, options_.offsets);
  if (image == nullptr) return false;
  block.read_by_sink = image.get();
  block.reader = id_;
  return true;
}

// Nothing is called here in the ordinary case, so that no registers need be saved.
void KtSink::block(const ExecutedBlock& block, Position first) {
  if (has_image(*block.code) && wanted(*block.code, first) && writer_.has_room()) [[likely]]
    return write_image(block);
  block_with_care(block, first);
}

void KtSink::block_with_care(const ExecutedBlock& block, Position first) {
  if (!wanted(*block.code, first) || !(has_image(*block.code) || make_image(*block.code))) {
    Sink::block(block, first);
    return;
  }
  writer_.make_room();
  write_image(block);
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
