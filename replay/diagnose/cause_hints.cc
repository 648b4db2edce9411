#include "replay/diagnose/cause_hints.h"

#include <fmt/format.h>

#include <utility>

namespace citcat {

Hint memory_hint(PhysAddr byte, std::uint8_t value, std::uint64_t transaction) {
  Hint hint;
  hint.kind = Hint::Kind::memory;
  hint.address = byte;
  hint.data = {value};
  hint.transaction = transaction;
  return hint;
}

Hint write_hint(Hint::Kind kind, const BusTransaction& t, PhysAddr address,
                std::vector<std::uint8_t> data) {
  Hint hint;
  hint.kind = kind;
  hint.transaction = t.index;
  hint.position = t.position;
  hint.address = address;
  hint.data = std::move(data);
  return hint;
}

Hint external_hint(Hint::Kind kind, const ExternalWrite& w, std::vector<std::uint8_t> data) {
  Hint hint;
  hint.kind = kind;
  hint.transaction = w.transaction;
  hint.position = w.position;
  hint.address = w.address;
  hint.data = std::move(data);
  return hint;
}

std::string hex_text(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

}  // namespace citcat
