#include "replay/verify/branch_matcher.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "replay/verify/comparison_policy.h"

namespace citcat {

namespace {

constexpr const char* kNotTaken = "the processor took a branch that the replay did not";

/// Branches remembered until their message comes, and transactions between a message and a write
/// that went out before it or after it.
constexpr std::size_t kMaxBranches = std::size_t{1} << 16;
constexpr std::uint64_t kMaxOvertaking = 1024;

}  // namespace

std::optional<Mismatch> BranchMatcher::observe(const Reported& byte, ComparisonResult& result) {
  const BusTransaction& t = starts_.front();
  const std::size_t n = std::min<std::size_t>(t.size, byte.bytes.size());
  const bool equal = t.address == byte.address && t.has(kPrefix) == byte.prefix &&
                     std::memcmp(t.data.data(), byte.bytes.data(), n) == 0;
  CheckCount& count = result.totals.instructions;
  if (!byte.prefix) ++count.checked;
  if (!equal) {
    char text[64];
    std::snprintf(text, sizeof text, "%s at %08x: ", byte.prefix ? "prefix" : "instruction",
                  byte.address.u32());
    return Mismatch{"the processor executed another instruction", t, text + packed_hex(byte.bytes)};
  }
  if (!byte.prefix) {
    ++count.equal;
    last_opcode_ = t.data[0];
  }
  result.last_agreed = t.index;
  starts_.pop_front();
  return std::nullopt;
}

std::optional<Mismatch> BranchMatcher::goes_on_elsewhere(Position end, PhysAddr next) const {
  // After POP CS and MOV CS the queue still has what was fetched from the old segment.
  constexpr std::uint8_t kPopCs = 0x0f, kMovSegment = 0x8e;
  if (starts_.empty() || last_opcode_ == kPopCs || last_opcode_ == kMovSegment) return std::nullopt;
  const BusTransaction& t = starts_.front();
  const bool is_next = t.has(kPositionKnown) && !t.has(kBranchTarget) && t.position == end;
  if (!is_next || t.address == next) return std::nullopt;
  char text[48];
  std::snprintf(text, sizeof text, "the next instruction at %08x", next.u32());
  return Mismatch{"the processor went on elsewhere", t, text};
}

/// Takes the messages away whose branch the replay made.
void BranchMatcher::match(ComparisonResult& result) {
  while (!starts_.empty()) {
    const BusTransaction& t = starts_.front();
    const auto reached = [&](std::uint32_t at) { return at - t.address.low32() < t.size; };
    const auto found = std::find_if(taken_.begin(), taken_.end(), [&](const Target& b) {
      return reached(b.linear.low32()) || reached(b.eip);
    });
    if (found == taken_.end()) break;
    taken_.erase(taken_.begin(), found + 1);
    waits_since_.reset();
    ++result.totals.instructions.checked;
    ++result.totals.instructions.equal;
    starts_.pop_front();
  }
}

/// The next instruction begins here: notes it where that is not after the one before.
void BranchMatcher::note(LinearAddr linear, std::uint32_t eip) {
  if (linear == next_linear_ && !after_branch_) return;
  if (taken_.size() == kMaxBranches) taken_.pop_front();
  taken_.push_back({linear, eip});
}

std::optional<Mismatch> BranchMatcher::observe(const ExecutedInstruction& e, Position now,
                                               ComparisonResult& result) {
  note(e.linear, static_cast<std::uint32_t>(e.offset));
  next_linear_ = e.linear.plus32(e.info->length);
  after_branch_ = e.info->control_flow;
  match(result);
  if (starts_.empty()) return std::nullopt;
  if (!waits_since_) waits_since_ = now.instruction;
  const BusTransaction& t = starts_.front();
  const bool overtaken =
      result.last_agreed != kNoTransaction && t.index + kMaxOvertaking < result.last_agreed;
  if (!overtaken && now.instruction < *waits_since_ + kMaxIdle) return std::nullopt;
  ++result.totals.instructions.checked;
  char text[32];
  std::snprintf(text, sizeof text, "instruction at %08x", e.linear.u32());
  return Mismatch{kNotTaken, t, text};
}

std::optional<Mismatch> BranchMatcher::left_before(Position end, ComparisonResult& result) {
  match(result);
  const bool left =
      !starts_.empty() && starts_.front().has(kBranchTarget) && is_left_at(starts_.front(), end);
  if (!left) return std::nullopt;
  return Mismatch{kNotTaken, starts_.front(), "the end of the replay"};
}

}  // namespace citcat
