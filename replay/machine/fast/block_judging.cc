#include "replay/machine/fast/block_judging.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace citcat::fast {

namespace {

/// The logged accesses include a store to the trap. Handlers that log accesses do not look for it.
bool logs_store_to(const StoreTrap& trap, const State& s) {
  return std::any_of(s.log.begin(), s.log.begin() + s.logged, [&](const DataReference& access) {
    return access.write && overlap(access.physical, access.size, trap.address, trap.size);
  });
}

JudgedPart part_of(const Block& block, std::uint32_t first, std::uint32_t count) {
  return {block.begins,     first, count, block.linear, block.frame, block.second_frame,
          block.mode.bits64};
}

void take_vectors_back(State& s) {
  if (!std::exchange(s.vectors_kept, false)) return;
  for (std::size_t i = 0; i < s.kept_vectors.size(); ++i) {
    std::memcpy(s.vectors + State::kVectorStep * i, s.kept_vectors[i].data(), 16);
  }
  *s.mxcsr = s.kept_mxcsr;
}

}  // namespace

BlockJudging::BlockJudging(CpuContext& cpu, Expectation& expectation, TierState& state,
                           const BlockReporter& reporter, const StoreTrap* trap)
    : cpu_(cpu), expectation_(expectation), t_(state), reporter_(reporter), trap_(trap) {}

std::uint64_t BlockJudging::quiet_end() const {
  return expectation_.expects_stores ? 0 : std::min(t_.limit, expectation_.next.instruction);
}

BlockJudging::Undo BlockJudging::undo() const {
  State& s = *t_.in_use;
  s.keeps_vectors = true;
  s.vectors_kept = false;
  return {s.r, s.flags, s.eflags, t_.eip, s.untold};
}

BlockJudge::BatchRoom BlockJudging::ask(const Block& block, std::uint64_t first,
                                        std::int64_t most_asked) {
  // A batch waits for the evidence about all of it.
  constexpr std::int64_t kMost = 128;
  const auto left = static_cast<std::uint32_t>(std::min(most_asked, kMost));
  const bool alone = reporter_.references || first < alone_until_;
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

bool BlockJudging::agrees(std::uint32_t done, std::uint64_t first) {
  State& s = *t_.in_use;
  if (s.trap != nullptr && logs_store_to(*trap_, s)) s.trapped = true;
  const Position at{first, 0};
  const std::uint64_t end = first + done;
  if (end <= expectation_.next.instruction && !expectation_.expects_stores) return true;
  const auto stores = gather_accesses(expectation_.judge->reads_of_interest(at));
  if (end <= expectation_.next.instruction && stores.empty()) return true;
  judged_parts_.clear();
  for (std::uint32_t i = 0; i < s.batched; ++i) {
    const BatchedBlock& b = s.batch[i];
    const std::uint32_t count = std::min(b.block->count, done - b.first);
    if (count != 0) judged_parts_.push_back(part_of(*b.block, b.first, count));
  }
  const JudgedBlock judged{judged_parts_, stores, judged_reads_};
  cpu_.position = at;
  if (!expectation_.judge->agrees(judged, at)) return false;
  expectation_.judge->agreed(judged, at);
  return true;
}

std::span<const citcat::BlockStore> BlockJudging::gather_accesses(
    const InstructionNumbers& wanted) {
  const State& s = *t_.in_use;
  judged_reads_.clear();
  // Always as long as the log, so that no element is constructed again.
  judged_stores_.resize(State::kMaxLogged);
  citcat::BlockStore* store = judged_stores_.data();
  for (std::uint32_t number = 0; number < s.batched; ++number) {
    const std::uint32_t before = s.batch[number].first, end = reporter_.end_of_log(number);
    for (std::uint32_t i = s.batch[number].logged; i < end; ++i) {
      const DataReference& access = s.log[i];
      const std::uint32_t instruction = before + access.instruction;
      if (!access.write) {
        if (wanted.contains(instruction)) {
          judged_reads_.push_back({access.physical, access.size, instruction});
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
  return {judged_stores_.data(), store};
}

void BlockJudging::take_back(const Undo& undo, std::uint64_t first, std::uint32_t done) {
  ++cpu_.stats.rolled_back;
  State& s = *t_.in_use;
  s.r = undo.registers;
  s.flags = undo.flags;
  s.eflags = undo.system_flags;
  s.untold = undo.untold;
  take_vectors_back(s);
  s.set_interrupts = false;
  s.shift_count = 0;
  t_.eip = undo.eip;
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

}  // namespace citcat::fast
