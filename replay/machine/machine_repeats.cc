// Iterations of repeated strings, many at a time.
//
// The engine makes one iteration of a REP after another, and each is reported. Where those that
// follow the one prepared just now have nothing that must be looked at - the same pages, no limit,
// no breakpoint, no event among them - they are made here. Where a comparison expects something it
// takes many for what they are going to do, or is told one. The last one is always the engine's: it
// leaves the flags, and it is the one that may be interrupted, or fault.

#include <algorithm>
#include <cstring>
#include <functional>

#include "replay/machine/machine.h"
#include "replay/machine/machine_descriptor.h"
#include "replay/machine/string_iterations.h"

namespace citcat {

namespace {

bool is_comparison(const DecodedInstruction& info) {
  const std::uint8_t operation = info.opcode & 0xfe;
  return operation == 0xa6 || operation == 0xae;  // CMPS, SCAS
}

bool is_string_made_here(const DecodedInstruction& info) {
  const std::uint8_t operation = info.opcode & 0xfe;
  const bool moves = operation == 0xa4 || operation == 0xaa;  // MOVS, STOS
  return info.kind == InstructionClass::string && info.opcode_map == 0 && info.address_bits == 32 &&
         (moves || is_comparison(info));
}

/// `bytes` of elements of `size` bytes, each the low ones of `value`.
void fill_elements(std::uint8_t* to, std::uint32_t value, std::size_t size, std::size_t bytes) {
  std::memcpy(to, &value, size);
  for (std::size_t done = size; done < bytes; done *= 2) {
    std::memcpy(to + done, to, std::min(done, bytes - done));
  }
}

template <class Element>
void move_each(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(Element)) {
    Element element;
    std::memcpy(&element, from + i, sizeof element);
    std::memcpy(to + i, &element, sizeof element);
  }
}

/// What `bytes` bytes at `from` are moved to lies among those that are still to be moved.
bool is_overtaken(const std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const std::less<> below;
  return below(from, to) && below(to, from + bytes);
}

/// As MOVS does, from the lowest element up: where it moves up by less than there is, what it has
/// just stored is what it reads next, whole or in part.
void move_elements(std::uint8_t* to, const std::uint8_t* from, std::size_t size,
                   std::size_t bytes) {
  if (!is_overtaken(to, from, bytes)) {
    std::memmove(to, from, bytes);
  } else if (size == 1) {
    move_each<std::uint8_t>(to, from, bytes);
  } else if (size == 2) {
    move_each<std::uint16_t>(to, from, bytes);
  } else {
    move_each<std::uint32_t>(to, from, bytes);
  }
}

}  // namespace

/// What an operand of a repeated string covers from here to the end of its page.
std::optional<Machine::StringRun> Machine::string_run(const MemoryOperand& operand) {
  StringRun run;
  const auto bit = static_cast<std::uint8_t>(1u << operand.segment);
  const std::uint8_t unlimited = operand.write ? unlimited_written_ : unlimited_read_;
  const std::uint32_t offset = engine_.gpr(operand.base);
  const std::uint32_t linear = engine_.segment_base(operand.segment) + offset;
  run.bytes = std::min(kPageSize - (linear & kPageMask), 0xffffffff - offset);
  if ((unlimited & bit) == 0) return std::nullopt;
  const Access access = operand.write ? Access::write : Access::read;
  const auto page = mmu_.held(LinearAddr{linear & ~kPageMask}, access, user_mode());
  if (!page || !memory_.is_mapped(page->frame.page())) return std::nullopt;
  if (operand.write && memory_.holds_code(page->frame.page())) return std::nullopt;
  run.at = page->frame + (linear & kPageMask);
  run.host = memory_.host(run.at);
  return run;
}

/// Iterations from the one that is prepared on can be made here, as far as their operands go.
bool Machine::may_repeat_quickly() const {
  const DecodedInstruction& info = *info_;
  if (!by_blocks_ || polling_ || sixteen_bit_ || wants_arrangement_) return false;
  // Those that are told are told to lie in one page.
  if (compares_ && (linear_ & kPageMask) + info.length > kPageSize) return false;
  if (!is_string_made_here(info) || watches_code() || engine_.inhibited()) return false;
  return (engine_.system_flags() & kFlagTf) == 0 && !engine_.strings_run_down();
}

/// How many iterations can be made here, from the one that is prepared on.
std::uint32_t Machine::count_quick_iterations() {
  if (!may_repeat_quickly()) return 0;
  const DecodedInstruction& info = *info_;
  if (segments_stale_) refresh_segments();
  std::uint64_t n = engine_.gpr(kEcx) - 1u;
  const bool ends_within = until_.instruction == position_.instruction;
  if (ends_within) n = std::min<std::uint64_t>(n, until_.iteration - position_.iteration);
  // The flags of a comparison show only when it is the last one, or the next one faults.
  const bool compares = is_comparison(info);
  if (n == 0 || (compares && ends_within)) return 0;
  for (unsigned i = 0; i < info.operand_count; ++i) {
    const auto run = string_run(info.operands[i]);
    if (!run) return 0;
    const std::uint32_t room = run->bytes / info.operand_bytes;
    n = std::min<std::uint64_t>(n, compares && room != 0 ? room - 1 : room);
    string_runs_[i] = *run;
  }
  auto count = static_cast<std::uint32_t>(n);
  // First, because most comparisons end after a few of the elements that there are.
  if (compares) count = count_equal_or_different(count);
  for (unsigned i = 0; i < info.operand_count && count != 0; ++i) {
    if (info.operands[i].write) continue;
    // What is not defined is for the iteration that reads it.
    if (!memory_.is_defined(string_runs_[i].at, count * info.operand_bytes)) return 0;
  }
  return count;
}

/// Of `count` comparisons, how many at the beginning let the repetition go on.
std::uint32_t Machine::count_equal_or_different(std::uint32_t count) const {
  const std::size_t size = info_->operand_bytes;
  const bool while_equal = info_->repeat == RepeatPrefix::rep;
  const bool scans = info_->operand_count == 1;
  const std::uint32_t eax = engine_.gpr(kEax);
  for (std::uint32_t i = 0; i < count; ++i) {
    const void* const other =
        scans ? static_cast<const void*>(&eax) : string_runs_[1].host + i * size;
    const bool equal = std::memcmp(string_runs_[0].host + i * size, other, size) == 0;
    if (equal != while_equal) return i;
  }
  return count;
}

void Machine::store_string(std::uint32_t count) {
  const std::size_t size = info_->operand_bytes, bytes = count * size;
  const bool moves = info_->operand_count == 2;
  const StringRun& to = string_runs_[moves ? 1 : 0];
  if (moves) {
    move_elements(to.host, string_runs_[0].host, size, bytes);
  } else {
    fill_elements(to.host, engine_.gpr(kEax), size, bytes);
  }
  memory_.mark_defined(to.at, count * info_->operand_bytes);
  if (compares_ && moves) {
    comparing_->copied(string_runs_[0].at, to.at, count * info_->operand_bytes);
  }
}

/// Makes iterations, from the one that is prepared on, where any can be made here: the engine goes
/// on with the registers that they leave. False when there are none.
bool Machine::repeat_quickly() {
  std::uint32_t left = count_quick_iterations();
  if (left == 0) return false;
  in_flight_ = false;
  iterating_ = false;
  bool prepared = true;  // so was the first one, and told what it reads where that is wanted
  for (; left != 0; prepared = false) {
    const std::uint32_t untold = count_untold(left, prepared);
    const bool told = untold == 0;
    const std::uint32_t count = told ? 1 : untold;
    if (told && !prepared) tell_iteration_reads();
    if (!is_comparison(*info_)) store_string(count);
    if (told) {
      tell_iteration();
    } else if (block_receiver_ != nullptr) {
      block_receiver_->iterations(executed(), count, info_->operand_bytes, position_);
    }
    pass_iterations(count);
    left -= count;
  }
  return true;
}

/// How many of the iterations `left` can be made before one that is to be told alone; 0: the next.
std::uint32_t Machine::count_untold(std::uint32_t left, bool prepared) {
  if (!compares_) return left;
  if (!prepared && expects_now()) update_expected();
  if (expects_now() || (expects_stores_ && !is_comparison(*info_))) {
    return expects_stores_ && !prepared ? agree_on_iterations(left) : 0;
  }
  if (expected_.instruction != position_.instruction) return left;
  return std::min(left, expected_.iteration - position_.iteration);
}

/// How many of the next iterations the sink that compares takes for what they are going to do.
std::uint32_t Machine::agree_on_iterations(std::uint32_t most) {
  StringIterations run;
  run.code = physical_;
  run.code_bytes = info_->length;
  run.size = info_->operand_bytes;
  run.count = most;
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    (info_->operands[i].write ? run.to : run.from[run.reads++]) = string_runs_[i].at;
  }
  if (!is_comparison(*info_)) run.stored = speculate_stores(run.count);
  return run.count != 0 ? comparing_->agreed_iterations(run, position_) : 0;
}

/// What the next `count` iterations are going to store: of MOVS as far as none stores what a later
/// one reads.
std::span<const std::uint8_t> Machine::speculate_stores(std::uint32_t& count) {
  const std::size_t size = info_->operand_bytes;
  if (info_->operand_count != 2) {
    fill_elements(string_pattern_.data(), engine_.gpr(kEax), size, count * size);
    return std::span(string_pattern_).first(count * size);
  }
  const std::uint8_t *const from = string_runs_[0].host, *const to = string_runs_[1].host;
  if (is_overtaken(to, from, count * size)) {
    count = static_cast<std::uint32_t>(static_cast<std::size_t>(to - from) / size);
  }
  return {from, count * size};
}

void Machine::pass_iterations(std::uint32_t count) {
  const std::uint32_t bytes = count * info_->operand_bytes;
  position_.iteration += count;
  engine_.set_gpr(kEcx, engine_.gpr(kEcx) - count);
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    const int pointer = info_->operands[i].base;
    engine_.set_gpr(pointer, engine_.gpr(pointer) + bytes);
    string_runs_[i].at = string_runs_[i].at + bytes;
    string_runs_[i].host += bytes;
  }
  for (unsigned a = 0; a < ea_count_; ++a) ea_[a] += bytes;
}

/// What is told of an iteration when it is prepared.
void Machine::tell_iteration_reads() {
  if (!tells_reads()) return;
  sink_->fetch(physical_, info_->length, position_);
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    if (info_->operands[i].write) continue;
    sink_->read(string_runs_[i].at, info_->operand_bytes, AccessKind::data, position_);
  }
}

/// What is told of one that was made, as report_completed() does.
void Machine::tell_iteration() {
  for (unsigned i = 0; i < info_->operand_count; ++i) {
    if (!info_->operands[i].write) continue;
    const StringRun& to = string_runs_[i];
    sink_->write(to.at, {to.host, info_->operand_bytes}, AccessKind::data, position_);
  }
  if (expects_now()) {
    sink_->instruction(executed(), position_);
  } else if (block_receiver_ != nullptr) {
    block_receiver_->instruction(executed(), position_);
  }
}

}  // namespace citcat
