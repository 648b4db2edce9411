// Write-backs: the line as it was when the cache gave it up, somewhere within one instruction.

#include <algorithm>

#include "replay/verify/verifier.h"

namespace citcat {

bool Verifier::line_matches(PendingLine& line) const {
  if (line.t.address.offset_in_page() + line.t.size <= kPageSize &&
      machine_->memory().holds(line.t.address, line.t.bytes())) {
    line.unmatched = 0;
    return true;
  }
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) == 0) continue;
    const auto byte = machine_->memory().defined_byte(line.t.address + i);
    if (byte && *byte == line.t.data[i]) line.unmatched &= ~(1u << i);
  }
  return line.unmatched == 0;
}

void Verifier::line_agreed(const BusTransaction& t, std::uint8_t parts) {
  VerifyTotals& totals = result_.totals;
  totals.write_backs.checked += parts;
  totals.write_backs.equal += parts;
  totals.evidence_bytes += t.size;
  result_.last_agreed = t.index;
  final_memory_.line_agreed(t);
  if (!flag_images_.empty()) {
    for (std::uint32_t b = 0; b < t.size; b += 4) flag_images_.erase(t.address.value + b);
  }
  if (specific_bytes_.empty()) return;
  const std::uint32_t number = line_of(t.address.value);
  const std::uint32_t last = line_of(t.address.value + t.size - 1);
  if (!specific_lines_.contains(number) && !specific_lines_.contains(last)) return;
  for (std::uint32_t b = 0; b < t.size; ++b) {
    // A byte may have been seen equal before the instruction stored what is there now.
    if (machine_->memory().defined_byte(t.address + b) == t.data[b])
      specific_bytes_.erase(t.address.value + b);
  }
}

/// A byte is overwritten that a line written back before shows as it was: differences where no
/// manual tells the value cannot be adopted any more, and are no contradiction.
void Verifier::excuse_overwritten(PhysAddr a, Position now) {
  const auto old = specific_bytes_.find(a.value);
  if (old == specific_bytes_.end()) return;
  for (PendingLine& line : lines_) {
    if (line.t.has(kPositionKnown) && line.t.position.instruction > now.instruction) break;
    const std::uint32_t byte = a.value - line.t.address.value;
    if (byte >= line.t.size) continue;
    if (((line.t.data[byte] ^ old->second.value) & ~old->second.bits) != 0) continue;
    line.unmatched &= ~(1u << byte);
  }
}

/// The same of an image of EFLAGS that the frame of an event overwrites.
void Verifier::excuse_image(PhysAddr a, const FlagImage& old, Position now) {
  for (PendingLine& line : lines_) {
    if (line.t.has(kPositionKnown) && line.t.position.instruction > now.instruction) break;
    const std::uint32_t first = a.value - line.t.address.value;
    if (first >= line.t.size || line.t.size - first < 4) continue;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t different = line.t.data[first + i] ^ (old.value >> 8 * i & 0xff);
      if ((different & ~(old.undefined >> 8 * i)) == 0) line.unmatched &= ~(1u << (first + i));
    }
  }
}

/// Without positions: a line must at some moment between two events have been what was written
/// back. Called when the line was announced and after every store to it.
bool Verifier::settle_lines(std::uint32_t window) {
  const auto it = window_lines_.find(window);
  if (it == window_lines_.end()) return false;
  // Several write-backs in a row may show the same contents: the line was modified and restored,
  // or given up again unchanged.
  bool any = false;
  while (!it->second.empty()) {
    PendingLine pending{it->second.front(), all_bytes(it->second.front().size)};
    if (!line_matches(pending)) return any;
    line_agreed(pending.t, pending.parts);
    it->second.pop_front();
    any = true;
  }
  window_lines_.erase(it);
  return any;
}

void Verifier::forgive_line(PhysAddr a) {
  const PhysAddr at = machine_->memory().captured(a);
  const auto it = window_lines_.find(window_of(at));
  if (it == window_lines_.end()) return;
  std::deque<BusTransaction>& waiting = it->second;
  const auto first = std::find_if(waiting.begin(), waiting.end(), [&](const BusTransaction& t) {
    return overlap(at, 1, t.address, t.size);
  });
  if (first != waiting.end()) waiting.erase(first);
  if (waiting.empty()) window_lines_.erase(it);
}

void Verifier::settle_window(Position now) {
  while (!window_lines_.empty()) {
    const PhysAddr first = window_lines_.begin()->second.front().address;
    if (settle_lines(window_of(first))) continue;
    PendingLine pending{window_lines_.begin()->second.front(), 0};
    pending.unmatched = all_bytes(pending.t.size);
    line_matches(pending);
    if (adopt_line(pending)) continue;
    ++result_.totals.write_backs.checked;
    stop_with({"a line written back holds other bytes than the replay's memory ever did", pending.t,
               memory_text(machine_->memory(), pending.t.address, pending.t.size)},
              now);
  }
}

void Verifier::check_lines(Position next) {
  for (std::size_t i = 0; i < lines_.size();) {
    PendingLine& line = lines_[i];
    if (line.t.has(kPositionKnown) && line.t.position > next) return;
    if (!line_matches(line)) {
      ++i;
      continue;
    }
    line_agreed(line.t, line.parts);
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Of a plain comparison: memory now holds what the line shows, but for flags in images. What a
/// line shows of an image that has been overwritten must not be taken for the one that did.
bool Verifier::shows_images_alone(const PendingLine& line) const {
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    const PhysAddr at = line.t.address + i;
    const bool equal = machine_->memory().defined_byte(at) == line.t.data[i];
    if (!equal && !is_image(at, line.t.data[i])) return false;
  }
  return true;
}

bool Verifier::adopt_line(PendingLine& line) {
  const bool believed = is_waived(line.t.index);
  if (plain_ && !believed && !shows_images_alone(line)) return false;
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) == 0) continue;
    const PhysAddr at = line.t.address + i;
    if (!believed && !plain_ && !may_differ(at, line.t.data[i])) return false;
  }
  for (std::uint32_t i = 0; i < line.t.size; ++i) {
    if ((line.unmatched >> i & 1) == 0) continue;
    machine_->memory().external_write(line.t.address + i, {&line.t.data[i], 1});
    result_.adoptions.push_back({machine_->position(), false, line.t.address + i, line.t.data[i]});
  }
  const std::uint32_t part = line.t.size / line.parts;
  for (std::uint32_t first = 0; first < line.t.size; first += part) {
    if ((line.unmatched >> first & all_bytes(part)) != 0) ++result_.totals.adopted;
  }
  return true;
}

void Verifier::expire_lines(Position completed, bool in_repeat) {
  for (PendingLine& line : lines_) {
    if (!line.t.has(kPositionKnown) || line.t.position > completed) break;
    // An interrupted REP counts its iterations from zero again: the line may have been given up
    // behind those that are still to come.
    if (in_repeat && line.t.position.instruction == completed.instruction) break;
    if (adopt_line(line)) continue;
    ++result_.totals.write_backs.checked;
    stop_with({"a line written back holds other bytes than the replay's memory", line.t,
               memory_text(machine_->memory(), line.t.address, line.t.size)},
              completed);
  }
  if (!lines_.empty()) check_lines(completed);
}

/// The byte's value is one that no manual tells, and differs from the captured only where it does.
bool Verifier::may_differ(PhysAddr a, std::uint8_t captured) const {
  if (options_.policy.strict) return false;
  const auto specific = specific_bytes_.find(a.value);
  const auto ours = machine_->memory().defined_byte(a);
  return specific != specific_bytes_.end() && ours &&
         ((*ours ^ captured) & ~specific->second.bits) == 0;
}

}  // namespace citcat
