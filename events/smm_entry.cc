#include "events/smm_entry.h"

namespace citcat {
namespace {

constexpr std::uint32_t kSaveTop = 0x10000;  ///< the saved state grows down from here
constexpr std::uint32_t kHandler = 0x8000;
constexpr std::uint32_t kSavedDwords = 128;  ///< 512 bytes, SMBASE + FE00h to FFFFh
constexpr std::uint32_t kSavedBytes = 4 * kSavedDwords;
constexpr std::uint32_t kRevisionOffset = 0xfefc;
/// SMBASE after reset (SDM vol. 3, 34.4). A write-back cache does not show the words saved, so
/// only an entry at this base can be told by its fills.
constexpr std::uint32_t kResetBase = 0x30000;
/// Lines of the saved state may be in the cache already; this many in a row are no coincidence.
constexpr std::uint32_t kFewestLines = 4;
constexpr std::uint32_t kLineBytes = 32;

}  // namespace

SmmEntryDetector::Watch SmmEntryDetector::watch_of(BusOp op, std::uint16_t flags) {
  static_assert((kResetBase + kSaveTop) % kSavedBytes == 0);
  if (op == BusOp::data_write) return {kPageMask, kLastWord};
  if ((flags & kStoreFill) != 0) return {~(kSavedBytes - 1), kResetBase + kSaveTop - kSavedBytes};
  return {};
}

void SmmEntryDetector::begin(const BusTransaction& t, const Position& position,
                             const BusAnchor& before, std::uint32_t base, std::uint32_t next,
                             bool fills) {
  entry_ = {t.has(kPositionKnown), position, before, t.index, PhysAddr{base + kRevisionOffset},
            std::nullopt};
  base_ = base;
  next_ = next;
  fills_ = fills;
  count_ = 1;
}

bool SmmEntryDetector::continues(const BusTransaction& t, const Position& position,
                                 bool fills) const {
  return count_ != 0 && fills_ == fills && t.has(kPositionKnown) == entry_.position_known &&
         position == entry_.position;
}

std::optional<SmmEntryDetector::Entry> SmmEntryDetector::save(const BusTransaction& t,
                                                              const Position& position,
                                                              const BusAnchor& before) {
  if (t.has(kWriteBack)) return std::nullopt;  // victims of the fills
  if (t.size == 4 && t.address.value == next_ && continues(t, position, false)) {
    ++count_;
    next_ -= 4;
    if (t.address == entry_.revision_at) entry_.revision = t.data[0];
  } else if (t.size == 4 && (t.address.value & kPageMask) == kLastWord &&
             t.address.value >= kSaveTop - 4) {
    begin(t, position, before, t.address.value + 4 - kSaveTop, t.address.value - 4, false);
  } else {
    count_ = 0;
  }
  return std::nullopt;
}

std::optional<SmmEntryDetector::Entry> SmmEntryDetector::read(const BusTransaction& t,
                                                              const Position& position,
                                                              const BusAnchor& before) {
  const std::uint32_t line = t.address.value & ~(kLineBytes - 1);
  if (t.op == BusOp::data_read && t.has(kStoreFill)) {
    const bool saved = line >= kResetBase + kSaveTop - kSavedBytes && line < kResetBase + kSaveTop;
    if (!saved) {
      count_ = 0;
    } else if (!continues(t, position, true) || line > next_) {
      begin(t, position, before, kResetBase, line, true);
    } else if (line < next_) {
      ++count_;
      next_ = line;
    }
    return std::nullopt;
  }
  const std::uint32_t run = count_;
  count_ = 0;
  const bool whole = fills_ ? run >= kFewestLines : run == kSavedDwords;
  const std::uint32_t handler = base_ + kHandler;
  const bool starts = t.op == BusOp::code_read || t.op == BusOp::instruction_start;
  if (!whole || !starts || handler - t.address.value >= t.size) return std::nullopt;
  if (t.has(kPositionKnown) != entry_.position_known || position != entry_.position) {
    return std::nullopt;
  }
  return entry_;
}

}  // namespace citcat
