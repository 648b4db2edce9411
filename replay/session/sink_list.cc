// Several sinks as one.

#include <algorithm>

#include "replay/session/replayer.h"

namespace citcat {

bool SinkList::wants_reads() const {
  return std::any_of(sinks_.begin(), sinks_.end(), [](const Sink* s) { return s->wants_reads(); });
}
void SinkList::instruction(const ExecutedInstruction& e, Position now) {
  each([&](Sink& s) { s.instruction(e, now); });
}
void SinkList::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
  each([&](Sink& s) { s.iterations(first, count, step, now); });
}
void SinkList::fetch(PhysAddr a, std::uint32_t size, Position now) {
  each([&](Sink& s) { s.fetch(a, size, now); });
}
void SinkList::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  each([&](Sink& s) { s.read(a, size, kind, now); });
}
void SinkList::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                     Position now) {
  each([&](Sink& s) { s.write(a, bytes, kind, now); });
}
void SinkList::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  each([&](Sink& s) { s.io_read(port, size, value, now); });
}
void SinkList::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  each([&](Sink& s) { s.io_write(port, size, value, now); });
}
void SinkList::delivered(const DeliveredEvent& event, Position now) {
  each([&](Sink& s) { s.delivered(event, now); });
}
void SinkList::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  each([&](Sink& s) { s.external_write(a, bytes, now); });
}
void SinkList::halted(Position now) {
  each([&](Sink& s) { s.halted(now); });
}
void SinkList::cache_flushed(bool write_back, Position now) {
  each([&](Sink& s) { s.cache_flushed(write_back, now); });
}
void SinkList::shutdown(Position now) {
  each([&](Sink& s) { s.shutdown(now); });
}
void SinkList::address_space(std::uint32_t cr3, Position now) {
  each([&](Sink& s) { s.address_space(cr3, now); });
}
void SinkList::mapping(LinearAddr page, PhysAddr frame, Position now) {
  each([&](Sink& s) { s.mapping(page, frame, now); });
}
Detail SinkList::detail() const {
  Detail most = Detail::nothing;
  for (const Sink* s : sinks_) most = std::max(most, s->detail());
  return most;
}
void SinkList::block(const ExecutedBlock& block, Position first) {
  each([&](Sink& s) { s.block(block, first); });
}
Sink* SinkList::block_receiver() {
  const auto receives = [](Sink* s) { return s->block_receiver() != nullptr; };
  const auto count = std::count_if(sinks_.begin(), sinks_.end(), receives);
  if (count == 0) return nullptr;
  if (count != 1) return this;
  return (*std::find_if(sinks_.begin(), sinks_.end(), receives))->block_receiver();
}
Sink* SinkList::comparing() {
  for (Sink* s : sinks_) {
    if (Sink* const found = s->comparing()) return found;
  }
  return nullptr;
}

}  // namespace citcat
