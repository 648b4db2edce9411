#include "tools/host/names.h"

#include <charconv>

#include "formats/io/error.h"
#include "tools/host/report.h"

namespace citcat::tools {

namespace {

template <class Number>
bool parse_hexadecimal(std::string_view text, Number& value) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc{} && stop == text.data() + text.size() && !text.empty();
}

}  // namespace

std::string NameSource::process_of(AddressSpaceId address_space) const {
  return hexadecimal(address_space);
}

bool NameSource::is_process(const std::string& pattern, const Context& context) const {
  AddressSpaceId cr3 = 0;
  return parse_hexadecimal(pattern, cr3) && cr3 == context.address_space();
}

std::vector<LinearRange> NameSource::code(const std::string& pattern) const {
  return {parse_linear_range(pattern, "code=")};
}

LinearRange parse_linear_range(const std::string& text, const std::string& what) {
  const std::size_t dash = text.find('-');
  std::uint64_t first = 0, last = 0;
  const bool good = parse_hexadecimal(std::string_view(text).substr(0, dash), first) &&
                    (dash == std::string::npos
                         ? (last = first, true)
                         : parse_hexadecimal(std::string_view(text).substr(dash + 1), last));
  if (!good || last < first) {
    throw UsageError(what + " expected an address or FIRST-LAST, hexadecimal, found \"" + text +
                     "\"");
  }
  return {LinearAddr{first}, LinearAddr{last + (last == ~std::uint64_t{0} ? 0 : 1)}};
}

}  // namespace citcat::tools
