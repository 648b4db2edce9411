#include "tools/idtrace/execution_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tools/idtrace/entry_plan.h"

namespace citcat::tools {
namespace {

bool matches(const IdtraceEntryPlan::Entry& planned, const IdtraceEntry& found) {
  if ((planned.tag == IdtraceTag::target) != (found.tag == IdtraceTag::target)) return false;
  if (planned.tag == IdtraceTag::target) return true;
  return is_idtrace_reference(found.tag) &&
         is_idtrace_repeat(planned.tag) == is_idtrace_repeat(found.tag);
}

}  // namespace

IdtraceExecutionReader::IdtraceExecutionReader(IdtraceReader& trace, const IdtraceBlocks& blocks,
                                               const IdtraceCode& code)
    : trace_(trace), blocks_(blocks), code_(code), prepared_(blocks.size()) {
  if (trace.kind() != IdtraceKind::execution) {
    trace.fail("expected an execution trace, found a " +
               std::string(idtrace_kind_name(trace.kind())) +
               " trace, which does not have every instruction");
  }
}

bool IdtraceExecutionReader::read() { return trace_.next(entry_); }

/// The record of one instruction; `begin` is its first byte in the block's code.
IdtraceExecutionReader::Instruction IdtraceExecutionReader::prepare(const IdtraceBlock& block,
                                                                    std::size_t number,
                                                                    std::uint32_t begin) {
  const IdtraceInstruction& of_file = block.instructions[number];
  const auto bytes = code_.code(block).subspan(begin, of_file.bytes);
  const auto fail = [&](const std::string& message) {
    throw FormatError(blocks_.name(), block.position,
                      "instruction " + std::to_string(number) + " of the block: " + message);
  };
  Instruction instruction;
  // A program of a user is what IDtrace traces, and what is protected.
  const CodeMode mode{code_.bits(block) == 32, false};
  instruction.info = decode_instruction(bytes, mode, CpuModel::unknown);
  const DecodedInstruction& info = instruction.info;
  if (info.state != DecodeState::ok || info.length != of_file.bytes) {
    fail("expected one of " + std::to_string(of_file.bytes) + " bytes in the code, found another");
  }
  const IdtraceInstruction expected = idtrace_instruction(info);
  if (expected.entries != of_file.entries) {
    fail("entries: expected " + std::to_string(expected.entries) + ", found " +
         std::to_string(of_file.entries));
  }
  instruction.record.eip = block.address + begin;
  instruction.record.size = of_file.bytes;
  std::copy(bytes.begin(), bytes.end(), instruction.record.code.begin());
  return instruction;
}

const IdtraceExecutionReader::Block& IdtraceExecutionReader::prepare(const IdtraceBlock& block) {
  std::unique_ptr<const Block>& prepared = prepared_[blocks_.index_of(block)];
  if (prepared) return *prepared;
  Block instructions;
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    instructions.push_back(prepare(block, i, begin));
    begin += block.instructions[i].bytes;
  }
  prepared = std::make_unique<const Block>(std::move(instructions));
  return *prepared;
}

bool IdtraceExecutionReader::enter_block() {
  if (!read()) return false;
  if (entry_.tag != IdtraceTag::block) {
    trace_.fail("expected a block (80h) after the entries of the last one, found a " +
                std::string(idtrace_tag_name(entry_.tag)));
  }
  const IdtraceBlock* const block = blocks_.at(entry_.value);
  if (block == nullptr) {
    trace_.fail("block: expected the position of a block in " + blocks_.name() + ", found " +
                std::to_string(entry_.value));
  }
  number_ = blocks_.index_of(*block);
  block_ = &prepare(*block);
  at_ = 0;
  iterations_ = 0;
  return true;
}

/// The next entry, which the instruction has.
IdtraceEntry IdtraceExecutionReader::need(const Instruction& instruction) {
  if (!read()) {
    trace_.fail("expected an entry of the instruction at " +
                std::to_string(instruction.record.eip) + ", found the end");
  }
  return entry_;
}

/// The entries of one execution, the first of which has been read.
void IdtraceExecutionReader::take_entries(const Instruction& instruction, KtInstruction& out) {
  const IdtraceEntryPlan plan = idtrace_entry_plan(instruction.info);
  std::array<IdtraceEntry, 2> found{};
  for (std::uint8_t i = 0; i < plan.count; ++i) {
    found[i] = i == 0 ? entry_ : need(instruction);
    const bool either = matches(plan.entries[0], found[i]) || matches(plan.entries[1], found[i]);
    if (!matches(plan.entries[i], found[i]) && !(plan.count == 2 && either)) {
      trace_.fail("expected a " + std::string(idtrace_tag_name(plan.entries[i].tag)) +
                  " of the instruction at " + std::to_string(instruction.record.eip) +
                  ", found a " + std::string(idtrace_tag_name(found[i].tag)));
    }
  }
  // The report does not say in which order PUSH has what it reads and writes: the tags tell.
  const bool turned = plan.count == 2 && plan.entries[0].tag != plan.entries[1].tag &&
                      found[0].tag == plan.entries[1].tag && found[1].tag == plan.entries[0].tag;
  if (turned) std::swap(found[0], found[1]);
  for (std::uint8_t i = 0; i < plan.count; ++i) {
    out.address[plan.entries[i].slot] = found[i].value;
  }
  out.address_count = plan.count;
}

/// The next iteration; false where there is none. One that never was is an execution all the same.
bool IdtraceExecutionReader::next_of_repeat(const Instruction& instruction, KtInstruction& out) {
  need(instruction);
  begins_instruction_ = iterations_ == 0;
  if (entry_.tag != IdtraceTag::repeat_end) {
    take_entries(instruction, out);
    ++iterations_;
    return true;
  }
  const bool nothing_done = iterations_ == 0;
  iterations_ = 0;
  ++at_;
  return nothing_done;
}

bool IdtraceExecutionReader::next(KtInstruction& out) {
  for (;;) {
    while (block_ == nullptr || at_ == block_->size()) {
      if (!enter_block()) return false;
    }
    const Instruction& instruction = (*block_)[at_];
    last_ = &instruction;
    begins_block_ = at_ == 0 && iterations_ == 0;
    out = instruction.record;
    if (instruction.info.is_repeated()) {
      if (next_of_repeat(instruction, out)) return true;
      continue;
    }
    begins_instruction_ = true;
    ++at_;
    if (instruction.info.ea_count != 0) {
      need(instruction);
      take_entries(instruction, out);
    }
    return true;
  }
}

}  // namespace citcat::tools
