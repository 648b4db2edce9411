#include "replay/machine/fast/tier_strings.h"

#include <algorithm>

namespace citcat::fast {

namespace {

/// Iterations of a repeated string before the run is looked at
/// (InstructionRunner::look_within_repeat()).
constexpr std::uint32_t kIterationsAtOnce = 1u << 16;

}  // namespace

TierStrings::TierStrings(CpuContext& cpu, Expectation& expectation, TierState& state,
                         HandlerPages& pages, BlockStore& store, BlockReporter& reporter)
    : cpu_(cpu),
      expectation_(expectation),
      t_(state),
      pages_(pages),
      store_(store),
      reporter_(reporter),
      loop_(
          cpu.memory, [this](LinearAddr linear, bool write) { return find_page(linear, write); },
          [this](PhysAddr at, std::uint32_t size, const PhysAddr* from) {
            note_store(at, size, from);
          },
          [this](const std::array<StringLoop::Operand, 2>& first, std::uint32_t count,
                 std::int32_t step) { report_iterations(*info_, first, count, step); }) {}

StringPage TierStrings::find_page(LinearAddr linear, bool write) {
  State& s = *t_.in_use;
  const std::size_t index = State::tlb_index(linear);
  TlbEntry& entry = write ? s.writes[index] : s.reads[index];
  if (entry.tag != linear.page_begin().value) {
    const LinearAddr code = t_.shape.linear(t_.eip);
    if (cpu_.mmu.tlb().takes_place_of(linear, code) || !pages_.fill(linear, write)) return {};
  }
  const PhysAddr at{(write ? s.write_frames : s.read_frames)[index] + linear.offset_in_page()};
  if (write && (store_.holds_code(at.page()) || cpu_.memory.holds_code(at.page()))) {
    entry.tag = TlbEntry::kNone;
  }
  return {cpu_.memory.host(at), at};
}

void TierStrings::note_store(PhysAddr at, std::uint32_t size, const PhysAddr* from) {
  if (cpu_.memory.holds_code(at.page())) cpu_.memory.drop_code(at, size);
  cpu_.memory.mark_defined(at, size);
  if (expectation_.compares && from != nullptr) expectation_.judge->copied(*from, at, size);
}

bool TierStrings::run(const Block& block) {
  State& s = *t_.in_use;
  if (s.left <= 0) return false;
  const DecodedInstruction info = store_.decode_tail(block);
  info_ = &info;
  reporter_.report_trail();
  if (cpu_.audience.wants_references()) report_fetch(block);
  const bool nothing = info.is_repeated() && loop_.nothing_to_do(s, info);
  if (!nothing) {
    const bool complete = loop_.run(s, info, block.frame, kIterationsAtOnce);
    if (!complete) {
      t_.iteration = info.is_repeated() ? loop_.iterations() : 0;
      return false;
    }
  }
  if (nothing) report_iterations(info, {}, 0, 0);
  if (expectation_.compares && !nothing) s.untold = s.untold + flag_effect_of(info, 0);
  --s.left;
  t_.eip = offset_in_mode(t_.eip + info.length, t_.shape.bits64);
  s.set_interrupts = false;
  return true;
}

/// Reports the fetch of the string instruction, as for any instruction that runs alone.
void TierStrings::report_fetch(const Block& block) {
  const LinearAddr at = t_.shape.linear(t_.eip);
  const Position now{t_.position(), 0};
  const std::uint32_t here =
      std::min<std::uint32_t>(info_->length, kPageSize - at.offset_in_page());
  cpu_.audience.fetch(block.frame.plus32(at.offset_in_page()), here, now, false);
  if (here == info_->length) return;
  cpu_.audience.fetch(block.second_frame, info_->length - here, now, false);
}

void TierStrings::report_iterations(const DecodedInstruction& info,
                                    const std::array<StringLoop::Operand, 2>& first,
                                    std::uint32_t count, std::int32_t step) {
  if (!cpu_.audience.hears_instructions()) return;
  ExecutedInstruction e;
  e.info = &info;
  e.offset = t_.eip;
  e.linear = t_.shape.linear(t_.eip);
  e.physical = t_.in_use->block->frame.plus32(e.linear.offset_in_page());
  e.ea_count = count == 0 ? std::uint8_t{0} : info.ea_count;
  for (unsigned i = 0; i < e.ea_count; ++i) e.ea[i] = first[info.ea[i].argument].linear;
  std::array<DataReference, 2> references;
  if (cpu_.audience.wants_references() && count != 0) {
    for (unsigned i = 0; i < info.operand_count; ++i) {
      references[i].physical = first[i].at;
      references[i].linear = first[i].linear;
      references[i].size = info.operands[i].size;
      references[i].write = info.operands[i].write;
    }
    e.references = std::span(references).first(info.operand_count);
  }
  const Position now{t_.position(), loop_.iterations()};
  // In 64-bit mode whoever wants the accesses gets each iteration by itself.
  const bool alone = t_.shape.bits64 && (step < 0 || !e.references.empty());
  if (alone && info.is_repeated() && count != 0) {
    for (std::uint32_t i = 0; i < count; ++i) {
      cpu_.audience.iteration(e, {now.instruction, now.iteration + i});
      for (LinearAddr& ea : e.ea) ea.value += static_cast<std::uint64_t>(std::int64_t{step});
      for (DataReference& r : references) {
        r.linear.value += static_cast<std::uint64_t>(std::int64_t{step});
        r.physical = r.physical.plus32(static_cast<std::uint32_t>(step));
      }
    }
  } else if (info.is_repeated() && count != 0) {
    cpu_.audience.iterations(e, count, static_cast<std::uint32_t>(step), now);
  } else {
    cpu_.audience.instruction(e, {now.instruction, 0}, false);
  }
}

}  // namespace citcat::fast
