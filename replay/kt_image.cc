#include "replay/kt_image.h"

#include <algorithm>

#include "formats/kt.h"

namespace citcat {

KtImage::KtImage(const BlockTemplate& block, bool offsets) : number_(block.number) {
  std::vector<std::uint8_t> records;
  std::vector<std::uint64_t> register_and_constant;
  for (const BlockTemplate::Instruction& in : block.instructions) {
    const std::uint32_t linear = block.key.linear + in.offset;
    const std::uint32_t eip = offsets ? linear - block.key.code_base : linear;
    const KtTemplate record(eip, {in.info.bytes.data(), in.info.length}, in.info.ea_count);
    const auto fixed = record.fixed_part();
    records.insert(records.end(), fixed.begin(), fixed.end());
    for (unsigned e = 0; e < in.info.ea_count; ++e) {
      const AddressFormula& a = in.address[e];
      if (a.is_plain()) {
        register_and_constant.push_back(a.constant | std::uint64_t{records.size()} << 32 |
                                        std::uint64_t{a.base} << 56);
      } else {
        holes_.push_back({a, records.size()});
      }
      records.resize(records.size() + 4);
    }
  }
  size_ = static_cast<std::uint32_t>(records.size());
  offsets_ = static_cast<std::uint32_t>(register_and_constant.size());
  records.resize((records.size() + kStep - 1) / kStep * kStep);
  room_ = static_cast<std::uint32_t>(records.size());
  words_ = std::make_unique<std::uint64_t[]>(offsets_ + room_ / 8);
  std::copy(register_and_constant.begin(), register_and_constant.end(), words_.get());
  if (room_ != 0) std::memcpy(&words_[offsets_], records.data(), room_);
}

}  // namespace citcat
