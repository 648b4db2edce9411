#include "replay/trace/kt_image.h"

#include <algorithm>
#include <new>
#include <span>
#include <vector>

#include "formats/kt/kt.h"

namespace citcat {

KtImage::Pointer KtImage::make(const BlockTemplate& block, bool offsets) {
  std::vector<std::uint8_t> records;
  std::vector<PlainHole> plain;
  std::vector<Hole> others;
  for (const BlockTemplate::Instruction& in : block.instructions) {
    const std::uint32_t linear = block.key.linear + in.offset;
    const std::uint32_t eip = offsets ? linear - block.key.code_base : linear;
    const KtTemplate record(eip, {in.info.bytes.data(), in.info.length}, in.info.ea_count);
    const auto fixed = record.fixed_part();
    records.insert(records.end(), fixed.begin(), fixed.end());
    for (unsigned e = 0; e < in.info.ea_count; ++e) {
      const AddressFormula& a = in.address[e];
      if (a.is_plain()) {
        plain.push_back({a.constant, static_cast<std::uint16_t>(records.size()), a.base});
      } else {
        others.push_back({a, static_cast<std::uint32_t>(records.size())});
      }
      records.resize(records.size() + 4);
    }
    if (records.size() > kMaxRoom) return nullptr;
  }
  KtImage image;
  image.size_ = static_cast<std::uint32_t>(records.size());
  records.resize((records.size() + kStep - 1) / kStep * kStep);
  const auto bytes_of = [](const auto& v) { return std::as_bytes(std::span(v)); };
  const std::span<const std::byte> parts[] = {bytes_of(std::span(&image, 1)), bytes_of(plain),
                                              bytes_of(records), bytes_of(others)};
  image.plain_ = static_cast<std::uint32_t>(parts[1].size());
  image.others_ = static_cast<std::uint32_t>(sizeof image + parts[1].size() + parts[2].size());
  image.others_end_ = image.others_ + static_cast<std::uint32_t>(parts[3].size());
  auto* const memory = static_cast<std::byte*>(::operator new(image.others_end_));
  std::byte* to = memory;
  for (const auto& part : parts) to = std::copy(part.begin(), part.end(), to);
  return Pointer(std::launder(reinterpret_cast<KtImage*>(memory)));
}

void KtImage::write_others(std::uint8_t* out, const BlockRegisters& registers) const {
  for (std::size_t i = others_; i < others_end_; i += sizeof(Hole)) {
    const Hole& hole = *at<Hole>(i);
    put(out + hole.at, hole.address(registers));
  }
}

}  // namespace citcat
