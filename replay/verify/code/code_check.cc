#include "replay/verify/code/code_check.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "replay/machine/executed_block.h"

namespace citcat {

CodeCheck::CodeCheck(std::vector<KnownCode> known) {
  std::sort(known.begin(), known.end(),
            [](const KnownCode& a, const KnownCode& b) { return a.begin.value < b.begin.value; });
  for (KnownCode& code : known) {
    const std::size_t size = code.bytes.size();
    stretches_.push_back({std::move(code), std::vector<std::uint16_t>(size, kUnseen)});
  }
}

void CodeCheck::instruction(const ExecutedInstruction& e, Position) {
  note(e.linear, {e.info->bytes.data(), e.info->length});
}

void CodeCheck::ran(std::span<const ExecutedBlock> blocks, Position, std::uint32_t) {
  for (const ExecutedBlock& block : blocks) take(block);
}

void CodeCheck::take(const ExecutedBlock& block) {
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const DecodedInstruction& info = block.decoded(i);
    note(block.linear(i), {info.bytes.data(), info.length});
  }
}

/// The last one that begins at or before the address, where it reaches so far.
CodeCheck::Stretch* CodeCheck::find(LinearAddr linear) {
  const auto holds = [&](const Stretch& s) {
    return linear.value - s.code.begin.value < s.code.bytes.size();
  };
  if (last_ != nullptr && holds(*last_)) return last_;
  const auto behind =
      std::upper_bound(stretches_.begin(), stretches_.end(), linear.value,
                       [](std::uint64_t a, const Stretch& s) { return a < s.code.begin.value; });
  if (behind == stretches_.begin() || !holds(*(behind - 1))) return nullptr;
  return last_ = &*(behind - 1);
}

void CodeCheck::note(LinearAddr linear, std::span<const std::uint8_t> bytes) {
  Stretch* const stretch = find(linear);
  if (stretch == nullptr) return;
  const std::size_t at = linear.value - stretch->code.begin.value;
  const std::size_t count = std::min(bytes.size(), stretch->executed.size() - at);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t& executed = stretch->executed[at + i];
    if (executed == kUnseen) executed = bytes[i];
  }
}

/// Nothing else differs near this byte.
bool CodeCheck::is_alone(const Stretch& stretch, std::size_t at) {
  constexpr std::size_t kNear = 16;
  const std::size_t first = at - std::min(at, kNear);
  const std::size_t end = std::min(at + kNear + 1, stretch.executed.size());
  for (std::size_t i = first; i < end; ++i) {
    if (i == at || stretch.executed[i] == kUnseen) continue;
    if (stretch.executed[i] != stretch.code.bytes[i]) return false;
  }
  return true;
}

CodeComparison CodeCheck::result() const {
  CodeComparison out;
  for (const Stretch& stretch : stretches_) {
    const KnownCode& code = stretch.code;
    for (std::size_t i = 0; i < stretch.executed.size(); ++i) {
      if (stretch.executed[i] == kUnseen) continue;
      const auto executed = static_cast<std::uint8_t>(stretch.executed[i]);
      ++out.bytes;
      if (executed == code.bytes[i]) {
        ++out.equal;
      } else if (std::has_single_bit(static_cast<unsigned>(executed ^ code.bytes[i])) &&
                 is_alone(stretch, i)) {
        out.doubts.push_back({LinearAddr{code.begin.value + i}, executed, code.bytes[i], code.file,
                              code.offset + i});
      } else {
        ++out.changed;
      }
    }
  }
  return out;
}

}  // namespace citcat
