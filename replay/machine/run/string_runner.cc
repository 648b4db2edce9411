#include "replay/machine/run/string_runner.h"

#include <algorithm>
#include <cstring>

#include "replay/machine/string_elements.h"
#include "replay/machine/string_iterations.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

namespace {

/// By whole registers: not those after 67h in 64-bit mode.
bool is_string_made_here(const DecodedInstruction& info) {
  const bool moves = info.is(Operation::movs) || info.is(Operation::stos);
  return info.address_bits == (info.bits64 ? 64 : 32) && (moves || compares_strings(info));
}

}  // namespace

std::uint64_t StringRunner::pointer(int number) const {
  return cpu_.bits64() ? cpu_.engine.wide().gpr(number) : cpu_.engine.gpr(number);
}

void StringRunner::set_pointer(int number, std::uint64_t value) {
  if (cpu_.bits64()) {
    cpu_.engine.wide().set_gpr(number, value);
  } else {
    cpu_.engine.set_gpr(number, static_cast<std::uint32_t>(value));
  }
}

/// What an operand of a repeated string covers from here to the end of its page.
std::optional<StringRunner::StringRun> StringRunner::string_run(const MemoryOperand& operand) {
  StringRun run;
  const std::uint64_t offset = pointer(operand.base);
  const LinearAddr linear = linear_at(cpu_.base_of(operand.segment), offset, operand.width);
  run.bytes = kPageSize - linear.offset_in_page();
  if (!cpu_.bits64()) {
    const auto bit = static_cast<std::uint8_t>(1u << operand.segment);
    const std::uint8_t unlimited = operand.write ? rights_.written : rights_.read;
    if ((unlimited & bit) == 0) return std::nullopt;
    run.bytes = std::min(run.bytes, 0xffffffff - static_cast<std::uint32_t>(offset));
  }
  const Access access = operand.write ? Access::write : Access::read;
  const auto page = cpu_.mmu.look_up(linear.page_begin(), access, cpu_.program(), Lookup::held);
  if (!page || !cpu_.memory.is_mapped(page->frame.page())) return std::nullopt;
  if (operand.write && cpu_.memory.holds_code(page->frame.page())) return std::nullopt;
  run.linear = linear;
  run.at = page->frame.plus32(linear.offset_in_page());
  run.host = cpu_.memory.host(run.at);
  return run;
}

/// Iterations from the one that is prepared on can be made here, as far as their operands go.
bool StringRunner::may_repeat_quickly() const {
  const DecodedInstruction& info = *flight_.info;
  if (!cpu_.by_blocks || cpu_.must_tell_each_now() || cpu_.polling || flight_.wants_patch) {
    return false;
  }
  // Those that are told are told to lie in one page.
  if (expectation_.compares && cpu_.linear.offset_in_page() + info.length > kPageSize) return false;
  if (!is_string_made_here(info) || debug_.watches_code() || cpu_.engine.inhibited()) return false;
  return (cpu_.engine.system_flags() & kFlagTf) == 0 && !cpu_.engine.strings_run_down();
}

/// How many iterations can be made here, from the one that is prepared on.
std::uint32_t StringRunner::count_quick_iterations() {
  if (!may_repeat_quickly()) return 0;
  const DecodedInstruction& info = *flight_.info;
  if (rights_.stale) rights_.refresh(cpu_);
  std::uint64_t n = pointer(kEcx) - 1;
  const bool ends_within = cpu_.until.instruction == cpu_.position.instruction;
  if (ends_within) n = std::min<std::uint64_t>(n, cpu_.until.iteration - cpu_.position.iteration);
  // The flags of a comparison show only when it is the last one, or the next one faults.
  const bool compares = compares_strings(info);
  if (compares && ends_within && n != 0) --n;
  if (n == 0) return 0;
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
    if (!cpu_.memory.is_defined(string_runs_[i].at, count * info.operand_bytes)) return 0;
  }
  return count;
}

/// How many of the next `count` comparisons let the repetition go on.
std::uint32_t StringRunner::count_equal_or_different(std::uint32_t count) const {
  const std::size_t size = flight_.info->operand_bytes;
  const bool while_equal = flight_.info->repeat == RepeatPrefix::rep;
  const bool scans = flight_.info->operand_count == 1;
  const std::uint64_t rax = cpu_.engine.wide().gpr(kEax);
  for (std::uint32_t i = 0; i < count; ++i) {
    const void* const other =
        scans ? static_cast<const void*>(&rax) : string_runs_[1].host + i * size;
    const bool equal = std::memcmp(string_runs_[0].host + i * size, other, size) == 0;
    if (equal != while_equal) return i;
  }
  return count;
}

bool StringRunner::repeat() {
  std::uint32_t left = count_quick_iterations();
  if (left == 0) return false;
  flight_.active = false;
  flight_.iterating = false;
  bool prepared = true;  // so was the first one, and told what it reads where that is wanted
  for (; left != 0; prepared = false) {
    const std::uint32_t untold = count_untold(left, prepared);
    const bool told = untold == 0;
    const std::uint32_t count = told ? 1 : untold;
    if (told && !prepared) tell_iteration_reads();
    if (!compares_strings(*flight_.info)) store_string(count);
    if (told) {
      tell_iteration();
    } else if (cpu_.audience.hears_instructions()) {
      tell_iterations(count);
    }
    pass_iterations(count);
    left -= count;
  }
  return true;
}

/// How many of the iterations `left` can be made before one that is to be told alone; 0: the next.
std::uint32_t StringRunner::count_untold(std::uint32_t left, bool prepared) {
  if (cpu_.audience.wants_references_at(cpu_.position.instruction)) {
    if (expectation_.compares && !prepared && expectation_.is_now()) expectation_.update();
    return 0;
  }
  if (!expectation_.compares) return left;
  if (!prepared && expectation_.is_now()) expectation_.update();
  if (expectation_.is_now() || (expectation_.expects_stores && !compares_strings(*flight_.info))) {
    return prepared ? 0 : agree_on_iterations(left);
  }
  if (expectation_.next.instruction != cpu_.position.instruction) return left;
  return std::min(left, expectation_.next.iteration - cpu_.position.iteration);
}

/// How many of the next iterations the judge takes for what they are going to do.
std::uint32_t StringRunner::agree_on_iterations(std::uint32_t most) {
  StringIterations run;
  run.code = flight_.physical;
  run.code_bytes = flight_.info->length;
  run.size = flight_.info->operand_bytes;
  run.count = most;
  for (unsigned i = 0; i < flight_.info->operand_count; ++i) {
    (flight_.info->operands[i].write ? run.to : run.from[run.reads++]) = string_runs_[i].at;
  }
  if (!compares_strings(*flight_.info)) run.stored = speculate_stores(run.count);
  return run.count != 0 ? expectation_.judge->agreed_iterations(run, cpu_.position) : 0;
}

/// What the next `count` iterations are going to store: of MOVS as far as none stores what a later
/// one reads.
std::span<const std::uint8_t> StringRunner::speculate_stores(std::uint32_t& count) {
  const std::size_t size = flight_.info->operand_bytes;
  if (flight_.info->operand_count != 2) {
    fill_elements(string_pattern_.data(), cpu_.engine.wide().gpr(kEax), size, count * size);
    return std::span(string_pattern_).first(count * size);
  }
  const std::uint8_t *const from = string_runs_[0].host, *const to = string_runs_[1].host;
  if (is_overtaken(to, from, count * size)) {
    count = static_cast<std::uint32_t>(static_cast<std::size_t>(to - from) / size);
  }
  return {from, count * size};
}

/// Those that are about to be passed. They lie in one page of each operand, so that no address
/// wraps among them, in 64-bit mode either.
void StringRunner::tell_iterations(std::uint32_t count) {
  cpu_.audience.iterations(retirement_.executed(), count, flight_.info->operand_bytes,
                           cpu_.position);
}

void StringRunner::store_string(std::uint32_t count) {
  const std::size_t size = flight_.info->operand_bytes, bytes = count * size;
  const bool moves = flight_.info->operand_count == 2;
  const StringRun& to = string_runs_[moves ? 1 : 0];
  if (moves) {
    move_elements(to.host, string_runs_[0].host, size, bytes);
  } else {
    fill_elements(to.host, cpu_.engine.wide().gpr(kEax), size, bytes);
  }
  cpu_.memory.mark_defined(to.at, count * flight_.info->operand_bytes);
  if (expectation_.compares && moves) {
    expectation_.judge->copied(string_runs_[0].at, to.at, count * flight_.info->operand_bytes);
  }
}

void StringRunner::pass_iterations(std::uint32_t count) {
  const std::uint32_t bytes = count * flight_.info->operand_bytes;
  cpu_.position.iteration += count;
  cpu_.stats.string_iterations += count;
  set_pointer(kEcx, pointer(kEcx) - count);
  for (unsigned i = 0; i < flight_.info->operand_count; ++i) {
    const int base = flight_.info->operands[i].base;
    set_pointer(base, pointer(base) + bytes);
    string_runs_[i].linear = cpu_.onward(string_runs_[i].linear, bytes);
    string_runs_[i].at = string_runs_[i].at.plus32(bytes);
    string_runs_[i].host += bytes;
  }
  for (unsigned a = 0; a < flight_.ea_count; ++a) {
    flight_.ea[a] = cpu_.onward(flight_.ea[a], bytes);
  }
}

/// What is told of an iteration when it is prepared.
void StringRunner::tell_iteration_reads() {
  if (!expectation_.tells_reads()) return;
  const bool judged = expectation_.judges_reads();
  cpu_.audience.fetch(flight_.physical, flight_.info->length, cpu_.position, judged);
  for (unsigned i = 0; i < flight_.info->operand_count; ++i) {
    if (flight_.info->operands[i].write) continue;
    flight_.accessed = string_runs_[i].linear;
    cpu_.audience.read(string_runs_[i].at, flight_.info->operand_bytes, AccessKind::data,
                       cpu_.position, judged);
  }
}

/// What is told of one that was made, as Retirement::report_completed() does.
void StringRunner::tell_iteration() {
  const bool judged =
      !expectation_.compares || expectation_.is_now() || expectation_.expects_stores;
  for (unsigned i = 0; i < flight_.info->operand_count; ++i) {
    if (!flight_.info->operands[i].write) continue;
    const StringRun& to = string_runs_[i];
    flight_.accessed = to.linear;
    cpu_.audience.write(to.at, {to.host, flight_.info->operand_bytes}, AccessKind::data,
                        cpu_.position, judged);
  }
  cpu_.audience.instruction(retirement_.executed(), cpu_.position, expectation_.is_now());
}

}  // namespace citcat
