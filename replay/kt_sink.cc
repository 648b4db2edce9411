#include "replay/kt_sink.h"

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

const KtImage& KtSink::make_image(const BlockTemplate& block) {
  if (block.place >= images_.size()) images_.resize(2 * std::size_t{block.place} + 64);
  const KtImage& image = images_[block.place] = KtImage(block, options_.offsets);
  block.read_by_sink = image.data();
  return image;
}

void KtSink::block(const ExecutedBlock& block, Position first) {
  const bool whole =
      first.instruction >= options_.from && first.instruction + block.count() <= options_.to;
  if (!whole || block.code->number == BlockTemplate::kUnnumbered) {
    Sink::block(block, first);
    return;
  }
  const KtImage& image = image_of(*block.code);
  if (image.room() > KtWriter::kMaxPiece) [[unlikely]] {
    Sink::block(block, first);
    return;
  }
  image.write(writer_.reserve(image.room()), *block.registers);
  writer_.commit(image.size(), block.count());
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
