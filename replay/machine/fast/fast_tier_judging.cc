// Blocks of the fast tier where somebody compares: they are judged with what they accessed, several
// as one, and undone where that does not agree.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "replay/machine/fast/fast_tier.h"

namespace citcat {

namespace {

/// What is logged of accesses has a store to the trap among it: the handlers look for that only
/// where they log nothing.
bool logs_store_to(const StoreTrap& trap, const fast::State& s) {
  return std::any_of(s.log.begin(), s.log.begin() + s.logged, [&](const DataReference& access) {
    return access.write && overlap(access.physical, access.size, trap.address, trap.size);
  });
}

}  // namespace

using fast::BatchedBlock;
using fast::Block;
using fast::Exit;
using fast::Keep;
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
    if (!judge_blocks()) return;
  }
}

/// What to go back to.
struct FastTier::Undo {
  decltype(State::r) registers;
  LazyFlags flags;
  std::uint32_t system_flags = 0;
  std::uint64_t eip = 0;
  FlagEffect untold;
};

/// Runs blocks and has them judged as one. False where what is next has to be looked at elsewhere.
bool FastTier::judge_blocks() {
  State& s = *s_;
  const std::uint64_t first = position();
  if (first >= cpu_.audience.attending().until) attend();
  constexpr Policy kLogged{Keep::references, true};
  chain_logged(kLogged);
  const Block* block = find_block(eip_, kLogged);
  if (block == nullptr) return false;
  const std::int64_t most = room_to_ask();
  if (block->count > most) {
    block = &store_.cut(*block, static_cast<std::uint32_t>(most), kLogged);
  }
  // A string in which something is expected is told iteration by iteration (StringRunner).
  if (block->count == 0 || first < careful_until_) return false;
  const BlockJudge::BatchRoom room = ask_judge(*block, first);
  if (room.may_run < block->count) return false;
  const Undo undo{s.r, s.flags, s.eflags, eip_, s.untold};
  run_batch(*block, room.may_run, room.due);
  const BatchedBlock& last = s.batch[s.batched - 1];
  const std::uint32_t done = last.first + settle_block();
  if (done == 0) {
    s.untold = undo.untold;
    s.shift_count = 0;
    tell_walks();
    return s.exit == Exit::patched;
  }
  if (!judge(done, first)) {
    take_back(undo, first, done);
    tell_walks();
    return s.batched != 1;
  }
  const std::uint32_t of_last = done - last.first;
  if (!is_noted(*last.block)) note_flags(*last.block, of_last);
  s.shift_count = 0;
  tell_batch(of_last, first);
  note_batch(of_last, first);
  tell_walks();
  if (s.exit == Exit::patched) return true;
  if (s.exit == Exit::branch) {
    if (s.left > 0) link(*last.block, kLogged);
    return true;
  }
  return is_quiet_string(*last.block) && run_string(*last.block) == Stretch::ended;
}

/// The block in progress, which was left, goes on with a string of which nobody wants to know.
bool FastTier::is_quiet_string(const Block& block) {
  if (s_->exit != Exit::tail || block.tail != Block::Tail::string) return false;
  expectation_.update();
  return quiet_end() > position();
}

/// What may run from instruction `first` on, where `block` is, before the judge is asked about it:
/// all of the block at least, or nothing.
BlockJudge::BatchRoom FastTier::ask_judge(const Block& block, std::uint64_t first) {
  // So many are known to the evidence before they run; more would wait longer for what comes of
  // them.
  constexpr std::uint32_t kMost = 128;
  const auto left = static_cast<std::uint32_t>(std::min<std::int64_t>(room_to_ask(), kMost));
  const bool alone = references_ || first < alone_until_;
  const std::uint32_t most = alone ? block.count : std::max(left, block.count);
  if (first + most > expectation_.next.instruction) {
    cpu_.position = {first, 0};
    expectation_.update();
  }
  cpu_.position = {first, 0};
  BlockJudge& judge = *expectation_.judge;
  const auto room = alone ? BlockJudge::BatchRoom{} : judge.may_run_batch(cpu_.position, most);
  if (room.may_run >= block.count) return room;
  if (!judge.may_run_block(cpu_.position, block.count)) return {};
  return {block.count, block.count};
}

/// Runs `block`, and what follows it as far as that is known, `may_run` instructions at most, and
/// no further block behind the first `due` of them.
void FastTier::run_batch(const Block& block, std::uint32_t may_run, std::uint32_t due) {
  State& s = *s_;
  const std::int64_t beyond = s.left - may_run;
  batch_first_ = position();
  s.left = may_run;
  s.batch_end = std::int64_t{may_run} - due;
  limit_ -= static_cast<std::uint64_t>(beyond);
  s.logged = 0;
  s.shift_count = 0;
  s.batch[0] = {&block, 0, 0, area_.data()};
  s.batched = 1;
  s.batch_limit = State::kMaxBatched;
  run_block(block, area_.data());
  s.batch_limit = 1;
  s.left += beyond;
  limit_ += static_cast<std::uint64_t>(beyond);
}

/// Tells the judge what the first `done` instructions of the batch did. False: they are to be
/// undone.
bool FastTier::judge(std::uint32_t done, std::uint64_t first) {
  State& s = *s_;
  if (s.trap != nullptr && logs_store_to(*trap_, s)) s.trapped = true;
  const Position at{first, 0};
  const std::uint64_t end = first + done;
  if (end <= expectation_.next.instruction && !expectation_.expects_stores) return true;
  const auto stores = gather_accesses(expectation_.judge->reads_of_interest(at));
  if (end <= expectation_.next.instruction && stores.empty()) return true;
  parts_told_.clear();
  for (std::uint32_t i = 0; i < s.batched; ++i) {
    parts_told_.push_back({s.batch[i].block->code, s.batch[i].first});
  }
  const BatchedBlock& last = s.batch[s.batched - 1];
  const bool whole = done - last.first == last.block->count;
  if (!whole && done == last.first) parts_told_.pop_back();
  const BlockCode part =
      whole || done == last.first ? BlockCode{} : last.block->code->first(done - last.first);
  if (!whole && done != last.first) parts_told_.back().code = &part;
  const JudgedBlock judged{parts_told_, stores, reads_told_};
  cpu_.position = at;
  if (!expectation_.judge->agrees(judged, at)) return false;
  expectation_.judge->agreed(judged, at);
  return true;
}

/// What the batch stored. Makes `reads_told_` of its reads, those that are `wanted`.
std::span<const BlockStore> FastTier::gather_accesses(const InstructionNumbers& wanted) {
  const State& s = *s_;
  reads_told_.clear();
  // As long as the log from the first time on: none is made anew.
  stores_told_.resize(State::kMaxLogged);
  BlockStore* store = stores_told_.data();
  for (std::uint32_t number = 0; number < s.batched; ++number) {
    const std::uint32_t before = s.batch[number].first, end = end_of_log(number);
    for (std::uint32_t i = s.batch[number].logged; i < end; ++i) {
      const DataReference& access = s.log[i];
      const std::uint32_t instruction = before + access.instruction;
      if (!access.write) {
        if (wanted.contains(instruction)) {
          reads_told_.push_back({access.physical, access.size, instruction});
        }
        continue;
      }
      store->address = access.physical;
      store->size = access.size;
      store->instruction = instruction;
      store->was_defined = s.overwritten[i].was_defined;
      std::memcpy(store->value.data(), &access.value, 8);
      std::memcpy(store->before.data(), &s.overwritten[i].bytes, 8);
      ++store;
    }
  }
  return {stores_told_.data(), store};
}

/// Undoes the `done` instructions of the batch. A block that ran alone is made instruction by
/// instruction then, and the blocks of a batch one by one.
void FastTier::take_back(const Undo& undo, std::uint64_t first, std::uint32_t done) {
  ++cpu_.stats.rolled_back;
  State& s = *s_;
  s.r = undo.registers;
  s.flags = undo.flags;
  s.eflags = undo.system_flags;
  s.untold = undo.untold;
  s.set_interrupts = false;
  s.shift_count = 0;
  eip_ = undo.eip;
  for (std::uint32_t i = s.logged; i-- != 0;) {
    const DataReference& access = s.log[i];
    if (!access.write) continue;
    std::array<std::uint8_t, 8> before;
    std::memcpy(before.data(), &s.overwritten[i].bytes, sizeof before);
    cpu_.memory.take_back(access.physical, std::span(before).first(access.size));
    cpu_.memory.set_defined(access.physical, access.size, s.overwritten[i].was_defined);
  }
  s.left += done;
  (s.batched == 1 ? careful_until_ : alone_until_) = first + done + 1;
}

}  // namespace citcat
