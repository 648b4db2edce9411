#pragma once
// The length and kind of a record, for code that skips records without reading them.

#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/kt/kt.h"

namespace citcat {

/// A record, or the mark of the wide form.
struct KtShape {
  std::size_t bytes = 0;  ///< 0: its end is missing
  bool instruction = false;
  // For an instruction:
  std::uint32_t ip = 0;  ///< its lower half
  std::span<const std::uint8_t> code;
  unsigned addresses = 0;
  bool bits64 = false;
};

/// The record, or mark, that `records` begins with. `offset`: its place in the trace. A mark, which
/// may come only at the beginning of the trace, sets `form`. Throws FormatError if it is not a
/// record.
KtShape kt_shape(std::span<const std::uint8_t> records, std::uint64_t offset, KtForm& form);

}  // namespace citcat
