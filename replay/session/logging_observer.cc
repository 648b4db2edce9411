#include "replay/session/logging_observer.h"

#include <fmt/format.h>

#include "events/position_text.h"
#include "replay/machine/delivery_name.h"

namespace citcat {

namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

const char* access_name(AccessKind kind) {
  switch (kind) {
    case AccessKind::data:
      return "data";
    case AccessKind::walk:
      return "walk";
    case AccessKind::system:
      return "system";
  }
  return "?";
}

}  // namespace

void LoggingObserver::instruction(const ExecutedInstruction& e, Position now) {
  std::string text = fmt::format("{} instruction {:08x} {}", position_text(now), e.linear.value,
                                 hex({e.info->bytes.data(), e.info->length}));
  for (unsigned i = 0; i < e.ea_count; ++i) text += fmt::format(" ea {:08x}", e.ea[i].value);
  line_(text);
}

void LoggingObserver::fetch(PhysAddr a, std::uint32_t size, Position now) {
  line_(fmt::format("{} fetch {:08x}, {} bytes", position_text(now), a.value, size));
}

void LoggingObserver::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  line_(fmt::format("{} {} read {:08x}, {} bytes", position_text(now), access_name(kind), a.value,
                    size));
}

void LoggingObserver::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                            Position now) {
  line_(fmt::format("{} {} write {:08x} {}", position_text(now), access_name(kind), a.value,
                    hex(bytes)));
}

void LoggingObserver::mapping(LinearAddr page, PhysAddr frame, Position now) {
  line_(fmt::format("{} page {:08x} is at {:08x}", position_text(now), page.value, frame.value));
}

void LoggingObserver::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                              Position now) {
  line_(fmt::format("{} in {:04x} = {:0{}x}", position_text(now), port, value, 2 * size));
}

void LoggingObserver::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                               Position now) {
  line_(fmt::format("{} out {:04x} = {:0{}x}", position_text(now), port, value, 2 * size));
}

void LoggingObserver::delivered(const DeliveredEvent& event, Position now) {
  line_(fmt::format("{} {} {:02x} at {:04x}:{:08x}, error code {:x}, flags {:08x}, cr2 {:08x}",
                    position_text(now), delivery_name(event.kind), event.vector, event.cs,
                    event.eip, event.error_code, event.eflags, event.cr2));
}

void LoggingObserver::external_write(PhysAddr a, std::span<const std::uint8_t> bytes,
                                     Position now) {
  line_(fmt::format("{} external write {:08x} {}", position_text(now), a.value, hex(bytes)));
}

void LoggingObserver::translation_dropped(LinearAddr page, Position now) {
  line_(fmt::format("{} translation of page {:08x} dropped", position_text(now), page.value));
}

void LoggingObserver::halted(Position now) { line_(fmt::format("{} halted", position_text(now))); }

void LoggingObserver::cache_flushed(bool write_back, Position now) {
  line_(fmt::format("{} cache flushed{}", position_text(now), write_back ? " and written" : ""));
}

void LoggingObserver::shutdown(Position now) {
  line_(fmt::format("{} shut down", position_text(now)));
}

void LoggingObserver::address_space(AddressSpaceId cr3, Position now) {
  line_(fmt::format("{} cr3 = {:08x}", position_text(now), cr3));
}

}  // namespace citcat
