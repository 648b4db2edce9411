// Flags that no manual defines, and where memory holds images of them.

#include <cstring>

#include "replay/verify/verifier.h"

namespace citcat {

namespace {

constexpr std::uint32_t all_bits(std::uint32_t bytes) { return bytes >= 4 ? ~0u : 0xffff; }

}  // namespace

/// Which bits of each four bytes of a store have values that no manual tells.
std::uint32_t Verifier::unspecified_bits(std::span<const std::uint8_t> bytes) {
  if (made_by_specific_store()) return 0xffffffff;
  if (machine_->reserved_bits() != 0) return machine_->reserved_bits();
  if (bytes.size() != 4 && bytes.size() != 2) return 0;
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  const std::uint32_t mask = all_bits(static_cast<std::uint32_t>(bytes.size()));
  return flags_.undefined_in_store(value, [&] { return machine_->engine().eflags() & mask; });
}

void Verifier::follow_flags(const DecodedInstruction& info) {
  flags_.completed(info, machine_->engine().gpr(kEcx));
  const bool loads = info.kind == InstructionClass::iret || info.kind == InstructionClass::popf;
  // Without a write-back cache images have been compared, and adopted, when they were stored.
  if (loads && recording_.bus.form == CacheForm::write_back) flags_.reloaded();
}

void Verifier::follow_untold_flags() {
  if (plain_) flags_.completed(machine_->take_untold_flags());
}

/// Of a plain comparison: remembers a store that may be an image of EFLAGS, and returns the image
/// that it overwrites. One that nobody tells is not remembered, nor one that is not aligned.
std::optional<Verifier::FlagImage> Verifier::note_image(PhysAddr a,
                                                        std::span<const std::uint8_t> bytes) {
  const bool plain_store = bytes.size() == 4 && (a.value & 3) == 0;
  if (!plain_store || recording_.bus.form != CacheForm::write_back) return std::nullopt;
  follow_untold_flags();
  const std::uint32_t undefined = unspecified_bits(bytes);
  std::optional<FlagImage> overwritten;
  const auto old = flag_images_.find(a.value);
  if (old != flag_images_.end()) {
    overwritten = old->second;
    flag_images_.erase(old);
  }
  FlagImage image{0, undefined};
  std::memcpy(&image.value, bytes.data(), bytes.size());
  if (undefined != 0) flag_images_[a.value] = image;
  return overwritten;
}

/// Of a plain comparison: forgets images that stores nobody told have overwritten.
void Verifier::forget_lost_images() {
  const Memory& memory = machine_->memory();
  std::erase_if(flag_images_, [&](const auto& entry) {
    const PhysAddr at{entry.first};
    return !memory.is_mapped(at.page()) ||
           std::memcmp(memory.host(at), &entry.second.value, 4) != 0;
  });
}

/// Linux copies the frames of interrupts from one stack to another.
void Verifier::copied(PhysAddr from, PhysAddr to, std::uint32_t size) {
  if (flag_images_.empty()) return;
  for (std::uint32_t i = (0 - from.value) & 3; i + 4 <= size; i += 4) {
    const auto image = flag_images_.find(from.value + i);
    if (image != flag_images_.end()) flag_images_[to.value + i] = FlagImage{image->second};
  }
}

/// The byte belongs to an image of EFLAGS that memory still holds as it was stored, and differs
/// from the captured only in flags that no manual tells.
bool Verifier::is_image(PhysAddr a, std::uint8_t captured) const {
  const PhysAddr at{a.value & ~3u};
  const auto image = flag_images_.find(at.value);
  if (options_.policy.strict || image == flag_images_.end()) return false;
  const Memory& memory = machine_->memory();
  if (!memory.is_mapped(at.page()) || !memory.is_defined(at, 4)) return false;
  const FlagImage& stored = image->second;
  const unsigned shift = 8 * (a.value & 3);
  const auto ours = static_cast<std::uint8_t>(stored.value >> shift);
  return std::memcmp(memory.host(at), &stored.value, 4) == 0 &&
         ((ours ^ captured) & ~(stored.undefined >> shift) & 0xff) == 0;
}

}  // namespace citcat
