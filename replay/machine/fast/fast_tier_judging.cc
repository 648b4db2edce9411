// Blocks of the fast tier where somebody compares: each is judged with what it accessed, and undone
// where that does not agree.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "replay/machine/fast/fast_tier.h"

namespace citcat {

using fast::Block;
using fast::Exit;
using fast::LazyFlags;
using fast::Policy;
using fast::State;

/// Instructions before this one need not be told to the judge.
std::uint64_t FastTier::quiet_end() const {
  return expectation_.expects_stores ? 0 : std::min(limit_, expectation_.next.instruction);
}

void FastTier::run_judged() {
  State& s = *s_;
  while (s.left > 0) {
    make_room();
    const std::uint64_t end = quiet_end();
    if (end > position()) {
      // Until there nothing is asked.
      const std::uint64_t beyond = limit_ - end;
      s.left -= static_cast<std::int64_t>(beyond);
      limit_ = end;
      const Stretch stretch = run_stretch(true);
      limit_ += beyond;
      s.left += static_cast<std::int64_t>(beyond);
      if (stretch == Stretch::left) return;
      if (stretch == Stretch::ended) continue;
    }
    if (!judge_block()) return;
  }
}

/// Runs one block and has it judged. False where what is next has to be looked at elsewhere.
bool FastTier::judge_block() {
  State& s = *s_;
  const std::uint64_t first = position();
  const Block* block = find_block(eip_, Policy::logged);
  if (block == nullptr) return false;
  if (block->count > s.left) {
    block = &store_.cut(*block, static_cast<std::uint32_t>(s.left), Policy::logged);
  }
  // A string in which something is expected is told iteration by iteration (StringRunner).
  if (block->count == 0) return false;
  if (first + block->count > expectation_.next.instruction) {
    cpu_.position = {first, 0};
    expectation_.update();
  }
  cpu_.position = {first, 0};
  if (first < careful_until_ || !expectation_.judge->may_run_block(cpu_.position, block->count)) {
    return false;
  }
  const std::array<std::uint32_t, 9> registers = s.r;
  const LazyFlags flags = s.flags;
  const std::uint32_t system_flags = s.eflags, eip = eip_;
  const FlagEffect untold = s.untold;
  s.logged = 0;
  s.shift_count = 0;
  run_block(*block, area_.data());
  const std::uint32_t done = settle_block();
  s.untold = untold;
  if (done == 0) {
    s.shift_count = 0;
    tell_walks();
    return s.exit == Exit::patched;
  }
  if (!judge(*block, done, first)) {
    s.r = registers;
    s.flags = flags;
    s.eflags = system_flags;
    s.set_interrupts = false;
    s.shift_count = 0;
    eip_ = eip;
    roll_back(first, done);
    tell_walks();
    return false;
  }
  note_flags(*block, done);
  tell_block(*block, done, first);
  tell_walks();
  return s.exit == Exit::branch || s.exit == Exit::patched;
}

/// Tells the judge what `done` instructions of the block did. False: they are to be undone.
bool FastTier::judge(const Block& block, std::uint32_t done, std::uint64_t first) {
  State& s = *s_;
  const Position at{first, 0};
  const std::uint64_t wanted = expectation_.judge->reads_of_interest(at);
  stores_told_.clear();
  reads_told_.clear();
  for (std::uint32_t i = 0; i < s.logged; ++i) {
    const fast::LoggedAccess& access = s.log[i];
    const std::uint32_t instruction = block.number_of(access.op);
    if (!access.write) {
      if ((wanted >> std::min<std::uint32_t>(instruction, 63) & 1) != 0) {
        reads_told_.push_back({PhysAddr{access.physical}, access.size, instruction});
      }
      continue;
    }
    BlockStore& store = stores_told_.emplace_back();
    store.address = PhysAddr{access.physical};
    store.size = access.size;
    store.instruction = instruction;
    store.was_defined = access.was_defined;
    std::memcpy(store.value.data(), &access.after, 8);
    std::memcpy(store.before.data(), &access.before, 8);
  }
  const std::uint64_t end = first + done;
  const bool due =
      end > expectation_.next.instruction || (expectation_.expects_stores && !stores_told_.empty());
  if (!due) return true;
  const BlockCode& whole = *block.code;
  const BlockCode part = done == block.count ? BlockCode{} : whole.first(done);
  const JudgedBlock judged{done == block.count ? &whole : &part, stores_told_, reads_told_};
  cpu_.position = at;
  if (!expectation_.judge->agrees(judged, at)) return false;
  expectation_.judge->agreed(judged, at);
  return true;
}

/// Undoes the stores of the block that was run last. It is made instruction by instruction then.
void FastTier::roll_back(std::uint64_t first, std::uint32_t done) {
  ++cpu_.stats.rolled_back;
  State& s = *s_;
  for (std::uint32_t i = s.logged; i-- != 0;) {
    const fast::LoggedAccess& access = s.log[i];
    if (!access.write) continue;
    std::array<std::uint8_t, 8> before;
    std::memcpy(before.data(), &access.before, sizeof before);
    const PhysAddr at{access.physical};
    cpu_.memory.take_back(at, std::span(before).first(access.size));
    cpu_.memory.set_defined(at, access.size, access.was_defined);
  }
  s.left += done;
  careful_until_ = first + done + 1;
}

}  // namespace citcat
