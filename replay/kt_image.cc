#include "replay/kt_image.h"

#include "formats/kt.h"

namespace citcat {

KtImage::KtImage(const BlockTemplate& block, bool offsets) {
  for (const BlockTemplate::Instruction& in : block.instructions) {
    const std::uint32_t linear = block.key.linear + in.offset;
    const std::uint32_t eip = offsets ? linear - block.key.code_base : linear;
    const KtTemplate record(eip, {in.info.bytes.data(), in.info.length}, in.info.ea_count);
    const auto fixed = record.fixed_part();
    records_.insert(records_.end(), fixed.begin(), fixed.end());
    for (unsigned e = 0; e < in.info.ea_count; ++e) add_address(in.address[e]);
  }
  size_ = records_.size();
  records_.resize((size_ + kStep - 1) / kStep * kStep);
}

void KtImage::add_address(const AddressFormula& a) {
  const auto at = static_cast<std::uint32_t>(records_.size());
  const bool plain = a.index == BlockRegisters::kZero && a.segment == AddressFormula::kNoSegment &&
                     a.mask == 0xffffffff;
  if (plain) {
    offsets_.push_back({a.constant, at, a.base});
  } else {
    holes_.push_back({a, at});
  }
  records_.resize(records_.size() + 4);
}

}  // namespace citcat
