#include "replay/machine/run/block_planner.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "replay/machine/run/code_fetch.h"
#include "replay/machine/run/instruction_runner.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/table_descriptor.h"
#include "replay/x86/locked_bit_test.h"

namespace citcat {

namespace {

/// Executions of a block that was translated to be reported before it is looked at again: what was
/// in the way then, an event for instance, may be gone. Translating takes some 10 us.
constexpr std::uint16_t kExecutionsUntilHot = 16;

/// The engine ends a block behind the instruction that reaches this many bytes, or this many
/// instructions (i386_tr_translate_insn(); TCG_MAX_INSNS).
constexpr std::uint32_t kMaxBlockBytes = 4096 - 32, kMaxBlockInstructions = 512;

/// Of EFLAGS, what shapes the engine's code: TF, IOPL, RF, VM, AC (cpu_get_tb_cpu_state()).
constexpr std::uint32_t kModeFlags = 0x100 | 0x3000 | 0x10000 | 0x20000 | 0x40000;

/// Behind a block that ends so it does not show whether the block was left before the call
/// (BlockTemplate::was_left_before()).
bool calls_itself(const DecodedInstruction& info) {
  return info.kind == InstructionClass::call && !info.indirect &&
         info.target_displacement + info.length == 0;
}

}  // namespace

std::uint64_t BlockPlanner::block_mode() const {
  return std::uint64_t{cpu_.engine.system_flags() & kModeFlags} << 32 | cpu_.engine.hflags();
}

/// The template of the code at `linear`, which the engine is about to translate. Null where it is
/// to be reported.
BlockTemplate* BlockPlanner::plan_block(std::uint32_t linear) {
  if ((cpu_.engine.system_flags() & kFlagTf) != 0 || cpu_.engine.inhibited() ||
      debug_.watches_code() || patcher_.is_active() || may_be_once_more(linear)) {
    return nullptr;
  }
  const auto frame = cpu_.engine_code.frame_of(LinearAddr{linear});
  if (!frame || !cpu_.memory.is_mapped(frame->page())) return nullptr;
  // What is in flight may have loaded a segment.
  if (rights_.stale || (flight_.active && running_.block == nullptr))
    rights_.refresh(cpu_, running_.registers);
  const BlockKey key{linear, frame->value, block_mode(), cpu_.engine.segment_base(kCs)};
  const std::uint32_t limit =
      short_block_.linear == linear ? short_block_.size : kMaxBlockBytes + kMaxInstructionBytes;
  BlockTemplate* block = templates_.find(key);
  if (block == nullptr || !is_still(*block, limit)) {
    BlockTemplate compiled = compile_block(key, limit);
    if (compiled.count() == 0) return nullptr;
    block = templates_.insert(std::move(compiled));
  } else if (!block->crosses_pages()) {
    block->second_frame = BlockTemplate::kNoFrame;  // that of what was reported behind it
  }
  if (block->refused == BlockTemplate::kMaxRefused) {
    block->refused = 0;
    return nullptr;
  }
  if (linear != running_.hot && would_be_left(*block)) return nullptr;
  return rights_.allow(*block) ? block : nullptr;
}

TranslatedBlock* BlockPlanner::plan_translation(std::uint32_t linear) {
  constexpr std::uint32_t kSeldom = 16;
  if (++translations_ % kSeldom == 0) {
    cpu_.code_cache_full |= templates_.full() || cpu_.engine.code_cache_needs_flush();
  }
  running_.surroundings = RunningBlock::kUnknown;
  BlockTemplate* const block = cpu_.by_blocks ? plan_block(linear) : nullptr;
  plan_ = block;
  ++cpu_.stats.translations;
  if (block != nullptr) ++cpu_.stats.unreported;
  return block;
}

bool BlockPlanner::reports(std::uint32_t linear) {
  if (plan_ == nullptr) return true;
  const std::uint32_t offset = linear - plan_->key.linear;
  if (offset < plan_->size) return false;
  const BlockTemplate& last = plan_->last();
  return last.reported_tail || offset <= last.key.linear - plan_->key.linear;
}

/// Where code of the page lies to the engine: where it was told last, or where it would be told,
/// should it have forgotten.
std::array<std::optional<PhysAddr>, 2> BlockPlanner::engine_frames(LinearAddr page) {
  std::array<std::optional<PhysAddr>, 2> frames{cpu_.engine_code.frame_of(page), std::nullopt};
  if (const auto now = cpu_.mmu.peek(page, Access::execute, cpu_.user_mode())) {
    frames[1] = PhysAddr{now->frame.value & ~kPageMask};
  }
  for (auto& frame : frames) {
    if (frame && !cpu_.memory.is_mapped(frame->page())) frame.reset();
  }
  if (frames[0] == frames[1]) frames[1].reset();
  return frames;
}

std::span<const PhysAddr> BlockPlanner::hides(std::uint32_t linear) {
  hidden_.clear();
  const LinearAddr next{(linear & ~kPageMask) + kPageSize};
  for (const auto& first : engine_frames(LinearAddr{linear & ~kPageMask})) {
    if (!first) continue;
    CodeBytes code(cpu_.memory, *first + (linear & kPageMask));
    note_hidden(code);
    if (code.in_first_page() >= kMaxInstructionBytes) continue;
    for (const auto& second : engine_frames(next)) {
      if (!second) continue;
      code.set_second_frame(*second);
      note_hidden(code);
    }
  }
  return hidden_;
}

void BlockPlanner::note_hidden(CodeBytes& code) {
  const std::size_t prefixes = prefixes_of_locked_bit_test(code.at(0));
  for (std::uint32_t i = 0; i < prefixes; ++i) hidden_.push_back(code.physical(i));
}

/// Something is due in `block`, should it be executed next, so that it would be left, and its
/// instructions translated once more, each alone. Not asked of the block that the engine was
/// stopped at last: it is hot, or would be stopped at again.
bool BlockPlanner::would_be_left(const BlockTemplate& block) {
  const std::uint64_t begin =
      cpu_.position.instruction + (running_.block != nullptr ? running_.block->count() : 0);
  const std::uint64_t end = begin + block.whole_count;
  if (cpu_.is_due_before(end)) return true;
  return expectation_.compares && expectation_.has_something_due(block, end) && !can_be_told(block);
}

/// The processor's TLB has the pages that `block` accesses, should it be executed next, as far as
/// registers show them by now.
bool BlockPlanner::can_be_told(const BlockTemplate& block) {
  BlockRegisters registers = running_.registers;
  registers.set_entry(cpu_.engine.gprs());
  return std::all_of(block.accesses.begin(), block.accesses.end(), [&](const auto& a) {
    if (a.address.needs_exit()) return true;
    const LinearAddr first{a.linear(registers)}, last = first + (a.size - 1u);
    const Access access = a.write ? Access::write : Access::read;
    return cpu_.is_held(first, access) && cpu_.is_held(last, access);
  });
}

bool BlockPlanner::may_be_once_more(std::uint32_t linear) const {
  if (running_.block == nullptr) return flight_.active && linear == cpu_.linear;
  const std::uint32_t inside = running_.block->index_of(linear);
  if (inside == running_.block->count()) return false;
  const DecodedInstruction& info = running_.block->instructions[inside].info;
  return std::any_of(info.operands.begin(), info.operands.begin() + info.operand_count,
                     [](const MemoryOperand& operand) { return operand.write; });
}

/// The bytes of code that begins at `key`, where the engine finds them.
CodeBytes BlockPlanner::code_bytes(const BlockKey& key) const {
  CodeBytes code(cpu_.memory, PhysAddr{key.frame | (key.linear & kPageMask)});
  const LinearAddr next{(key.linear & ~kPageMask) + kPageSize};
  const auto second = cpu_.engine_code.frame_of(next);
  if (second && cpu_.memory.is_mapped(second->page())) code.set_second_frame(*second);
  return code;
}

/// Memory still holds the code of `block`, which has no more than `limit` bytes.
bool BlockPlanner::is_still(const BlockTemplate& block, std::uint32_t limit) const {
  CodeBytes code = code_bytes(block.key);
  if (block.whole_size() > limit) return false;
  if (block.crosses_pages() && code.second_frame() != block.second_frame) return false;
  const bool patched = lies_in_patched_frame(code);
  for (const BlockTemplate* part = &block; part != nullptr; part = part->next.get()) {
    const std::uint32_t begin = part->key.linear - block.key.linear;
    for (const BlockTemplate::Instruction& in : part->instructions) {
      const std::uint32_t at = begin + in.offset;
      if (std::memcmp(code.at(at).data(), in.info.bytes.data(), in.info.length) != 0) return false;
      if (!code.is_defined(at, in.info.length)) return false;
      if (patched && must_be_reported(in.info, block.key)) return false;
    }
  }
  return true;
}

/// The template of the instructions at `key`, as far as they may run unreported, of which none
/// begins `limit` bytes behind it or later.
BlockTemplate BlockPlanner::compile_block(const BlockKey& key, std::uint32_t limit) {
  CodeBytes code = code_bytes(key);
  const std::uint32_t in_first = code.in_first_page();
  const std::uint32_t second = code.second_frame();
  const std::uint32_t end = second != BlockTemplate::kNoFrame ? limit : std::min(limit, in_first);
  BlockCompiler compiler(key, cpu_.model, cpu_.stack32(), rights_.flat, cpu_.detail,
                         expectation_.expects_stores);
  const bool patched = lies_in_patched_frame(code);
  const CodeMode mode = cpu_.code_mode();
  bool ended = false;
  std::uint32_t done = 0;
  for (std::uint32_t n = 0; done < end && n < kMaxBlockInstructions && !ended; ++n) {
    const DecodedInstruction& info = code_.decode(code.at(done), mode);
    if (info.state != DecodeState::ok || !code.is_defined(done, info.length)) break;
    if (patched && must_be_reported(info, key)) break;
    if (calls_itself(info) || !compiler.add(info)) break;
    done += info.length;
    ended = info.control_flow;
    if (info.ends_block) break;
  }
  BlockTemplate block = compiler.finish(done > in_first ? second : BlockTemplate::kNoFrame, ended);
  block.engine = &cpu_.engine;
  return block;
}

/// The engine may store to a frame of this code.
bool BlockPlanner::lies_in_patched_frame(const CodeBytes& code) const {
  if (cpu_.memory.is_patched(code.first_frame().page())) return true;
  const std::uint32_t second = code.second_frame();
  return second != BlockTemplate::kNoFrame && cpu_.memory.is_patched(PhysAddr{second}.page());
}

/// The engine may store to the frames of the block that begins at `key`: what of it is therefore
/// reported. Behind an indirect call that leads to itself it would not show whether the block was
/// left before it (BlockTemplate::was_left_before()).
bool BlockPlanner::must_be_reported(const DecodedInstruction& info, const BlockKey& key) const {
  return (info.kind == InstructionClass::call && info.indirect) || may_be_made_twice(info, key);
}

/// In the block that begins at `key`, `info` may store unaligned from before where that begins in
/// one of its frames, and read what it stores over. The engine then begins the instruction anew
/// when the first bytes are stored: only reported ones have these put back
/// (Operands::put_back_overwritten()).
bool BlockPlanner::may_be_made_twice(const DecodedInstruction& info, const BlockKey& key) const {
  const std::span operands(info.operands.data(), info.operand_count);
  const auto crosses = [](std::uint32_t first, std::uint32_t size, std::uint32_t begin) {
    return ((begin - first) & kPageMask) - 1 < size - 1;
  };
  const auto goes_there = [&](const MemoryOperand& operand) {
    if (!operand.write || operand.size * operand.count == 1) return false;
    const bool constant = operand.kind == OperandKind::address && operand.count == 1 &&
                          operand.base == kNoRegister && operand.index == kNoRegister &&
                          (rights_.flat >> operand.segment & 1) != 0;
    if (!constant) return true;
    const auto first = static_cast<std::uint32_t>(operand.displacement);
    return crosses(first, operand.size, key.linear) || crosses(first, operand.size, 0);
  };
  return std::any_of(operands.begin(), operands.end(), std::mem_fn(&MemoryOperand::read)) &&
         std::any_of(operands.begin(), operands.end(), goes_there);
}

void BlockPlanner::retranslate() {
  instructions_.settle_in_flight(running_.hot, false);
  cpu_.engine.set_eip(running_.hot - cpu_.engine.segment_base(kCs));
  if (flight_.active) return;  // the last count check of a REP
  if (plan_block(running_.hot) != nullptr) cpu_.engine.forget_code(running_.hot);
}

void BlockPlanner::replan() {
  cpu_.engine.set_eip(running_.hot - cpu_.engine.segment_base(kCs));
  cpu_.engine.invalidate_code(PhysAddr{cpu_.code.block_frame | (running_.hot & kPageMask)}, 1);
}

void BlockPlanner::forget_code() {
  ++cpu_.stats.code_forgotten;
  cpu_.code_cache_full = false;
  cpu_.engine.flush_code();
  templates_.clear();
}

bool BlockPlanner::heat(std::uint32_t linear) {
  return templates_.heat(linear, kExecutionsUntilHot);
}

}  // namespace citcat
