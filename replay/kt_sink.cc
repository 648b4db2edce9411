#include "replay/kt_sink.h"

#include <algorithm>
#include <cstring>

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

KtSink::Image KtSink::make_image(const BlockTemplate& block) const {
  Image image;
  for (const BlockTemplate::Instruction& in : block.instructions) {
    const std::uint32_t linear = block.key.linear + in.offset;
    const std::uint32_t eip = options_.offsets ? linear - block.key.code_base : linear;
    const KtTemplate record(eip, {in.info.bytes.data(), in.info.length}, in.info.ea_count);
    const auto fixed = record.fixed_part();
    image.records.insert(image.records.end(), fixed.begin(), fixed.end());
    for (unsigned e = 0; e < in.info.ea_count; ++e) {
      image.holes.push_back({in.address[e], static_cast<std::uint32_t>(image.records.size())});
      image.records.resize(image.records.size() + 4);
    }
  }
  image.size = image.records.size();
  image.records.resize((image.size + kStep - 1) / kStep * kStep);
  return image;
}

const KtSink::Image& KtSink::image_of(const BlockTemplate& block) {
  if (block.number >= images_.size()) images_.resize(2 * block.number + 64);
  std::unique_ptr<Image>& image = images_[block.number];
  if (!image) image = std::make_unique<Image>(make_image(block));
  return *image;
}

void KtSink::block(const ExecutedBlock& block, Position first) {
  const bool whole =
      first.instruction >= options_.from && first.instruction + block.count() <= options_.to;
  if (!whole || block.code->number == BlockTemplate::kUnnumbered) {
    Sink::block(block, first);
    return;
  }
  const Image& image = image_of(*block.code);
  if (image.records.size() > KtWriter::kMaxPiece) {
    Sink::block(block, first);
    return;
  }
  std::uint8_t* const out = writer_.reserve(image.records.size());
  for (std::size_t i = 0; i < image.records.size(); i += kStep) {
    std::memcpy(out + i, &image.records[i], kStep);
  }
  for (const Image::Hole& hole : image.holes) {
    const std::uint32_t address = hole.address(*block.registers);
    std::memcpy(out + hole.at, &address, 4);
  }
  writer_.commit(image.size, block.count());
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
