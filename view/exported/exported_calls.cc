#include "view/exported/exported_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "view/model/answer_text.h"

namespace citcat::view {

void ExportedCalls::begin() {
  stack_ = stack_pointer(view_.machine());
  changes_ = scan_.changes();
  look();
}

/// A step tells of its call if the last value it stored is the return address, and nothing was
/// delivered after the call.
void ExportedCalls::note_call(const RecordedStep& step, std::uint64_t number) {
  const bool calls = step.kind == InstructionClass::call || step.kind == InstructionClass::far_call;
  if (!calls || !step.completed || !step.events.empty()) return;
  const auto stored = std::find_if(step.accesses.rbegin(), step.accesses.rend(), [](const auto& a) {
    return a.write && a.kind == AccessKind::data && !a.outside;
  });
  if (stored == step.accesses.rend()) return;
  made_[step.before.position.instruction] = {number, stored->linear, view_.machine().next_linear()};
}

/// Whether open() may have another result than before the step.
bool ExportedCalls::may_have_changed(const RecordedStep& step) const {
  if (scan_.changes() != changes_ || stack_pointer(view_.machine()) > stack_) return true;
  return std::any_of(step.accesses.begin(), step.accesses.end(), [&](const StepAccess& a) {
    return a.write && std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
             return overlap(a.physical, a.size, slot.at, slot.bytes);
           });
  });
}

void ExportedCalls::take(const RecordedStep& step, std::uint64_t number) {
  steps_ = number + 1;
  note_call(step, number);
  const bool changed = may_have_changed(step);
  stack_ = stack_pointer(view_.machine());
  changes_ = scan_.changes();
  if (changed) look();
}

void ExportedCalls::look() {
  const OpenNest nest = scan_.open();
  std::vector<Item> now;
  const std::vector<NestLine> lines = nest_lines(nest);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) now.push_back(item_of(*line));
  slots_.clear();
  for (const OpenCall& call : nest.calls) {
    if (const auto at = view_.machine().find(call.slot)) slots_.push_back({*at, call.slot_bytes});
  }
  const auto [old_end, new_end] = std::mismatch(open_.begin(), open_.end(), now.begin(), now.end());
  if (old_end == open_.end() && new_end == now.end()) return;
  column_.varint(steps_ - told_at_);
  column_.varint(static_cast<std::uint64_t>(open_.end() - old_end));
  column_.varint(static_cast<std::uint64_t>(now.end() - new_end));
  for (auto item = new_end; item != now.end(); ++item) {
    column_.varint(item->is_call ? 2 * (steps_ - item->number) : 2 * item->number + 1);
  }
  told_at_ = steps_;
  open_ = std::move(now);
}

ExportedCalls::Item ExportedCalls::item_of(const NestLine& line) {
  if (line.call == nullptr) {
    const InterruptNest::Entered& e = *line.entered;
    const auto kind = static_cast<unsigned>(e.event.kind) << 8 | static_cast<unsigned>(e.call);
    return {false, line_number({line.at, e.frame, kind + 1, e.event.vector}, line)};
  }
  const OpenCall& call = *line.call;
  const auto made = made_.find(call.at.instruction);
  const bool is_told = made != made_.end() && call.at.iteration == 0 &&
                       made->second.slot == call.slot && made->second.target == call.target;
  if (is_told) return {true, made->second.step};
  return {false, line_number({line.at, call.slot, 0, 0}, line)};
}

std::size_t ExportedCalls::line_number(const LineKey& key, const NestLine& line) {
  const auto [found, is_new] = numbers_.emplace(key, lines_.size());
  if (!is_new) return found->second;
  Json json = line.call ? call_line(view_, *line.call) : event_line(view_, *line.entered);
  if (line.call != nullptr) {
    json["slot_bytes"] = line.call->slot_bytes;
  } else {
    json["stack"] = linear_text(view_, line.entered->stack.top);
  }
  const AddressSpaceId space = line.call ? line.call->space : line.entered->stack.space;
  if (space != OpenStacks::kSupervisor) json["program"] = fmt::format("{:08x}", space);
  lines_.push_back(std::move(json));
  return found->second;
}

}  // namespace citcat::view
