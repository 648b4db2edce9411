#include "tools/idtrace/block_builder.h"

#include "replay/trace/kt_sink.h"
#include "tools/idtrace/entry_plan.h"

namespace citcat::tools {

bool IdtraceBlockBuilder::continues_repeat(LinearAddr linear, const DecodedInstruction& info,
                                           bool does_something) const {
  return repeating_ && does_something && info.is_repeated() && !run_.instructions.empty() &&
         linear.plus32(info.length) == next_ && info.bytes == last_.bytes;
}

void IdtraceBlockBuilder::instruction(LinearAddr linear, const DecodedInstruction& info,
                                      std::span<const std::uint32_t> addresses, std::uint32_t count,
                                      std::uint32_t step) {
  if (!continues_repeat(linear, info, !addresses.empty())) {
    end_repeat();
    const bool joins = !run_.instructions.empty() && linear == next_ && !opened_ &&
                       run_.instructions.size() < kIdtraceMaxWritten &&
                       code_bits(info) == run_.bits;
    if (!joins) end_block();
    add(linear, info);
  }
  add_entries(info, addresses, count, step);
  if (info.control_flow) end_block();
}

void IdtraceBlockBuilder::add(LinearAddr linear, const DecodedInstruction& info) {
  if (run_.instructions.empty()) {
    run_.linear = linear;
    run_.bits = code_bits(info);
  }
  run_.instructions.push_back(idtrace_instruction(info));
  run_.code.insert(run_.code.end(), info.bytes.begin(), info.bytes.begin() + info.length);
  last_ = info;
  next_ = linear.plus32(info.length);
  repeating_ = info.is_repeated();
}

void IdtraceBlockBuilder::add_entries(const DecodedInstruction& info,
                                      std::span<const std::uint32_t> addresses, std::uint32_t count,
                                      std::uint32_t step) {
  if (addresses.empty()) return;
  const IdtraceEntryPlan plan = idtrace_entry_plan(info);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint8_t e = 0; e < plan.count; ++e) {
      const IdtraceEntryPlan::Entry& planned = plan.entries[e];
      IdtraceBlockEntry& added = entries_.emplace_back();
      added.entry.tag = planned.tag;
      added.entry.size_code = planned.size_code;
      added.entry.value = addresses[planned.slot] + i * step;
      added.pointer_code = planned.pointer_code;
    }
    if (repeating_ && entries_.size() >= kMaxEntries) hand_over();
  }
}

void IdtraceBlockBuilder::end_repeat() {
  if (!repeating_) return;
  repeating_ = false;
  IdtraceBlockEntry& end = entries_.emplace_back();
  end.entry.tag = IdtraceTag::repeat_end;
}

/// What is known of the block goes to the receiver, which no instruction can join then.
void IdtraceBlockBuilder::hand_over() {
  if (!opened_) receiver_.open(run_, last_);
  opened_ = true;
  receiver_.entries(entries_);
  entries_.clear();
}

void IdtraceBlockBuilder::end_block() {
  if (run_.instructions.empty()) return;
  end_repeat();
  hand_over();
  receiver_.close();
  opened_ = false;
  run_.clear();
}

void IdtraceBlockBuilder::finish() { end_block(); }

}  // namespace citcat::tools
