#include "tools/export/step_stream.h"

#include <algorithm>
#include <utility>

#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {
namespace {

/// Pieces of one access lie one after the other, in two pages.
bool continues(const StepAccess& access, const StepAccess& next) {
  return next.linear.offset_in_page() == 0 && access.write == next.write &&
         next.linear != LinearAddr{0} && access.linear.value + access.size == next.linear.value;
}

/// Where the run would have gone on after `code`: the delivery has offsets in the code segment.
LinearAddr going_on(const StaticInstruction& code, const ToldEvent& event) {
  const DeliveredEvent& delivery = event.event.event.delivery;
  if (event.bits64) return LinearAddr{delivery.eip};
  const std::uint32_t base = code.linear.low32() - static_cast<std::uint32_t>(code.offset);
  return linear32(base, static_cast<std::uint32_t>(delivery.eip));
}

bool is_delivery(const ToldEvent& event) {
  return event.event.event.kind == MachineEvent::Kind::delivered;
}

bool by_software(const ToldEvent& event) {
  return is_delivery(event) && event.event.event.delivery.kind == DeliveredEvent::Kind::software;
}

bool asks_for_interrupt(const StaticInstruction& code) {
  const InstructionClass kind = code.info.kind;
  return kind == InstructionClass::int_n || kind == InstructionClass::int3 ||
         kind == InstructionClass::into || kind == InstructionClass::icebp;
}

}  // namespace

inline void StepTotals::add(const Step& step) {
  if (step.completes) ++instructions;
  if (step.further) {
    ++further;
  } else {
    ++fetched;
    if (step.level == 3) ++user;
  }
  for (const StepAccess& access : step.accesses) ++(access.write ? writes : reads);
}

void StepTotals::add(const StepTotals& more) {
  instructions += more.instructions;
  fetched += more.fetched;
  further += more.further;
  reads += more.reads;
  writes += more.writes;
  user += more.user;
  left_out += more.left_out;
}

void StepTotals::report(Report& out, bool accesses) const {
  out.value("instructions", "instructions completed", instructions);
  out.value("fetched", "instructions fetched", fetched);
  out.value("not_fetched", "further iterations of REP", further);
  out.value("user", "fetched at level 3", user);
  out.value("kernel", "fetched at another level", fetched - user);
  if (!accesses) return;
  out.value("reads", "reads", reads);
  out.value("writes", "writes", writes);
}

StepTool::StepTool(ExportFile file) : file_(std::move(file)) {
  file_.keep(file_.spool() != nullptr);
}

void* StepTool::code(const StaticBlock& block) {
  takes_runs_ = wants().accesses && !has_facts();
  std::vector<AddressedAccess>& all = shown_accesses_;
  all.clear();
  for (const StaticInstruction& each : block.instructions()) {
    if (accesses_follow(each.info)) append_accesses(each.info, all);
  }
  const std::size_t code_bytes = block.count() * sizeof(StepCode);
  const std::size_t bytes = sizeof(Shown) + code_bytes + all.size() * sizeof(AddressedAccess);
  constexpr std::size_t kCacheLine = 64;
  auto* const at = static_cast<std::uint8_t*>(shown_.allocate(bytes, kCacheLine));
  auto& shown = *new (at) Shown;
  auto* const code = reinterpret_cast<StepCode*>(at + sizeof(Shown));
  auto* const accesses = reinterpret_cast<AddressedAccess*>(at + sizeof(Shown) + code_bytes);
  std::uninitialized_copy(all.begin(), all.end(), accesses);
  shown.code = {code, block.count()};
  shown.accesses = accesses;
  shown.last_addresses = block.back().addresses_before;
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const StaticInstruction& each = block[i];
    const bool follow = accesses_follow(each.info);
    shown_accesses_.clear();
    if (follow) append_accesses(each.info, shown_accesses_);
    const std::size_t count = shown_accesses_.size();
    new (code + i) StepCode(each, know(each), follow ? count : StepCode::kUnknown);
    shown.last_accesses = accesses + used;
    used += count;
    shown.follow = shown.follow && follow;
  }
  for (const AddressedAccess* a = accesses; a != accesses + used; ++a) {
    ++(a->write ? shown.writes : shown.reads);
    if (a >= shown.last_accesses) ++(a->write ? shown.last_writes : shown.last_reads);
  }
  return &shown;
}

void StepTool::run(void* mine, const Execution& execution, const Context& context) {
  const Shown& shown = *static_cast<const Shown*>(mine);
  if (execution.is_ordinary() && shown.follow && takes_run()) [[likely]]
    return run_block(shown, execution, context);
  const std::span<const StepCode> code = shown.code;
  ToldStep step;
  step.code = code.data();
  step.position = execution.first();
  step.level = context.level();
  step.address_space = context.address_space();
  step.isolated_tables = context.has_isolated_tables();
  const bool in_one = execution.iterations() == 1 && !(execution.is_ordinary() && takes_runs_);
  if (!in_one || file_.is_kept() || has_facts()) [[unlikely]]
    return run_each(shown, execution, context, step);
  begin(step);
  const Reference* r = execution.references().data();
  const Reference* const end = r + execution.references().size();
  r = gather(r, end, 0, 0);
  // What follows in a block differs little from what comes before it.
  for (std::uint32_t i = 1; i < code.size(); ++i) {
    settle(code[i].linear, step.position.instruction + i);
    pending_.code = &code[i];
    pending_.position = {step.position.instruction + i, 0};
    pending_.further = false;
    is_pending_ = true;
    r = gather(r, end, i, 0);
  }
}

/// Ordinary code is passed to the tool by blocks, except for the last instruction of each, of which
/// it is not known yet where the run goes on.
void StepTool::run_block(const Shown& shown, const Execution& execution, const Context& context) {
  // Values go from register to register: a structure that was just put together field by field is
  // slow to copy.
  const std::uint64_t first = execution.first().instruction;
  const std::uint32_t level = context.level();
  const std::size_t count = shown.code.size();
  const StepCode* const code = shown.code.data();
  if (is_pending_) settle(code->linear, first);
  if (!asked_for_.empty()) [[unlikely]]
    tell_asked_for();  // an instruction that asks for one is none of ordinary code
  isolated_ = isolated_ || context.has_isolated_tables();
  const AddressSpaceId address_space =
      isolated_ ? Context::without_user_tables(context.address_space()) : context.address_space();
  const LinearAddr* const addresses = execution.addresses();
  const std::size_t accesses = std::size_t{shown.reads} + shown.writes;
  const bool in_one = !needs_next();
  if (in_one || count != 1) {
    StepRun run;
    run.code = {code, in_one ? count : count - 1};
    run.accesses = shown.accesses;
    run.access_count = in_one ? accesses : accesses - code[count - 1].accesses;
    run.addresses = addresses;
    run.first.instruction = first;
    run.level = level;
    run.address_space = address_space;
    run.next = code[count - 1].linear;
    if (in_one) {
      count_run(count, level, shown.reads, shown.writes);
      return steps(run);
    }
    count_run(count - 1, level, shown.reads - shown.last_reads, shown.writes - shown.last_writes);
    steps(run);
  }
  const StepCode& last = code[count - 1];
  last_.code = {&last, 1};
  last_.accesses = shown.last_accesses;
  last_.access_count = last.accesses;
  for (std::uint32_t i = 0; i < last.addresses; ++i) {
    last_addresses_[i] = addresses[shown.last_addresses + i];
  }
  last_.addresses = last_addresses_.data();
  last_.first.instruction = first + count - 1;
  last_.level = level;
  last_.address_space = address_space;
  last_reads_ = shown.last_reads;
  last_writes_ = shown.last_writes;
  pending_.code = &last;
  pending_.position.instruction = first + count - 1;
  pending_.position.iteration = 0;
  is_pending_ = true;
}

void StepTool::passed(std::uint64_t first, std::uint64_t end, const Context& context) {
  const StepStretch stretch{first, end, context.level(), context.address_space(),
                            context.has_isolated_tables()};
  if (!file_.is_kept()) return told_stretch(stretch);
  if (!log_) log_ = std::make_unique<StepLog>(file_.spool());
  log_->stretch(stretch);
}

void StepTool::told_stretch(StepStretch told) {
  // Where it begins is not known. Who receives stretches does not ask where the run went on.
  if (is_pending_) settle(LinearAddr{}, told.first);
  tell_asked_for();
  isolated_ = isolated_ || told.isolated_tables;
  if (isolated_) told.address_space = Context::without_user_tables(told.address_space);
  count_run(told.end - told.first, told.level, 0, 0);
  stretch(told);
}

/// The instruction that asked for an interrupt is not told.
void StepTool::tell_asked_for() {
  if (asked_for_.empty()) return;
  events_ = std::exchange(asked_for_, {});
  tell_events();
}

inline void StepTool::count_run(std::uint64_t instructions, std::uint32_t level,
                                std::uint64_t reads, std::uint64_t writes) {
  totals_.instructions += instructions;
  totals_.fetched += instructions;
  if (level == 3) totals_.user += instructions;
  totals_.reads += reads;
  totals_.writes += writes;
}

/// The pending step, which is of ordinary code.
inline void StepTool::settle_run(LinearAddr next, bool is_last) {
  last_.next = next;
  last_.is_last = is_last;
  count_run(1, last_.level, last_reads_, last_writes_);
  steps(last_);
  last_.code = {};
}

void StepTool::steps(const StepRun& run) {
  Step step;
  step.position = run.first;
  step.level = run.level;
  step.address_space = run.address_space;
  std::vector<StepAccess> accesses;
  run.for_each([&](const StepCode& code, const RunAccesses& made) {
    accesses.clear();
    for (std::size_t i = 0; i < made.size(); ++i) accesses.push_back(made[i]);
    const bool ends = &code == &run.code.back();
    step.code = &code;
    step.accesses = accesses;
    step.next = ends ? run.next : code.behind();
    step.is_last = ends && run.is_last;
    this->step(step);
    ++step.position.instruction;
    step.position.iteration = 0;
  });
}

/// The pending step of ordinary code as any other.
void StepTool::unfold_run() {
  if (last_.code.empty()) return;
  pending_.level = last_.level;
  pending_.address_space = last_.address_space;
  pending_.isolated_tables = isolated_;
  pending_.facts = {};
  pending_.further = false;
  set_accesses(RunAccesses(last_.accesses, last_.code.front().accesses, last_.addresses));
  last_.code = {};
}

void StepTool::set_accesses(const RunAccesses& made) {
  accesses_.clear();
  for (std::size_t i = 0; i < made.size(); ++i) accesses_.push_back(made[i]);
}

/// The same of whatever can be executed: iterations, in parts of a run too, with facts.
void StepTool::run_each(const Shown& shown, const Execution& execution, const Context& context,
                        ToldStep step) {
  const std::span<const StepCode> code = shown.code;
  const Reference* r = execution.references().data();
  const Reference* const end = r + execution.references().size();
  std::string facts;
  const AddressedAccess* following = shown.accesses;
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    step.code = &code[i];
    const Reference* behind = r;
    const bool known = code[i].accesses != StepCode::kUnknown;
    const bool follow = known && takes_runs_ && execution.is_ordinary();
    for (std::uint32_t k = 0; k < execution.iterations(); ++k) {
      step.position = {execution.first().instruction + i, execution.first().iteration + k};
      if (has_facts()) step.facts = facts = this->facts(execution, context);
      const bool logged = is_logged(step);
      if (!logged) k == 0 ? begin(step) : begin_further(step);
      behind = gather(r, end, i, k * execution.step());
      if (follow) {
        const LinearAddr* const addresses =
            execution.addresses() + code[i].instruction->addresses_before;
        set_accesses(RunAccesses(following, code[i].accesses, addresses));
      }
      if (logged) log_->step(step, accesses_);
    }
    r = behind;
    if (known) following += code[i].accesses;
  }
}

/// Collects what an iteration of the instruction with that number in its block accessed, which
/// begins at `r`, and returns where that ends.
inline const Reference* StepTool::gather(const Reference* r, const Reference* end,
                                         std::uint32_t instruction, std::uint32_t moved) {
  accesses_.clear();
  for (; r != end && r->instruction == instruction; ++r) {
    if (r->kind != AccessKind::data) continue;
    const StepAccess here{further(r->linear, moved), r->physical.plus32(moved), r->size, r->write};
    if (!accesses_.empty() && continues(accesses_.back(), here)) {
      accesses_.back().size += here.size;
    } else {
      accesses_.push_back(here);
    }
  }
  return r;
}

/// A part of the run writes what stands alone; what it needs of its neighbours is kept, as is all
/// of other formats.
void StepTool::keep(const ToldStep& step) {
  if (!log_) log_ = std::make_unique<StepLog>(file_.spool());
  if (!stands_alone() || writes_) return;
  writes_ = true;
  first_ = step.code->linear;
  first_instruction_ = step.position.instruction;
}

/// It is kept for the process that joins the parts, which passes it to the tool.
inline bool StepTool::is_logged(const ToldStep& step) {
  if (!file_.is_kept()) [[likely]]
    return false;
  keep(step);
  return !writes_;
}

void StepTool::told_step(const ToldStep& step, std::span<const StepAccess> accesses) {
  if (is_logged(step)) return log_->step(step, accesses);
  begin(step);
  accesses_.assign(accesses.begin(), accesses.end());
}

/// Where it goes on, and what it accessed, is still to come.
inline void StepTool::begin(const ToldStep& step) {
  if (is_pending_) settle(step.code->linear, step.position.instruction);
  if (!asked_for_.empty() && !asks_for_interrupt(*step.code->instruction)) [[unlikely]]
    tell_asked_for();
  static_cast<ToldStep&>(pending_) = step;
  if (!step.facts.empty()) pending_.facts = facts_ = step.facts;
  isolated_ = isolated_ || step.isolated_tables;
  if (isolated_) pending_.address_space = Context::without_user_tables(step.address_space);
  pending_.further = step.position.iteration != 0;
  is_pending_ = true;
  if (!asked_for_.empty()) [[unlikely]]
    events_ = std::exchange(asked_for_, {});
}

/// Another iteration of what begin() was called for.
inline void StepTool::begin_further(const ToldStep& step) {
  settle(step.code->linear, step.position.instruction);
  pending_.position = step.position;
  if (!step.facts.empty()) pending_.facts = facts_ = step.facts;
  pending_.further = true;
  is_pending_ = true;
}

/// The pending step is followed by `next`, the start of instruction `instruction` of the run.
inline void StepTool::settle(LinearAddr next, std::uint64_t instruction, bool is_last) {
  is_pending_ = false;
  if (!last_.code.empty()) {
    settle_run(next, is_last);
    if (!events_.empty()) tell_events();
    return;
  }
  pending_.next = next;
  pending_.accesses = accesses_;
  pending_.completes = instruction > pending_.position.instruction;
  pending_.is_last = is_last;
  totals_.add(pending_);
  step(pending_);
  if (!events_.empty()) tell_events();
}

void StepTool::happened(const StepEvent& event, const std::string& /*facts*/) { happened(event); }

void StepTool::tell_events() {
  for (const ToldEvent& h : std::exchange(events_, {})) happened(h.event, h.facts);
}

void StepTool::event(const MachineEvent& event, const Context& context) {
  const Engine& engine = context.machine().engine();
  ToldEvent told;
  told.event = {event, context.level(), context.address_space(), engine.gpr(kEax),
                stack_address(engine)};
  told.bits64 = code_bits(engine) == 64;
  told.facts = facts(event, context);
  told_event(told);
}

void StepTool::told_event(const ToldEvent& event) {
  if (file_.is_kept() && !writes_) {
    if (!log_) log_ = std::make_unique<StepLog>(file_.spool());
    return log_->event(event);
  }
  // Told before the instruction, which is next.
  if (by_software(event)) {
    asked_for_.push_back(event);
    return;
  }
  // Only a delivery says where the run would have gone on. A step before another event is settled
  // by the instruction after that.
  if (is_pending_ && is_delivery(event)) {
    settle(going_on(*pending_.code->instruction, event), event.event.event.position.instruction);
  }
  events_.push_back(event);
  if (!is_pending_) tell_events();
}

void StepTool::told_written(LinearAddr first, std::uint64_t instruction, const StepTotals& totals) {
  if (is_pending_) settle(first, instruction);
  totals_.add(totals);
}

/// Keeps the text of a part, its last step and the events after that.
void StepTool::keep_text() {
  if (!writes_) return;
  writes_ = false;
  unfold_run();
  log_->written(first_, first_instruction_, totals_, file_.take_pieces());
  if (is_pending_) log_->step(pending_, accesses_);
  for (const ToldEvent& event : events_) log_->event(event);
  for (const ToldEvent& event : asked_for_) log_->event(event);
}

void StepTool::save(ByteWriter& out) const {
  // What is written is no part of what the tool holds, and is written once.
  auto& self = const_cast<StepTool&>(*this);
  if (!self.log_) self.log_ = std::make_unique<StepLog>(file_.spool());
  self.keep_text();
  self.log_->save(out);
}

void StepTool::load(ByteReader& in) {
  log_ = std::make_unique<StepLog>(file_.spool());
  log_->load(in);
  file_.keep(false);
  if (file_.begins()) tell(std::move(log_));
}

void StepTool::follow(Tool&& later) { tell(std::move(static_cast<StepTool&>(later).log_)); }

void StepTool::tell(std::unique_ptr<StepLog> log) {
  read_.push_back(std::move(log));
  read_.back()->tell(*this);
}

void StepTool::report(Report& out) const {
  auto& self = const_cast<StepTool&>(*this);
  if (is_pending_) self.settle(pending_.code->behind(), pending_.position.instruction + 1, true);
  self.events_ = std::exchange(self.asked_for_, {});
  self.tell_events();
  if (!ended_) self.end();
  self.ended_ = true;
  totals_.report(out, wants().accesses || wants().references);
  report_more(out);
}

}  // namespace citcat::tools
