#include "tools/host/tool_host.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replay/machine/iteration_address.h"
#include "replay/machine/machine.h"

namespace citcat::tools {

/// What the host keeps with a block of the machine; all that it needs to tell it once more.
struct CodeNote final : BlockNote {
  explicit CodeNote(KnownCode& c) : code(&c) {}
  KnownCode* code;
  const Group* group = nullptr;  ///< that was told last
  ToolCode* told = nullptr;      ///< what it keeps
  ToolCode::Call only;           ///< the one call, where that is all that there is to do
};

namespace {

/// It is told after its own delivery.
bool is_software_interrupt(InstructionClass kind) {
  return kind == InstructionClass::int_n || kind == InstructionClass::int3 ||
         kind == InstructionClass::into || kind == InstructionClass::icebp;
}

bool may_change_level(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::sysenter:
    case InstructionClass::sysexit:
    case InstructionClass::syscall:
    case InstructionClass::sysret:
    case InstructionClass::rsm:
    case InstructionClass::loadall:
    case InstructionClass::lmsw:
    case InstructionClass::mov_to_cr:
      return true;
    default:
      return false;
  }
}

/// What the one tool keeps with the block: most often not more than a few lines of the host's
/// cache.
inline void fetch_notes_ahead(const ExecutedBlock& block) {
  if (block.note() == nullptr || *block.note() == nullptr) return;
  const auto* const mine =
      static_cast<const char*>(static_cast<const CodeNote&>(**block.note()).only.mine);
  constexpr std::ptrdiff_t kLine = 64;
  for (int i = 0; mine != nullptr && i < 3; ++i) __builtin_prefetch(mine + i * kLine);
}

}  // namespace

ToolHost::ToolHost(Analysis& analysis, const HostOptions& options)
    : analysis_(analysis),
      options_(options),
      wants_(analysis.wants()),
      plan_(options.samples != nullptr                                     ? options.samples
            : options.windows != nullptr && options.windows->by_position() ? options.windows
                                                                           : nullptr),
      library_(analysis.code()) {
  if (options.windows != nullptr && !options.windows->by_position()) {
    counter_.emplace(*options.windows);
  }
  if (options_.names != nullptr) options_.names->set_watcher(this);
  if (options_.isolated_tables) context_.isolate_tables();
  const std::vector<Wants> each = analysis.wants_of_each();
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i].any_execution()) listening_.run.push_back(i);
    if (each[i].counts) counted_.push_back(i);
    if (each[i].events) listening_.events.push_back(i);
    if (each[i].references) listening_.accesses.push_back(i);
    if (each[i].passes) pass_.push_back(i);
  }
  in_windows_ = listening_;
  const bool everything =
      options.scope == nullptr && options.windows == nullptr && analysis.by().empty();
  CITCAT_ASSERT(options.samples == nullptr || everything);
  passes_ = everything && (options.samples != nullptr || pass_ == listening_.run);
  const bool data = (options.scope != nullptr && options.scope->has_data_terms()) ||
                    windows_count(Counted::writes);
  if (wants_.accesses) each_ = Detail::accesses;
  if (wants_.references || wants_.walks || wants_.values || data) each_ = Detail::references;
}

ToolHost::~ToolHost() {
  if (options_.names != nullptr) options_.names->set_watcher(nullptr);
}

Interest ToolHost::interest() const {
  const bool each = wants_.registers;
  return {.code = each_, .stores = each, .mappings = each, .reads = each};
}

void ToolHost::watch(const Machine& machine) {
  context_.watch(machine);
  context_changed();
}

/// All of [first, end) is told.
bool ToolHost::is_told_whole(Position first, std::uint64_t end) {
  if (first.instruction < options_.from || end > options_.to) return false;
  return in_window(first) && (plan_ == nullptr || phase_end_ >= end);
}

/// What happened, or ran, at `now` may open or close a window.
void ToolHost::count_for_windows(Happening h, Position now) {
  if (!counter_ || now.instruction < options_.from || now.instruction >= options_.to) return;
  h.context = &context_;
  const bool was_open = counter_->is_open();
  // A window that closes here is told so while it is open, one that opens when it is.
  if (was_open) {
    WindowCounter after = *counter_;
    if (after.count(h)) tell_event(MachineEvent::at(MachineEvent::Kind::window_closed, now));
  }
  if (counter_->count(h) && !was_open) {
    tell_event(MachineEvent::at(MachineEvent::Kind::window_opened, now));
  }
}

void ToolHost::count_for_windows(const ExecutedInstruction& e,
                                 std::span<const Reference> references, Position now) {
  if (!counter_) return;
  if (now.iteration == 0) count_for_windows(Counted::instructions, 0, now, true);
  if (windows_count(Counted::writes)) {
    for (const Reference& r : references) {
      if (!r.write || r.kind != AccessKind::data) continue;
      count_for_windows({.what = Counted::writes,
                         .value = r.linear.value,
                         .size = r.size,
                         .is_of_instruction = true},
                        now);
    }
  }
  if (now.iteration != 0) return;
  if (windows_count(Counted::procedures)) {
    count_for_windows(Counted::procedures, e.linear.value, now, true);
  }
  switch (e.info->kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
      return count_for_windows(Counted::branches, 0, now, true);
    case InstructionClass::call:
    case InstructionClass::far_call:
      return count_for_windows(Counted::calls, 0, now, true);
    case InstructionClass::ret:
    case InstructionClass::far_return:
      return count_for_windows(Counted::returns, 0, now, true);
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return count_for_windows(Counted::syscalls, context_.machine().engine().gpr(kEax), now, true);
    default:
      return;
  }
}

/// Another one runs, or the same has got another name.
void ToolHost::look_for_another_process(Position now) {
  if (!windows_count(Counted::processes)) return;
  std::string name = options_.names->process(context_);
  if (name == process_) return;
  process_ = std::move(name);
  count_for_windows(Counted::processes, 0, now);
}

// ---------------------------------------------------------------------------------------------
// Context and scope

/// Finds anew who is told what runs in the context that is.
void ToolHost::context_changed() {
  if (options_.scope != nullptr) context_terms_ = options_.scope->context_terms(context_);
  if (analysis_.by().empty()) {
    group_ = &analysis_.group({});
    return;
  }
  std::vector<std::string> labels;
  for (const Split split : analysis_.by()) {
    switch (split) {
      case Split::process:
        labels.push_back(options_.names->process(context_));
        break;
      case Split::level:
        labels.push_back(std::to_string(context_.level_within()));
        break;
      case Split::interrupt: {
        const auto vector = context_.interrupt();
        labels.push_back(vector ? std::to_string(*vector) : "none");
        break;
      }
    }
  }
  labels_ = std::move(labels);
  group_ = nullptr;
}

/// The group that what is going to be told belongs to; made only where something is.
Group& ToolHost::group() {
  if (group_ == nullptr) group_ = &analysis_.group(labels_);
  return *group_;
}

/// Which terms of the scope the place of the code decides.
void ToolHost::look_at(KnownCode& code) const {
  code.looked_at = true;
  code.static_terms = options_.scope->code_terms(code.block.front());
  code.uniform = std::all_of(code.block.instructions().begin(), code.block.instructions().end(),
                             [&](const StaticInstruction& i) {
                               return options_.scope->code_terms(i) == code.static_terms;
                             });
}

void ToolHost::tell(KnownCode& code, const Execution& execution) {
  if (options_.scope == nullptr) return tell_group(code, execution);
  tell_in_scope(code, execution);
}

void ToolHost::tell_in_scope(KnownCode& code, const Execution& execution) {
  const Scope& scope = *options_.scope;
  if (!code.looked_at) look_at(code);
  const bool alone = code.block.count() == 1;
  if (alone || (code.uniform && !scope.has_data_terms())) {
    std::uint64_t terms = context_terms_ | code.static_terms;
    if (scope.has_data_terms()) terms |= scope.data_terms(execution);
    if (!scope.holds(terms)) return told_.turn_to(nullptr, context_);
    tell_group(code, execution);
    return;
  }
  const std::span<const Reference> all = execution.references();
  for (std::uint32_t i = 0; i < code.block.count(); ++i) {
    KnownCode& one = library_.single(code.block[i]);
    claimed_.clear();
    for (const Reference& r : all) {
      if (r.instruction != i) continue;
      claimed_.push_back(r);
      claimed_.back().instruction = 0;
    }
    tell_in_scope(one, execution.instruction(one.block, i, claimed_));
  }
}

ToolCode& ToolHost::make_group_code(KnownCode& code) {
  Group& mine = group();
  if (mine.number >= code.groups.size()) code.groups.resize(mine.number + 1);
  auto made = std::make_unique<ToolCode>();
  for (const auto& tool : mine.tools) made->mine.push_back(tool->code(code.block));
  for (const std::size_t i : in_windows_.run) {
    made->calls.push_back({mine.tools[i].get(), made->mine[i]});
  }
  return *(code.groups[mine.number] = std::move(made));
}

/// What the tools of the group keep with the code.
ToolCode& ToolHost::group_code(KnownCode& code, const Group& mine) {
  if (code.told != nullptr && code.told_group == mine.number) [[likely]]
    return *code.told;
  ToolCode* const known =
      mine.number < code.groups.size() ? code.groups[mine.number].get() : nullptr;
  code.told = known != nullptr ? known : &make_group_code(code);
  code.told_group = mine.number;
  return *code.told;
}

void ToolHost::tell_group(KnownCode& code, const Execution& execution) {
  const Group& mine = group();
  told_.turn_to(&mine, context_);
  ToolCode& kept = group_code(code, mine);
  if (code.repeats()) told_.repeat = &kept;
  if (phase_ == Phase::window) [[likely]]
    return tell_to(kept, code, execution);
  if (options_.samples != nullptr) count(kept, code, execution);
  for (const std::size_t i : listening_.run) mine.tools[i]->run(kept.mine[i], execution, context_);
}

inline void ToolHost::count(ToolCode& kept, const KnownCode& code, const Execution& execution) {
  if (counted_.empty()) return;
  if (code.repeats()) {
    const bool begins = execution.first().iteration == 0;
    kept.executions += begins ? 1 : 0;
    kept.further += execution.iterations() - (begins ? 1u : 0u);
  } else {
    ++kept.executions;
  }
}

/// Counts it, and tells all who are told of executions.
void ToolHost::tell_to(ToolCode& kept, const KnownCode& code, const Execution& execution) {
  count(kept, code, execution);
  for (const ToolCode::Call& call : kept.calls) call.tool->run(call.mine, execution, context_);
}

void ToolHost::counted(const ExecutedBlock& block, std::uint64_t executions) {
  group_code(code_of(block), group()).executions += executions;
}

/// The run ends, or goes on elsewhere, at that position: if that lies within a REP, it did not
/// complete.
void ToolHost::leave_repeat(Position at) {
  ToolCode* const left = std::exchange(told_.repeat, nullptr);
  if (at.iteration == 0 || left == nullptr || !in_range(at)) return;
  ++left->interrupted;
  for (const auto& tool : told_.group->tools) tool->unfinished(at);
}

void ToolHost::finish() {
  flush_others();
  leave_repeat(context_.machine().position());
  std::vector<Group*> groups = analysis_.groups();
  if (options_.samples != nullptr) {
    const std::vector<FrameNumber> frames = context_.machine().memory().changed_frames();
    for (const auto& tool : group().tools) tool->stored_to(frames);
  }
  if (counted_.empty()) return;
  for (KnownCode& code : library_.all()) {
    for (std::size_t g = 0; g < code.groups.size(); ++g) {
      ToolCode* const kept = code.groups[g].get();
      if (kept == nullptr || (kept->executions == 0 && kept->further == 0)) continue;
      for (const std::size_t i : counted_) {
        Tool& tool = *groups[g]->tools[i];
        if (code.repeats()) {
          tool.iterated(kept->mine[i], kept->executions, kept->further);
          if (kept->interrupted != 0) tool.interrupted(kept->mine[i], kept->interrupted);
        } else {
          tool.counted(kept->mine[i], kept->executions);
        }
      }
      kept->executions = kept->further = kept->interrupted = 0;
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Code

/// The note of a block that keeps notes.
inline CodeNote& ToolHost::note_of(const ExecutedBlock& block) {
  std::unique_ptr<BlockNote>& note = *block.note();
  if (note == nullptr) [[unlikely]]
    note = std::make_unique<CodeNote>(library_.block(block.code()));
  return static_cast<CodeNote&>(*note);
}

KnownCode& ToolHost::code_of(const ExecutedBlock& block) {
  return block.note() == nullptr ? library_.block(block.code()) : *note_of(block).code;
}

/// Tells all of it in one go, to all tools of the group.
inline void ToolHost::tell_plainly(const ExecutedBlock& block, Position first, const Group& mine) {
  if (block.note() == nullptr) [[unlikely]] {
    KnownCode& code = code_of(block);
    return tell_group(code, execution_of(block, code, first));
  }
  CodeNote& note = note_of(block);
  if (note.group != &mine) [[unlikely]] {
    note.group = &mine;
    note.told = &group_code(*note.code, mine);
    note.only = {};
    if (counted_.empty() && note.told->calls.size() == 1) note.only = note.told->calls.front();
  }
  const Execution execution = execution_of(block, *note.code, first);
  if (note.only.tool != nullptr) return note.only.tool->run(note.only.mine, execution, context_);
  tell_to(*note.told, *note.code, execution);
}

void ToolHost::block(const ExecutedBlock& block, Position first) {
  if (context_.refresh()) [[unlikely]]
    context_changed();
  const std::uint64_t end = first.instruction + block.count();
  if (counter_ || !is_told_whole(first, end)) [[unlikely]] {
    return block_by_instructions(block, first);
  }
  if (!pending_.empty()) [[unlikely]]
    flush_others();
  if (options_.scope == nullptr && phase_ == Phase::window) {
    told_.turn_to(&group(), context_);
    return tell_plainly(block, first, *told_.group);
  }
  KnownCode& code = code_of(block);
  tell(code, execution_of(block, code, first));
}

void ToolHost::ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) {
  if (trails_) return trailed(blocks, first);
  if (context_.refresh()) [[unlikely]]
    context_changed();
  const bool plainly = !counter_ && is_told_whole(first, first.instruction + count) &&
                       phase_ == Phase::window && options_.scope == nullptr && pending_.empty();
  if (!plainly) {
    for (const ExecutedBlock& b : blocks) {
      block(b, first);
      first.instruction += b.count();
    }
    return;
  }
  const Group& mine = group();
  told_.turn_to(&mine, context_);
  // What is kept of a block was used when it ran last, and each part of it leads to the next.
  for (const ExecutedBlock& b : blocks) {
    if (b.note() != nullptr) __builtin_prefetch(b.note()->get());
  }
  for (const ExecutedBlock& b : blocks) fetch_notes_ahead(b);
  for (const ExecutedBlock& b : blocks) {
    tell_plainly(b, first, mine);
    first.instruction += b.count();
  }
}

/// Part of it lies beyond what is to be told.
void ToolHost::block_by_instructions(const ExecutedBlock& block, Position first) {
  flush_others();
  KnownCode& code = code_of(block);
  const Execution whole = execution_of(block, code, first);
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const Position now{first.instruction + i, 0};
    claimed_.clear();
    for (const Reference& r : block.references()) {
      if (r.instruction != i) continue;
      claimed_.push_back(r);
      claimed_.back().instruction = 0;
    }
    if (counter_) count_for_windows(block.instruction(i), claimed_, now);
    if (!in_range(now)) continue;
    KnownCode& one = library_.single(code.block[i]);
    tell(one, whole.instruction(one.block, i, claimed_));
  }
}

void ToolHost::instruction(const ExecutedInstruction& e, Position now) { tell_alone(e, 1, 0, now); }

void ToolHost::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
  if (count != 0) tell_alone(first, count, step, now);
}

void ToolHost::tell_alone(const ExecutedInstruction& e, std::uint32_t iterations,
                          std::uint32_t step, Position now) {
  const InstructionClass kind = e.info->kind;
  told_.repeat = nullptr;  // who is not told of this one is not told of its end
  if (is_software_interrupt(kind) && std::exchange(interrupted_at_, std::nullopt) == now) {
    context_.swap_with_interrupted();
    context_changed();
    tell_in_context(e, iterations, step, now);
    context_.swap_with_interrupted();
    context_changed();
    return;
  }
  const bool moved = may_change_level(kind)
                         ? context_.settle_before_change(context_.machine().level_before())
                         : context_.refresh();
  if (moved) context_changed();
  tell_in_context(e, iterations, step, now);
  follow_context(e, now);
}

/// The context after an instruction.
void ToolHost::follow_context(const ExecutedInstruction& e, Position now) {
  const auto event_of = [&](MachineEvent::Kind kind) {
    MachineEvent event = MachineEvent::at(kind, now);
    event.level = context_.level();
    return event;
  };
  switch (e.info->kind) {
    case InstructionClass::iret:
    case InstructionClass::rsm: {
      MachineEvent event = event_of(MachineEvent::Kind::returned);
      event.value = context_.returned(e) ? 1 : 0;
      return tell_event(event);
    }
    case InstructionClass::sysenter:
    case InstructionClass::syscall: {
      MachineEvent event = event_of(MachineEvent::Kind::fast_call);
      context_.fast_call(e.info->kind == InstructionClass::syscall);
      event.value = e.info->kind == InstructionClass::syscall ? 1 : 0;
      return tell_event(event);
    }
    case InstructionClass::sysexit:
    case InstructionClass::sysret: {
      MachineEvent event = event_of(MachineEvent::Kind::fast_return);
      context_.fast_returned();
      event.value = e.info->kind == InstructionClass::sysret ? 1 : 0;
      return tell_event(event);
    }
    default:
      if (may_change_level(e.info->kind)) context_.level_changes();
      if (e.info->kind == InstructionClass::mov_to_cr) context_.may_load(e, now);
  }
}

void ToolHost::tell_in_context(const ExecutedInstruction& e, std::uint32_t iterations,
                               std::uint32_t step, Position now) {
  const PhysAddr rest = pending_.rest_of_code();
  const std::span<const Reference> references = claim_accesses(e);
  if (counter_) count_for_windows(e, references, now);
  if (!in_range(now)) return;
  KnownCode& code = library_.single(e, rest);
  const bool nothing = e.info->is_repeated() && e.ea_count == 0 && e.info->ea_count != 0;
  if (wants_.values && !e.references.empty()) {
    return tell_with_values(code, e, references, iterations, step, now);
  }
  if (iterations == 1 || references.size() == e.references.size()) {
    const std::uint32_t by = iterations == 1 ? 0 : step;
    tell(code, Execution(code.block, now, e.ea, references, iterations, by, nothing));
    return;
  }
  // What was told besides belongs to the first of them.
  tell(code, Execution(code.block, now, e.ea, references));
  std::vector<Reference> further(e.references.begin(), e.references.end());
  for (Reference& r : further) {
    r.physical = r.physical.plus32(step);
    r.linear = r.linear.plus32(step);
  }
  const LinearAddr addresses[2] = {address_after(e.ea[0], 1, step),
                                   address_after(e.ea[1], 1, step)};
  ++now.iteration;
  tell(code, Execution(code.block, now, addresses, further, iterations - 1, step));
}

/// Iterations of a string one by one, with what memory holds after them: each wrote elsewhere, and
/// what MOVS read is what it wrote.
void ToolHost::tell_with_values(KnownCode& code, const ExecutedInstruction& e,
                                std::span<const Reference> told, std::uint32_t iterations,
                                std::uint32_t step, Position now) {
  const Memory& memory = context_.machine().memory();
  std::vector<Reference> references(told.begin(), told.end());
  LinearAddr addresses[2] = {e.ea[0], e.ea[1]};
  for (std::uint32_t i = 0; i < iterations; ++i, ++now.iteration) {
    for (Reference& r : references) {
      std::memcpy(&r.value, memory.host(r.physical), std::min<std::size_t>(r.size, 8));
    }
    const std::size_t count = references.size();
    if (count >= 2 && references[count - 1].write) {
      references[count - 2].value = references[count - 1].value;
    }
    tell(code, Execution(code.block, now, addresses, references));
    // Walks are made for the first one.
    std::erase_if(references, [](const Reference& r) { return r.kind != AccessKind::data; });
    for (Reference& r : references) {
      r.physical = r.physical.plus32(step);
      r.linear = further(r.linear, step);
    }
    for (LinearAddr& a : addresses) a = further(a, step);
  }
}

}  // namespace citcat::tools
