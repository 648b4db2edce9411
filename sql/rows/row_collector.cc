#include "sql/rows/row_collector.h"

#include <algorithm>

#include "formats/io/memory_limit.h"

namespace citcat::sql {

RowCollector::RowCollector(const RowNeeds& needs, const RowFilter& filter,
                           const tools::NameSource& names, ContextTable& contexts, RunRows& rows)
    : needs_(needs), filter_(filter), names_(names), contexts_(contexts), rows_(rows) {
  if (needs_.calls) calls_ = std::make_unique<ProcedureCalls>(names_, rows_);
}

std::unique_ptr<tools::Tool> RowCollector::part() const {
  return std::make_unique<RowCollector>(needs_, filter_, names_, contexts_, rows_);
}

tools::Wants RowCollector::wants() const {
  tools::Wants wants;
  wants.executions = needs_.instructions || needs_.calls || needs_.processes;
  // Whose instructions alone are counted need not be told of each piece of code.
  wants.passes = needs_.processes && !needs_.instructions && !needs_.calls && !needs_.accesses;
  wants.references = needs_.accesses;
  wants.values = needs_.values;
  wants.events = true;
  return wants;
}

void* RowCollector::code(const tools::StaticBlock& block) {
  CodePiece& piece = pieces_.emplace_back(block);
  if (calls_) piece.follower = calls_->code(block);
  return &piece;
}

/// Finds the number of the context that runs.
void RowCollector::look_at(const tools::Context& context, std::uint32_t level) {
  if (!is_stale_ && level == level_) [[likely]]
    return;
  is_stale_ = false;
  level_ = level;
  address_space_ = context.address_space();
  context_ = contexts_.number(names_.process(context), level_);
  is_wanted_ = filter_.has(contexts_[context_]);
  interrupts_ = context.interrupt_depth();
}

// ---------------------------------------------------------------------------------------------
// Code

bool RowCollector::overlaps(const CodePiece& code) const {
  if (filter_.addresses.is_all()) return true;
  const auto& all = code.block().instructions();
  return std::any_of(all.begin(), all.end(), [&](const tools::StaticInstruction& i) {
    return filter_.addresses.has(i.linear.value);
  });
}

void RowCollector::run(void* mine, const tools::Execution& execution,
                       const tools::Context& context) {
  look_at(context);
  const CodePiece& code = *static_cast<const CodePiece*>(mine);
  const Position first = execution.first();
  if (calls_) calls_->run(code.follower, execution, context, context_);
  if (needs_.processes && first.iteration == 0) executed(first.instruction, code.count());
  if (is_wanted_ && needs_.instructions) add_instructions(code, execution);
  // Also those of other contexts are counted, where more may follow at the same position.
  if (needs_.accesses && (is_wanted_ || code.repeats()) && !execution.references().empty())
    add_accesses(execution);
  behind_ = code.repeats() ? Position{first.instruction, first.iteration + execution.iterations()}
                           : Position{first.instruction + code.count(), 0};
  if (behind_.instruction >= checked_at_) [[unlikely]]
    require_memory();
}

void RowCollector::passed(std::uint64_t first, std::uint64_t end, const tools::Context& context) {
  look_at(context);
  executed(first, end - first);
  behind_ = {end, 0};
}

/// A REP string instruction is one row, however many iterations are told together.
void RowCollector::add_instructions(const CodePiece& code, const tools::Execution& execution) {
  const Position first = execution.first();
  if (first.iteration != 0) {
    if (!rows_.instructions.empty() && rows_.instructions.back().first == first.instruction) {
      rows_.instructions.back().iterations += execution.iterations();
    }
    return;
  }
  if (!overlaps(code)) return;
  const bool counts = code.repeats() && !execution.does_nothing();
  rows_.instructions.push_back(
      {&code, first.instruction, context_, counts ? execution.iterations() : 0, interrupts_});
}

void RowCollector::add_run(AccessRun run) {
  run.end = static_cast<std::uint32_t>(rows_.accesses.size());
  if (run.begin != run.end) rows_.access_runs.push_back(run);
}

/// How many accesses were made so far at that position. An access is numbered among all that are
/// made there, also those that the filter drops: its number is the same in every replay.
std::uint64_t& RowCollector::accesses_at(std::uint64_t position) {
  if (accessed_at_ != position) accesses_there_ = 0;
  accessed_at_ = position;
  return accesses_there_;
}

void RowCollector::add_accesses(const tools::Execution& execution) {
  AccessRun run;
  run.first = execution.first();
  run.context = context_;
  run.begin = static_cast<std::uint32_t>(rows_.accesses.size());
  run.times = execution.iterations();
  run.step = execution.step();
  std::uint64_t& made = accesses_at(run.first.instruction);
  run.before = made;
  // Iterations that are reported together each have addresses of their own.
  const bool narrows = filter_.narrows_addresses() && run.times == 1;
  std::uint16_t instruction = 0, number = 0;
  for (const tools::Reference& r : execution.references()) {
    if (r.kind == AccessKind::walk) continue;
    if (r.instruction != instruction) number = 0;
    instruction = r.instruction;
    if (instruction == 0) ++run.each;
    const std::uint16_t mine = number++;
    if (!is_wanted_) continue;
    if (narrows && !filter_.has(r.linear, r.physical, has_linear(r.linear, r.kind))) continue;
    const auto kind = r.kind == AccessKind::data ? AccessClass::data : AccessClass::system;
    rows_.accesses.push_back(
        {r.linear, r.physical, r.value, r.size, instruction, mine, kind, r.write});
  }
  made += std::uint64_t{run.each} * run.times;
  add_run(run);
}

/// What no completed instruction accessed: by a delivery, after its event, or by an instruction
/// that was refused.
void RowCollector::accesses(std::span<const tools::OtherAccess> accesses,
                            const tools::Context& context) {
  look_at(context);
  AccessRun run;
  run.first = behind_;
  run.context = context_;
  for (const tools::OtherAccess& a : accesses) {
    if (a.code || a.kind == AccessKind::walk) continue;
    run.before = accesses_at(behind_.instruction)++;
    run.begin = static_cast<std::uint32_t>(rows_.accesses.size());
    if (!is_wanted_ || !filter_.has(a.linear, a.physical, has_linear(a.linear, a.kind))) continue;
    rows_.accesses.push_back(
        {a.linear, a.physical, a.value, a.size, 0, 0, AccessClass::delivery, a.write});
    add_run(run);
  }
}

/// A REP was interrupted between two iterations: it begins anew later, and completes only then.
void RowCollector::unfinished(Position at) {
  if (calls_) calls_->unfinished(at);
  if (at.iteration == 0 || behind_.instruction != at.instruction) return;
  if (!rows_.instructions.empty() && rows_.instructions.back().first == at.instruction) {
    rows_.instructions.pop_back();
  }
  if (!running_) return;
  ProcessRow& row = rows_.processes[*running_];
  --row.instructions;
  if (level_ == tools::Context::kUserLevel) --row.of_level_3;
}

void RowCollector::executed(std::uint64_t first, std::uint64_t count) {
  const std::string* const process = contexts_[context_].process;
  const std::pair key{address_space_, process};
  if (!running_ || rows_.processes[*running_].process != process ||
      rows_.processes[*running_].address_space != address_space_) {
    const auto [at, is_new] = process_rows_.try_emplace(key, rows_.processes.size());
    if (is_new) rows_.processes.push_back({process, address_space_, first, first, 0, 0, 0});
    running_ = at->second;
    ++rows_.processes[*running_].switches;
  }
  ProcessRow& row = rows_.processes[*running_];
  row.last = first + count - 1;
  row.instructions += count;
  if (level_ == tools::Context::kUserLevel) row.of_level_3 += count;
}

// ---------------------------------------------------------------------------------------------
// Events

void RowCollector::add_delivery(const tools::MachineEvent& event) {
  const DeliveredEvent& d = event.delivery;
  EventRow row;
  row.at = event.position;
  row.context = context_;
  row.vector = d.vector;
  row.error_code = d.error_code;
  row.offset = d.eip;
  row.cs = d.cs;
  row.cr2 = d.cr2;
  switch (d.kind) {
    case DeliveredEvent::Kind::exception:
      row.kind = EventRow::Kind::exception;
      break;
    case DeliveredEvent::Kind::external:
      row.kind = EventRow::Kind::external;
      break;
    case DeliveredEvent::Kind::software:
      row.kind = EventRow::Kind::software;
      break;
    case DeliveredEvent::Kind::nmi:
      row.kind = EventRow::Kind::nmi;
      break;
    case DeliveredEvent::Kind::smi:
      row.kind = EventRow::Kind::smi;
      break;
  }
  rows_.events.push_back(row);
}

/// In the process and at the level before the event, which the context has left by now.
void RowCollector::add_system(const tools::MachineEvent& event, const char* kind,
                              const tools::Context& context) {
  using Kind = tools::MachineEvent::Kind;
  if (!needs_.system) return;
  const bool loads = event.kind == Kind::address_space;
  if (loads) loaded_ = {event.position, event.before};
  const bool drops = event.kind == Kind::translation_dropped;
  const bool is_told = loads || drops || event.kind == Kind::cache_flushed;
  const std::uint32_t level = is_told ? context.level_within() : event.level;
  // An IRET to another task has loaded its page tables before it is told.
  const AddressSpaceId space =
      loaded_ && loaded_->first == event.position ? loaded_->second : context.address_space();
  // The event may have given the process another name by now.
  const bool is_known = process_before_ != nullptr && address_space_before_ == space;
  rows_.system.push_back(
      {event.position, kind, drops ? event.linear.value : event.value, loads || drops,
       contexts_.number(is_known ? *process_before_ : names_.process_of(space), level)});
}

void RowCollector::add_system_call(const tools::MachineEvent& event) {
  open_calls_[event.number] = rows_.system_calls.size();
  rows_.system_calls.push_back(
      {*event.call, contexts_.name(names_.process_of(event.call->address_space))});
}

void RowCollector::end_system_call(const tools::MachineEvent& event) {
  const auto open = open_calls_.find(event.number);
  if (open == open_calls_.end()) return;
  rows_.system_calls[open->second].call = *event.call;
  open_calls_.erase(open);
}

void RowCollector::event(const tools::MachineEvent& event, const tools::Context& context) {
  using Kind = tools::MachineEvent::Kind;
  const bool is_within =
      event.kind == Kind::port_read || event.kind == Kind::port_write || event.kind == Kind::halted;
  if (is_within) look_at(context, context.level_within());
  if (event.kind == Kind::delivered || event.kind == Kind::shutdown) look_at(context);
  if (calls_) calls_->event(event, context);
  switch (event.kind) {
    case Kind::delivered:
      if (needs_.events) add_delivery(event);
      behind_ = std::max(behind_, event.position);
      break;
    case Kind::halted:
    case Kind::shutdown:
      if (needs_.events) {
        EventRow& row = rows_.events.emplace_back();
        row.at = event.position;
        row.kind = event.kind == Kind::halted ? EventRow::Kind::halt : EventRow::Kind::shutdown;
        row.context = context_;
      }
      break;
    case Kind::returned:
      add_system(event, "return from interrupt", context);
      break;
    case Kind::fast_call:
      add_system(event, event.value == 1 ? "SYSCALL" : "SYSENTER", context);
      break;
    case Kind::fast_return:
      add_system(event, event.value == 1 ? "SYSRET" : "SYSEXIT", context);
      break;
    case Kind::address_space:
      add_system(event, "load of CR3 or CR0", context);
      break;
    case Kind::cache_flushed:
      add_system(event, event.value != 0 ? "WBINVD" : "INVD", context);
      break;
    case Kind::translation_dropped:
      add_system(event, "translation dropped", context);
      break;
    case Kind::port_read:
    case Kind::port_write:
      if (needs_.ports) {
        rows_.ports.push_back({event.position, event.port, event.size,
                               static_cast<std::uint32_t>(event.value),
                               event.kind == Kind::port_write, context_});
      }
      break;
    case Kind::external_write:
      if (needs_.external_writes) {
        rows_.external_writes.push_back({event.position, event.physical, event.size});
      }
      break;
    case Kind::call_began:
      if (needs_.system_calls) add_system_call(event);
      break;
    case Kind::call_ended:
      if (needs_.system_calls) end_system_call(event);
      break;
    default:
      break;
  }
  is_stale_ = true;
  if (needs_.system) {
    address_space_before_ = context.address_space();
    process_before_ = contexts_.name(names_.process(context));
  }
  if (event.position.instruction >= checked_at_) [[unlikely]]
    require_memory();
}

/// What is read stretch by stretch is bounded by that; all else has to find room.
void RowCollector::require_memory() {
  constexpr std::uint64_t kEvery = std::uint64_t{1} << 16;
  checked_at_ = behind_.instruction + kEvery;
  if (rows_.bytes() > memory_limit()) {
    refuse_memory("what the query asks for", "instruction " + std::to_string(behind_.instruction) +
                                                 "; ask for fewer positions, or for counts");
  }
}

}  // namespace citcat::sql
