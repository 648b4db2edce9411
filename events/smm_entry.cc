#include "events/smm_entry.h"

namespace citcat {
namespace {

constexpr std::uint32_t kSaveTop = 0x10000;  ///< the saved state grows down from here
constexpr std::uint32_t kHandler = 0x8000;
constexpr std::uint32_t kSavedBytes = 512;  ///< SMBASE + FE00h to FFFFh
constexpr std::uint32_t kRevisionOffset = 0xfefc;
/// What the 486 and Pentium align SMBASE to (SDM vol. 3, 34.11). By fills, which do not show the
/// words saved, an entry is told where SMBASE is such a multiple.
constexpr std::uint32_t kBaseAlignment = 0x8000;
/// The address bits by which a line may belong to a saved state.
constexpr std::uint32_t kFillMask = (kBaseAlignment - 1) & ~(kSavedBytes - 1);
/// Lines of the saved state may be in the cache already; this many in a row are no coincidence.
constexpr std::uint32_t kFewestLines = 4;
constexpr std::uint32_t kLineBytes = 32;

}  // namespace

SmmEntryDetector::Watch SmmEntryDetector::watch_of(BusOp op, std::uint16_t flags) {
  if (op == BusOp::data_write) return {kPageMask, kLastWord};
  if ((flags & kStoreFill) != 0) return {kFillMask, kFillMask};
  return {};
}

void SmmEntryDetector::begin(const BusTransaction& t, const Position& position,
                             const BusAnchor& before, std::uint32_t base, std::uint32_t next,
                             bool fills) {
  entry_ = {
      t.has(kPositionKnown), position, before, t.index, base, PhysAddr{base + kRevisionOffset},
      std::nullopt};
  next_ = next;
  fills_ = fills;
  half_ = !fills && t.size == 2;
  count_ = fills ? 1 : t.size;
}

/// The next store of a saved state: a dword, or its lower half and then its upper one, as a bus of
/// two bytes has them.
bool SmmEntryDetector::goes_on(const BusTransaction& t) {
  if (half_) {
    if (t.size != 2 || t.address.value != next_ + 6) return false;
    half_ = false;
  } else {
    if ((t.size != 4 && t.size != 2) || t.address.value != next_) return false;
    half_ = t.size == 2;
    if (t.address == entry_.revision_at) entry_.revision = t.data[0];
    next_ -= 4;
  }
  count_ += t.size;
  return true;
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
  if (continues(t, position, false) && goes_on(t)) {
    if (!named_ || count_ != kSavedBytes) return std::nullopt;
    named_ = false;
    count_ = 0;
    return entry_;
  }
  if ((t.size == 4 || t.size == 2) && t.address.offset_in_page() == kLastWord &&
      t.address.value >= kSaveTop - 4 && t.address.value >> 32 == 0) {
    begin(t, position, before, t.address.low32() + 4 - kSaveTop, t.address.low32() - 4, false);
  } else {
    count_ = 0;
  }
  return std::nullopt;
}

std::optional<SmmEntryDetector::Entry> SmmEntryDetector::read(const BusTransaction& t,
                                                              const Position& position,
                                                              const BusAnchor& before) {
  if (t.address.value >> 32 != 0) {  // SMBASE has 32 bits
    count_ = 0;
    return std::nullopt;
  }
  const std::uint32_t line = t.address.begin_of(kLineBytes).low32();
  if (t.op == BusOp::data_read && t.has(kStoreFill)) {
    const std::uint32_t base = (line & ~(kSavedBytes - 1)) + kSavedBytes - kSaveTop;
    if ((line & kFillMask) != kFillMask || line < kSaveTop - kSavedBytes) {
      count_ = 0;
    } else if (!continues(t, position, true) || base != entry_.smbase || line > next_) {
      begin(t, position, before, base, line, true);
    } else if (line < next_) {
      ++count_;
      next_ = line;
    }
    return std::nullopt;
  }
  const std::uint32_t run = count_;
  count_ = 0;
  const bool whole = fills_ ? run >= kFewestLines : run == kSavedBytes;
  const std::uint32_t handler = entry_.smbase + kHandler;
  const bool starts = t.op == BusOp::code_read || t.op == BusOp::instruction_start;
  if (!whole || !starts || handler - t.address.low32() >= t.size) return std::nullopt;
  // An SMI between two iterations of a REP leaves them behind.
  if (t.has(kPositionKnown) != entry_.position_known ||
      position.instruction != entry_.position.instruction) {
    return std::nullopt;
  }
  return entry_;
}

}  // namespace citcat
