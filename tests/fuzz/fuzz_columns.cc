// The description of columns, and behind a zero byte the text that it is of.

#include <algorithm>
#include <string>

#include "formats/captures/columns.h"
#include "fuzz/drain.h"
#include "fuzz/fuzz_target.h"

CITCAT_FUZZ_TARGET(columns) {
  const std::uint8_t* const end = data + size;
  const std::uint8_t* const zero = std::find(data, end, std::uint8_t{0});
  const std::uint8_t* const text = zero == end ? end : zero + 1;
  citcat::fuzz::drain_samples([&] {
    return citcat::open_text_columns(
        citcat::fuzz::stream(text, static_cast<std::size_t>(end - text)),
        citcat::parse_text_columns(std::string(data, zero), "description"));
  });
  return 0;
}
