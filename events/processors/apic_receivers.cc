#include "events/processors/apic_receivers.h"

#include <cstdio>

namespace citcat {
namespace {

constexpr std::uint32_t kLogicalId = 0xd0, kFormat = 0xe0, kFlat = 0xf;
constexpr std::uint8_t kToAll = 0xff;

std::uint8_t byte_of(std::uint64_t data, unsigned number) {
  return static_cast<std::uint8_t>(data >> (8 * number));
}

}  // namespace

ApicMessage::ApicMessage(std::uint64_t data)
    : vector(byte_of(data, 0)),
      mode(byte_of(data, 1)),
      destination(byte_of(data, 2)),
      details(byte_of(data, 3)) {}

ApicMessage ApicMessage::of_command(std::uint32_t low) {
  ApicMessage m(low & 0xff);
  m.mode = low >> 8 & 7;
  m.details =
      static_cast<std::uint8_t>((low >> 11 & 1) | (low >> 14 & 3) << 1 | (low >> 18 & 3) << 4);
  return m;
}

std::string ApicMessage::text() const {
  char text[64];
  std::snprintf(text, sizeof text, "vector %02x, mode %u, destination %02x, details %02x", vector,
                mode, destination, details);
  return text;
}

void ApicReceivers::wrote(std::size_t processor, std::uint32_t offset, std::uint32_t value) {
  Processor& its = processors_[processor];
  if (offset == kLogicalId) its.logical_id = byte_of(value, 3);
  if (offset == kFormat) its.is_flat = value >> 28 == kFlat;
}

ApicReceivers::Sets ApicReceivers::of(const ApicMessage& m, std::size_t sender,
                                      bool knows_destination) const {
  Sets sets;
  for (std::size_t p = 0; p < processors_.size(); ++p) {
    const Processor& its = processors_[p];
    bool may = true, sure = true;
    if (m.shorthand() != ApicMessage::kNone) {
      may = p == sender ? m.shorthand() != ApicMessage::kAllButSelf
                        : m.shorthand() != ApicMessage::kSelf;
    } else if (!knows_destination) {
      sure = false;
    } else if (m.is_logical()) {
      sure = its.logical_id && its.is_flat;
      may = !sure || (*its.logical_id & m.destination) != 0;
    } else {
      may = m.destination == ids_[p] || m.destination == kToAll;
    }
    sets.may.set(p, may);
    sets.sure.set(p, may && sure);
  }
  return sets;
}

}  // namespace citcat
