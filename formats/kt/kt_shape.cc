#include "formats/kt/kt_shape.h"

#include <cstring>
#include <string>

#include "formats/io/error.h"
#include "formats/kt/kt_records.h"

namespace citcat {

namespace {

[[noreturn]] void refuse(std::uint8_t type, std::uint64_t offset) {
  throw FormatError("KT", offset,
                    "record type: expected 00h-2fh, 80h or 81h, found " + std::to_string(type));
}

/// docs/formats/kt.md.
template <class Form>
KtShape shape_of(std::span<const std::uint8_t> records, std::uint64_t offset) {
  constexpr std::size_t kType = sizeof(typename Form::Word);
  KtShape shape;
  if (records.size() <= kType) return shape;
  const std::uint8_t type = records[kType];
  const std::size_t code = type & 15U;
  shape.addresses = Form::addresses(type);
  shape.instruction = Form::is_instruction(type) && code != 0 && shape.addresses <= kKtMaxAddresses;
  if (!shape.instruction && type != kKtProcess && type != kKtTranslation) {
    refuse(type, offset + kType);
  }
  const std::size_t bytes = kt_record_bytes<Form>(type);
  if (bytes > records.size()) return shape;
  shape.bytes = bytes;
  if (!shape.instruction) return shape;
  std::memcpy(&shape.ip, records.data(), sizeof shape.ip);
  shape.code = records.subspan(kType + 1, code);
  shape.bits64 = Form::is_of_64_bit_mode(type);
  return shape;
}

}  // namespace

KtShape kt_shape(std::span<const std::uint8_t> records, std::uint64_t offset, KtForm& form) {
  if (offset == 0 && begins_with_wide_mark(records)) {
    form = KtForm::wide;
    KtShape mark;
    mark.bytes = kKtWideMark.size();
    return mark;
  }
  return form == KtForm::wide ? shape_of<KtWideRecords>(records, offset)
                              : shape_of<KtNarrowRecords>(records, offset);
}

}  // namespace citcat
