#include "capture/import/lone_counts.h"

#include <algorithm>
#include <utility>

namespace citcat {
namespace {

/// Parts of a line, which go in several records.
constexpr std::size_t kMostParts = 2;
/// Counts of neighbours may be in either order (position_audit.h).
constexpr std::uint64_t kDisorder = 64;

bool is_counted(const ProcessorRecord& record) {
  const bool has_count = record.kind == ProcessorRecord::Kind::transaction ||
                         record.kind == ProcessorRecord::Kind::note;
  return has_count && record.record.instructions != kNoCount;
}

}  // namespace

void LoneCounts::add(const ProcessorRecord& record, std::uint64_t number) {
  held_.push_back({record, number});
}

/// Held records from the first on that have its count.
std::size_t LoneCounts::same_count() const {
  std::size_t n = 1;
  while (n < held_.size() && n < kMostParts && is_counted(held_[n].record) &&
         held_[n].record.record.instructions == held_.front().record.record.instructions) {
    ++n;
  }
  return n;
}

/// `parts` records of one count are between what was believed and the next one.
bool LoneCounts::is_lone(std::size_t parts) const {
  if (parts >= held_.size() || !is_counted(held_[parts].record)) return false;
  const std::uint64_t here = held_.front().record.record.instructions;
  const std::uint64_t next = held_[parts].record.record.instructions;
  if (next + kDisorder < reached_) return false;  // it is not this one that is out of order
  return here > next + kDisorder || here + kDisorder < reached_;
}

bool LoneCounts::take(ProcessorRecord& out) {
  if (held_.empty()) return false;
  if (is_counted(held_.front().record)) {
    const std::size_t parts = same_count();
    if (!ended_ && held_.size() <= parts) return false;
    if (is_lone(parts)) {
      for (std::size_t i = 0; i < parts; ++i) {
        held_[i].record.record.instructions = kNoCount;
        held_[i].record.record.iterations = 0;
        held_[i].record.note.is_lone = true;
        lone_.push_back(held_[i].number);
      }
    } else {
      reached_ = std::max(reached_, held_.front().record.record.instructions);
    }
  }
  out = std::move(held_.front().record);
  held_.pop_front();
  return true;
}

std::vector<std::uint64_t> LoneCounts::take_lone() { return std::exchange(lone_, {}); }

}  // namespace citcat
