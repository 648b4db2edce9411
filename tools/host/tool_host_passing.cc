// How much of the ordinary code the host has to receive: windows and samples of instructions, and
// code that passes because it only needs to be counted.

#include <algorithm>

#include "replay/machine/machine.h"
#include "tools/host/tool_host.h"

namespace citcat::tools {

namespace {

/// Instructions after which a tool that has to be told by run() is asked whether it still has.
constexpr std::uint64_t kAskedAgain = 32;

}  // namespace

Interest ToolHost::interest_from(std::uint64_t instruction) {
  trails_ = false;
  if (instruction < options_.from) return {.until = options_.from};
  if (instruction >= options_.to) return {};
  Interest wanted{.code = each_, .until = options_.to};
  bool told = true;
  if (plan_ != nullptr) {
    told = phase_at(instruction) != Phase::gap;
    wanted.until = std::min(wanted.until, plan_->next_edge(instruction));
  }
  if (!passes_) {
    if (!told) wanted.code = Detail::nothing;
    return wanted;
  }
  if (told && options_.samples != nullptr) return wanted;
  wanted.code = counted_.empty() ? Detail::nothing : Detail::counts;
  wanted.trail = wants_.trail;
  if (wants_.trail != 0) wanted.code = Detail::trail;
  for (const std::size_t i : pass_) {
    const std::uint64_t needed = group().tools[i]->needs(instruction);
    if (needed > instruction) {
      wanted.until = std::min(wanted.until, needed);
    } else {
      wanted.code = each_;
      wanted.until = std::min(wanted.until, instruction + kAskedAgain);
    }
  }
  trails_ = wanted.code == Detail::trail;
  return wanted;
}

void ToolHost::passed(std::uint64_t from, std::uint64_t to) {
  from = std::max(from, options_.from);
  to = std::min(to, options_.to);
  if (from >= to) return;
  flush_others();
  if (context_.refresh()) context_changed();
  if (!passes_) return;
  for (const std::size_t i : pass_) group().tools[i]->passed(from, to, context_);
}

void ToolHost::trailed(std::span<const ExecutedBlock> blocks, Position first) {
  if (context_.refresh()) context_changed();
  flush_others();
  Group& mine = group();
  for (const ExecutedBlock& block : blocks) {
    KnownCode& code = code_of(block);
    ToolCode& kept = group_code(code, mine);
    const Execution execution = execution_of(block, code, first);
    for (const std::size_t i : pass_) mine.tools[i]->run(kept.mine[i], execution, context_);
    first.instruction += block.count();
  }
}

ToolHost::Phase ToolHost::phase_at(std::uint64_t instruction) const {
  if (plan_->has(instruction)) return Phase::window;
  return plan_->warms(instruction) ? Phase::warming : Phase::gap;
}

void ToolHost::find_phase(Position now) {
  phase_begin_ = now.instruction;
  phase_end_ = plan_->next_edge(now.instruction);
  const Phase phase = phase_at(now.instruction);
  if (phase != phase_) enter(phase);
}

/// From here on all tools are told; or only those with models, and what they are told does not
/// count; or, of samples, only those that are told of the whole run.
void ToolHost::enter(Phase phase) {
  phase_ = phase;
  analysis_.set_warming(options_.samples != nullptr ? phase != Phase::window
                                                    : phase == Phase::warming);
  listening_ = in_windows_;
  if (options_.samples == nullptr) {
    if (phase != Phase::warming) return;
    for (auto* const tools : {&listening_.run, &listening_.events, &listening_.accesses}) {
      std::erase_if(*tools, [this](std::size_t i) { return !analysis_.warms(i); });
    }
    return;
  }
  if (phase == Phase::window) return;
  const auto is_told = [this](std::size_t i) {
    return phase_ == Phase::warming && analysis_.warms(i);
  };
  std::erase_if(listening_.accesses, [&](std::size_t i) { return !is_told(i); });
  std::erase_if(listening_.run, [&](std::size_t i) {
    return !is_told(i) && std::find(pass_.begin(), pass_.end(), i) == pass_.end();
  });
  if (phase != Phase::gap) return;
  for (Group* const group : analysis_.groups()) {
    for (const auto& tool : group->tools) tool->gap();
  }
}

}  // namespace citcat::tools
