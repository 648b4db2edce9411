#include "replay/trace/kt_image.h"

#include <algorithm>
#include <new>
#include <span>
#include <vector>

#include "formats/kt/kt.h"

namespace citcat {

std::unique_ptr<KtImage> KtImage::make(const ExecutedBlock& block, bool offsets) {
  std::vector<std::uint8_t> records;
  std::vector<std::uint16_t> holes;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const DecodedInstruction& info = block.decoded(i);
    const auto eip = static_cast<std::uint32_t>(offsets ? block.offset(i) : block.linear(i).value);
    const KtTemplate record(eip, {info.bytes.data(), info.length}, info.ea_count);
    const auto fixed = record.fixed_part();
    records.insert(records.end(), fixed.begin(), fixed.end());
    for (unsigned e = 0; e < info.ea_count; ++e) {
      holes.push_back(static_cast<std::uint16_t>(records.size()));
      records.resize(records.size() + 4);
    }
    if (records.size() > kMaxRoom) return nullptr;
  }
  KtImage image;
  image.size_ = static_cast<std::uint32_t>(records.size());
  image.holes_ = static_cast<std::uint32_t>(holes.size());
  image.records_ = static_cast<std::uint32_t>(sizeof image + holes.size() * sizeof(std::uint16_t));
  records.resize((records.size() + kStep - 1) / kStep * kStep);
  auto* const memory = static_cast<std::byte*>(::operator new(image.records_ + records.size()));
  std::byte* to = memory + sizeof image;
  for (const auto part : {std::as_bytes(std::span(holes)), std::as_bytes(std::span(records))}) {
    to = std::copy(part.begin(), part.end(), to);
  }
  return std::unique_ptr<KtImage>(new (memory) KtImage(image));
}

}  // namespace citcat
