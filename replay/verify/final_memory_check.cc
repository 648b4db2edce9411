#include "replay/verify/final_memory_check.h"

namespace citcat {

FinalMemoryCheck::FinalMemoryCheck(const MemoryImage& before, const Schedule& schedule,
                                   Options options)
    : schedule_(schedule), external_writes_(schedule.external_writes), options_(options) {
  if (options_.keeps_model) model_ = before.clone();
}

void FinalMemoryCheck::note_device(const BusTransaction& t) {
  for (std::uint32_t i = 0; i < t.size; ++i)
    progress_.device_bytes.insert(t.address.plus32(i).value);
}

void FinalMemoryCheck::forget_device(const BusTransaction& t) {
  for (std::uint32_t i = 0; i < t.size; ++i)
    progress_.device_bytes.erase(t.address.plus32(i).value);
}

bool FinalMemoryCheck::is_device(const BusTransaction& t) const {
  if (progress_.device_bytes.empty()) return false;
  for (std::uint32_t i = 0; i < t.size; ++i)
    if (progress_.device_bytes.contains(t.address.plus32(i).value)) return true;
  return false;
}

void FinalMemoryCheck::confirm(const BusTransaction& line) {
  const std::uint64_t last = line_of(line.address.plus32(line.size - 1u));
  for (std::uint64_t n = line_of(line.address); n <= last; ++n)
    progress_.unconfirmed_lines.erase(n);
}

void FinalMemoryCheck::end() {
  if (options_.keeps_model) model_external_writes(kNoTransaction);
}

/// Brings into the model what other bus masters wrote, as far as reads before `transaction` showed.
void FinalMemoryCheck::model_external_writes(std::uint64_t transaction) {
  for (; progress_.next_external < schedule_.external_writes.size(); ++progress_.next_external) {
    const ExternalWrite& w = external_writes_[progress_.next_external];
    if (w.transaction >= transaction) return;
    model_.set(w.address, w.data);
  }
}

FinalMemory FinalMemoryCheck::compare(const Memory& memory, const MemoryImage* captured,
                                      const MayDiffer& may_differ) const {
  constexpr std::uint32_t kTogether = 64;  // bytes that are compared at once first
  FinalMemory result;
  const MemoryImage& reference = captured != nullptr ? *captured : model_;
  for (const auto& [number, page] : reference.pages()) {
    const auto next = [&](std::uint32_t i) {
      return static_cast<std::uint32_t>(page->valid.next(i));
    };
    for (std::uint32_t i = next(0); i < kPageSize; i = next(i + 1)) {
      const PhysAddr at{number * kPageSize + i};
      if (i % kTogether == 0 && page->valid.all(i, kTogether) &&
          memory.holds(at, {&page->data[i], kTogether})) {
        result.bytes += kTogether;
        i += kTogether - 1;
        continue;
      }
      compare_byte(at, page->data[i], memory, captured != nullptr, may_differ, result);
    }
  }
  return result;
}

void FinalMemoryCheck::compare_byte(PhysAddr at, std::uint8_t byte, const Memory& memory,
                                    bool with_image, const MayDiffer& may_differ,
                                    FinalMemory& result) const {
  bool known = false, equal = false;
  memory.for_each_alias(at, [&](PhysAddr alias) {
    const auto held = memory.defined_byte(alias);
    known |= held.has_value();
    equal |= held == byte;
  });
  if (!known) return;
  if (!equal && progress_.beyond_end.count(at.value) != 0) return;
  if (!equal && with_image && progress_.device_bytes.count(at.value) != 0) {
    ++result.device;
    return;
  }
  ++result.bytes;
  if (equal) return;
  if (with_image && may_differ(at, byte)) {
    ++result.adopted;
  } else if (with_image && options_.knows_lines && !is_unconfirmed(at)) {
    ++result.external_unseen;
  } else {
    ++result.different;
    constexpr std::size_t kMaxListed = 4096;
    if (result.differences.size() < kMaxListed) result.differences.push_back(at);
  }
}

}  // namespace citcat
