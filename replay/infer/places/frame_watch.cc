#include "replay/infer/places/frame_watch.h"

#include <algorithm>

#include "replay/machine/code_place.h"

namespace citcat {

namespace {

/// A handler that has not come back by then has gone to another process.
constexpr std::uint64_t kLongestHandler = 1 << 14;

/// Calls `visit` with each aligned dword of [a, a+size) and the mask of its bytes in it.
template <class F>
void for_each_dword(PhysAddr a, std::size_t size, F&& visit) {
  std::size_t done = 0;
  while (done < size) {
    const std::uint64_t at = a.value + done;
    const std::size_t n = std::min<std::size_t>(size - done, 4 - at % 4);
    visit(at & ~std::uint64_t{3}, static_cast<std::uint8_t>(((1u << n) - 1) << at % 4));
    done += n;
  }
}

}  // namespace

void FrameWatch::delivered(const DeliveredEvent& event, Position) {
  s_.delivering = false;
  if (!s_.expected || event.kind != DeliveredEvent::Kind::external) return;
  Frame f;
  f.id = *s_.expected;
  f.cs = event.cs;
  f.eip = event.eip;
  f.esp = whole_gpr(machine_->engine(), kEsp);
  s_.frames.push_back(std::move(f));
  s_.expected.reset();
  s_.delivering = true;
}

void FrameWatch::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position) {
  if (s_.frames.empty()) return;
  const PhysAddr at = machine_->memory().captured(a);
  for (Frame& f : s_.frames) {
    for_each_dword(at, bytes.size(), [&f](std::uint64_t dword, std::uint8_t mask) {
      if (!f.returned) {
        f.stored[dword] |= mask;
        return;
      }
      const auto old = f.stored.find(dword);
      if (old == f.stored.end()) return;
      old->second = static_cast<std::uint8_t>(old->second & ~mask);
      if (old->second == 0) f.stored.erase(old);
    });
    const bool over_eip = f.eip_at && f.eip_at->is_within32(at, bytes.size());
    if (over_eip && (!s_.delivering || &f != &s_.frames.back())) f.eip_at.reset();
  }
  // EIP is pushed last; after it come single bytes at most, accessed bits of descriptors.
  const bool is_word = bytes.size() == 2 || bytes.size() == 4 || bytes.size() == 8;
  if (s_.delivering && kind == AccessKind::system && is_word) {
    s_.frames.back().eip_at = at;
    s_.frames.back().eip_size = static_cast<std::uint8_t>(bytes.size());
  }
}

void FrameWatch::instruction(const ExecutedInstruction&, Position) {
  s_.delivering = false;
  for (Frame& f : s_.frames) ++f.age;
}

void FrameWatch::at_boundary() {
  const Engine& engine = machine_->engine();
  for (Frame& f : s_.frames) {
    if (f.returned || f.age == 0) continue;
    const bool is_back = whole_ip(engine) == f.eip && whole_gpr(engine, kEsp) == f.esp &&
                         engine.segment_selector(kCs) == f.cs;
    f.returned = is_back || f.age >= kLongestHandler;
  }
  std::erase_if(s_.frames, [](const Frame& f) { return f.returned && f.stored.empty(); });
}

std::vector<FrameWatch::Found> FrameWatch::written_back(PhysAddr line,
                                                        std::span<const std::uint8_t> data) const {
  std::vector<Found> found;
  for (const Frame& f : s_.frames) {
    Found here;
    here.id = f.id;
    here.returned = f.returned;
    here.age = f.age;
    for (std::uint32_t i = 0; i < data.size(); ++i) {
      const std::uint64_t at = line.value + i;
      const auto stored = f.stored.find(at & ~std::uint64_t{3});
      if (stored == f.stored.end() || (stored->second >> at % 4 & 1) == 0) continue;
      here.bytes.push_back({PhysAddr{at}, data[i]});
      if (!f.eip_at || at - f.eip_at->value >= f.eip_size) continue;
      const std::uint64_t shift = 8 * (at - f.eip_at->value);
      here.eip_mask |= std::uint64_t{0xff} << shift;
      here.eip |= std::uint64_t{data[i]} << shift;
    }
    if (!here.bytes.empty()) found.push_back(std::move(here));
  }
  return found;
}

}  // namespace citcat
