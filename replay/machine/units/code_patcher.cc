#include "replay/machine/units/code_patcher.h"

#include <algorithm>
#include <cstring>

#include "replay/machine/replay_stopped.h"

namespace citcat {

bool CodePatcher::needs_canonical() const {
  const DecodedInstruction& info = *flight_.info;
  if (!cpu_.traits.sixteen_bit && !info.aliased && !(info.lock && info.is(Operation::neg)))
    return false;
  return std::memcmp(info.bytes.data(), info.canonical.data(), info.length) != 0;
}

void CodePatcher::lend_beyond(LinearAddr base, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i) beyond_.push_back(base.plus32(kRealSegmentBytes + i));
  flight_.wants_patch = true;
}

void CodePatcher::refuse_reading_own_code(PhysAddr a, std::uint32_t size) {
  if (!needs_canonical()) return;
  if (!overlap(a, size, flight_.physical, flight_.info->length)) return;
  throw ReplayStopped{cpu_.position,
                      "an instruction in an undocumented encoding reads its own bytes"};
}

void CodePatcher::put(PhysAddr at, std::uint8_t value, std::optional<PhysAddr> home) {
  cpu_.memory.ensure_mapped(at.page());
  std::uint8_t* host = cpu_.memory.host(at);
  patches_.push_back({at, home, *host, value});
  *host = value;
  patched_code_.push_back(at);
}

void CodePatcher::patch() {
  flight_.wants_patch = false;
  active_ = true;
  patches_.clear();
  if (needs_canonical()) {
    for (std::uint32_t i = 0; i < flight_.info->length; ++i) {
      if (flight_.info->bytes[i] == flight_.info->canonical[i]) continue;
      const PhysAddr at =
          cpu_.mmu.translate(cpu_.onward(cpu_.linear, i), Access::execute, cpu_.program());
      put(at, flight_.info->canonical[i], std::nullopt);
    }
  }
  for (const LinearAddr beyond : beyond_) {
    const PhysAddr home =
        cpu_.mmu.translate(beyond.plus32(0u - kRealSegmentBytes), Access::read, cpu_.program());
    const PhysAddr at = cpu_.mmu.translate(beyond, Access::write, cpu_.program());
    cpu_.memory.ensure_mapped(home.page());
    put(at, *cpu_.memory.host(home), home);
  }
  beyond_.clear();
  forget_code();
  for (const Patch& patch : patches_) patched_code_.push_back(patch.at);
  flight_.resuming = true;
  cpu_.engine.step_once();
}

void CodePatcher::restore() {
  active_ = false;
  const auto stored = [&](PhysAddr a) {
    return std::any_of(flight_.stores.begin(),
                       flight_.stores.begin() + static_cast<std::ptrdiff_t>(flight_.store_count),
                       [&](const InFlight::Store& s) {
                         return a >= s.physical && a.minus32(s.physical) < s.size;
                       });
  };
  for (const Patch& patch : patches_) {
    std::uint8_t* host = cpu_.memory.host(patch.at);
    if (patch.home && *host != patch.patched) *cpu_.memory.host(*patch.home) = *host;
    if (!stored(patch.at)) *host = patch.original;
  }
  patches_.clear();
}

void CodePatcher::forget_code() {
  for (const PhysAddr at : patched_code_) cpu_.engine.invalidate_code(at, 1);
  patched_code_.clear();
  cpu_.code.forget();
}

}  // namespace citcat
