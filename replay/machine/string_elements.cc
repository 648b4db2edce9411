#include "replay/machine/string_elements.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace citcat {

namespace {

template <class Element>
void move_each(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(Element)) {
    Element element;
    std::memcpy(&element, from + i, sizeof element);
    std::memcpy(to + i, &element, sizeof element);
  }
}

}  // namespace

void fill_elements(std::uint8_t* to, std::uint64_t value, std::size_t size, std::size_t bytes) {
  std::memcpy(to, &value, size);
  for (std::size_t done = size; done < bytes; done *= 2) {
    std::memcpy(to + done, to, std::min(done, bytes - done));
  }
}

bool is_overtaken(const std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const std::less<> below;
  return below(from, to) && below(to, from + bytes);
}

void move_elements(std::uint8_t* to, const std::uint8_t* from, std::size_t size,
                   std::size_t bytes) {
  if (!is_overtaken(to, from, bytes)) {
    std::memmove(to, from, bytes);
  } else if (size == 1) {
    move_each<std::uint8_t>(to, from, bytes);
  } else if (size == 2) {
    move_each<std::uint16_t>(to, from, bytes);
  } else if (size == 4) {
    move_each<std::uint32_t>(to, from, bytes);
  } else {
    move_each<std::uint64_t>(to, from, bytes);
  }
}

}  // namespace citcat
