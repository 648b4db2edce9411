#include "formats/kt/kt_shape.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "formats/io/error.h"

namespace citcat {

namespace {

[[noreturn]] void refuse(std::uint8_t type, std::uint64_t offset) {
  throw FormatError("KT", offset, "record type: expected 00h-2fh, 80h or 81h, found " +
                                      std::to_string(type));
}

KtShape narrow_shape(std::span<const std::uint8_t> records, std::uint64_t offset) {
  KtShape shape;
  if (records.size() < 5) return shape;
  const std::uint8_t type = records[4];
  shape.instruction = type < 0x30 && (type & 15) != 0;
  if (!shape.instruction && type != kKtProcess && type != kKtTranslation) refuse(type, offset + 4);
  const std::size_t code = type & 15U;
  shape.addresses = type >> 4;
  const std::size_t bytes =
      shape.instruction ? kt_fixed_bytes(code) + std::size_t{4} * shape.addresses : 8;
  if (bytes > records.size()) return shape;
  shape.bytes = bytes;
  if (!shape.instruction) return shape;
  std::memcpy(&shape.ip, records.data(), sizeof shape.ip);
  shape.code = records.subspan(5, code);
  return shape;
}

/// docs/formats/kt.md, "Traces of 64 bits".
KtShape wide_shape(std::span<const std::uint8_t> records, std::uint64_t offset) {
  constexpr std::size_t kHead = 9;
  KtShape shape;
  if (records.size() < kHead) return shape;
  const std::uint8_t type = records[8];
  const std::size_t code = type & 15U;
  shape.instruction = (type & 0xc0) != 0x80 && code != 0 && (type >> 4 & 3) <= kKtMaxAddresses;
  if (!shape.instruction && type != kKtProcess && type != kKtTranslation) refuse(type, offset + 8);
  shape.addresses = type >> 4 & 3;
  const std::size_t fixed = (kHead + code + 7) & ~std::size_t{7};
  const std::size_t bytes = shape.instruction      ? fixed + std::size_t{8} * shape.addresses
                            : type == kKtProcess ? 16
                                                 : 24;
  if (bytes > records.size()) return shape;
  shape.bytes = bytes;
  if (!shape.instruction) return shape;
  std::memcpy(&shape.ip, records.data(), sizeof shape.ip);
  shape.code = records.subspan(kHead, code);
  shape.bits64 = (type & 0xc0) == 0;
  return shape;
}

}  // namespace

KtShape kt_shape(std::span<const std::uint8_t> records, std::uint64_t offset, KtForm& form) {
  if (offset == 0 && records.size() >= kKtWideMark.size() &&
      std::equal(kKtWideMark.begin(), kKtWideMark.end(), records.begin())) {
    form = KtForm::wide;
    KtShape mark;
    mark.bytes = kKtWideMark.size();
    return mark;
  }
  return form == KtForm::wide ? wide_shape(records, offset) : narrow_shape(records, offset);
}

}  // namespace citcat
