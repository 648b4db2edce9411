#include "tools/mdl/mdl_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "tools/guest/machine_guest.h"
#include "tools/guest/system_call.h"

namespace citcat::mdl {

namespace {

using tools::Execution;
using tools::MachineEvent;
using tools::ProcedureNumber;

/// Arguments of a procedure that are kept.
constexpr unsigned kArguments = 8;

/// The points that an instruction is, besides PointKind::instruction.
std::optional<PointKind> class_of(const DecodedInstruction& info) {
  switch (info.kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
      return PointKind::branch;
    case InstructionClass::jump:
    case InstructionClass::far_jump:
      return PointKind::jump;
    case InstructionClass::call:
    case InstructionClass::far_call:
      return PointKind::call;
    case InstructionClass::ret:
    case InstructionClass::far_return:
    case InstructionClass::iret:
      return PointKind::return_;
    case InstructionClass::string:
    case InstructionClass::ins:
    case InstructionClass::outs:
      return PointKind::string;
    default:
      return std::nullopt;
  }
}

bool is_transfer(const DecodedInstruction& info) {
  const InstructionClass kind = info.kind;
  return kind >= InstructionClass::jcc && kind <= InstructionClass::loadall &&
         kind != InstructionClass::bound;
}

/// Puts addresses in the place of symbols. Before a recording is read nobody knows any.
void resolve(CodeNode& node, const MetricRequest& request, const tools::NameSource* names) {
  for (CodeNode& part : node.parts) resolve(part, request, names);
  if (node.kind != CodeNode::Kind::symbol || names == nullptr) return;
  const std::optional<LinearAddr> address = names->symbol(node.name);
  if (!address) {
    throw UsageError("metric " + request.text + ": expected the name of a symbol, found \"" +
                     node.name + "\", which is not among the symbols (see --symbols)");
  }
  node.kind = CodeNode::Kind::number;
  node.value = static_cast<std::int64_t>(address->value);
}

/// Names of files may hold what patterns have a meaning for.
std::string quoted(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::vector<tools::Column> metric_columns() {
  return {{"metric", "metric", ""},       {"focus", "focus", ""},
          {"value", "value", ""},         {"unit", "unit", ""},
          {"processes", "processes", ""}, {"unknown", "not counted: unknown arguments", ""}};
}

MdlRun::MdlRun(const Library& library, const std::vector<MetricRequest>& requests,
               const tools::NameSource* names)
    : library_(library), names_(names), procedures_(names) {
  for (const MetricRequest& request : requests) {
    Plan plan = plan_of(request);
    wants_arguments_ = wants_arguments_ || plan.wants_arguments;
    reads_memory_ = reads_memory_ || plan.reads_memory;
    // Made for each procedure or module when it is first met; what they ask for is the same.
    if (plan.is_for_each_code()) {
      for_each_code_.push_back(request);
    } else {
      add(std::move(plan));
    }
  }
}

Plan MdlRun::plan_of(const MetricRequest& request) const {
  Plan plan = make_plan(library_, request);
  for (Attachment& a : plan.attachments) {
    for (CodeNode& line : a.code) resolve(line, request, names_);
  }
  return plan;
}

tools::Wants MdlRun::wants() const {
  tools::Wants wants = tools::CallFollower::wants();
  const auto asks = [&](PointKind kind) {
    if (is_wanted(kind)) return true;
    return std::any_of(for_each_code_.begin(), for_each_code_.end(),
                       [&](const MetricRequest& request) {
                         const Plan plan = make_plan(library_, request);
                         return std::any_of(plan.attachments.begin(), plan.attachments.end(),
                                            [&](const Attachment& a) { return a.point == kind; });
                       });
  };
  wants.walks = asks(PointKind::walk);
  wants.references =
      wants.walks || asks(PointKind::reference) || asks(PointKind::read) || asks(PointKind::write);
  wants.registers = reads_memory_;
  return wants;
}

// ---------------------------------------------------------------------------------------------
// Putting code at points

void MdlRun::put(Codes& codes, MetricRun& run, const Attachment& attachment) const {
  codes.insert(attachment.prepend ? codes.begin() : codes.end(), {&run, &attachment});
}

void MdlRun::add(Plan plan) {
  MetricRun& run = runs_.emplace_back(std::move(plan), runs_.size());
  for (const Attachment& a : run.plan().attachments) {
    if (!a.is_of_procedures()) {
      put(at(a.point), run, a);
      continue;
    }
    for (ProcedureNumber p = 0; p < procedure_points_.size(); ++p) {
      if (!a.has(procedures_.module(p), procedures_.name(p))) continue;
      put(procedure_points_[p][static_cast<std::size_t>(a.point)], run, a);
    }
  }
  context_changes();
}

/// Metrics for each procedure or module, where this is the first of its own.
void MdlRun::add_for_code(ProcedureNumber procedure) {
  const std::string &module = procedures_.module(procedure), &name = procedures_.name(procedure);
  for (const MetricRequest& request : for_each_code_) {
    MetricRequest one = request;
    for (Resource& r : one.focus.resources) {
      if (r.root != Root::code || !r.matches(0, module) || !r.matches(1, name)) continue;
      r.parts[0] = quoted(module);
      if (r.parts.size() > 1) r.parts[1] = quoted(name);
      one.text = one.metric + "@" + one.focus.text();
      if (made_.emplace(one.text, true).second) add(plan_of(one));
    }
  }
}

std::array<MdlRun::Codes, MdlRun::kProcedurePoints>& MdlRun::points_of(ProcedureNumber procedure) {
  while (procedure_points_.size() <= procedure) {
    const auto next = static_cast<ProcedureNumber>(procedure_points_.size());
    auto& points = procedure_points_.emplace_back();
    for (MetricRun& run : runs_) {
      for (const Attachment& a : run.plan().attachments) {
        if (a.is_of_procedures() && a.has(procedures_.module(next), procedures_.name(next))) {
          put(points[static_cast<std::size_t>(a.point)], run, a);
        }
      }
    }
    add_for_code(next);
  }
  return procedure_points_[procedure];
}

// ---------------------------------------------------------------------------------------------
// Reaching them

void MdlRun::look_at_context(const tools::Context& context) {
  context_ = &context;
  if (known_ && context.level() == level_ && context.address_space() == space_ &&
      context.open() == open_) {
    return;
  }
  known_ = true;
  level_ = context.level();
  space_ = context.address_space();
  open_ = context.open();
  for (MetricRun& run : runs_) run.look_at(context, names_, window_);
}

Point MdlRun::point_here() const {
  Point point;
  point.module = &procedures_.module(procedure_);
  point.procedure = &procedures_.name(procedure_);
  point.values.memory = &memory_;
  return point;
}

std::optional<std::int64_t> MdlRun::Memory::integer(std::int64_t address) const {
  if (run_.context_ == nullptr) return std::nullopt;
  const tools::MachineGuest guest(run_.context_->machine());
  const auto bytes = guest.bytes(LinearAddr{static_cast<std::uint64_t>(address)}, 4);
  if (!bytes) return std::nullopt;
  std::int32_t value = 0;
  std::memcpy(&value, bytes->data(), sizeof value);
  return value;
}

/// What a thread does first: the code of $start.
void MdlRun::begin_thread(Thread& thread) {
  for (const Code& code : at(PointKind::run_begins)) {
    ThreadState& state = code.run->state(thread);
    if (std::exchange(state.begun, true)) continue;
    for (const Code& all : at(PointKind::run_begins)) {
      if (all.run == code.run) all.run->reach(*all.attachment, thread, point_here());
    }
  }
}

Thread& MdlRun::enter(const tools::CallStacks::Clock& clock) {
  if (!known_) look_at_context(*context_);
  Thread& thread = threads_.of(clock);
  begin_thread(thread);
  return thread;
}

void MdlRun::reach(const Codes& codes, const tools::CallStacks::Clock& clock, const Point& point) {
  if (codes.empty()) return;
  Thread& thread = enter(clock);
  for (const Code& code : codes) code.run->reach(*code.attachment, thread, point);
}

void MdlRun::reach(PointKind kind, Point point) {
  reach(at(kind), follower_.stacks().thread(), point);
}

void MdlRun::called(ProcedureNumber caller, ProcedureNumber procedure) {
  Point point = point_here();
  point.values.arguments = arguments_;
  points_of(std::max(caller, procedure));
  const auto clock = follower_.stacks().thread();
  reach(points_of(caller)[static_cast<std::size_t>(PointKind::procedure_call)], clock, point);
  enter_procedure(procedure, point);
}

void MdlRun::went_on(ProcedureNumber procedure) {
  points_of(procedure);
  enter_procedure(procedure, point_here());
}

void MdlRun::enter_procedure(ProcedureNumber procedure, const Point& call) {
  procedure_ = procedure;
  Point entry = point_here();
  entry.values = call.values;
  const auto clock = follower_.stacks().thread();
  reach(points_of(procedure)[static_cast<std::size_t>(PointKind::procedure_entry)], clock, entry);
}

void MdlRun::left(const tools::CallFrame& frame, std::uint64_t /*instructions*/, bool /*outermost*/,
                  bool /*outermost_arc*/) {
  Point point = point_here();
  if (context_ != nullptr) {
    point.values.result = context_->machine().engine().gpr(kEax);
  }
  const auto clock = follower_.stacks().thread_left();
  points_of(std::max(frame.caller, frame.procedure));
  reach(points_of(frame.procedure)[static_cast<std::size_t>(PointKind::procedure_return)], clock,
        point);
  reach(points_of(frame.caller)[static_cast<std::size_t>(PointKind::call_returned)], clock, point);
}

void MdlRun::executed(ProcedureNumber procedure, std::uint64_t instructions) {
  const tools::CallFollower::Part part = follower_.part();
  procedure_ = procedure;
  points_of(procedure);
  const auto clock = follower_.stacks().thread();
  Thread& thread = enter(clock);
  const Point point = point_here();
  if (instructions != 0) {
    passed_.clear();
    for (MetricRun* const run : thread.running) {
      run->pass(instructions, thread, point);
      passed_.push_back(run);
    }
    for (MetricRun& run : runs_) {
      if (!run.wall_timer_runs()) continue;
      run.pass(instructions, thread, point);
      passed_.push_back(&run);
    }
    if (std::exchange(begins_block_, false)) reach(PointKind::block, point);
    for (const auto& [i, kind] : piece_->points) {
      if (part.has(i)) reach(kind, point);
    }
  }
  if (!execution_->references().empty()) reach_references(*execution_, part);
  if (part.end != piece_->count) return;
  if (piece_->transfers) begins_block_ = true;
  if (piece_->calls && wants_arguments_) keep_arguments(*context_);
}

void MdlRun::taken_back(ProcedureNumber /*procedure*/) {
  for (MetricRun* const run : std::exchange(passed_, {})) run->take_back();
}

void MdlRun::reach_references(const Execution& execution, tools::CallFollower::Part part) {
  const auto one = [this, part](const tools::Reference& r) {
    if (!part.has(r.instruction)) return;
    Point point = point_here();
    const bool walk = r.kind == AccessKind::walk;
    const std::optional<std::int64_t> values[] = {
        static_cast<std::int64_t>(walk ? r.physical.value : r.linear.value), r.size};
    point.values.arguments = values;
    if (walk) return reach(PointKind::walk, point);
    if (r.kind != AccessKind::data) return;
    point.data = tools::LinearRange{r.linear, LinearAddr{r.linear.value + r.size}};
    reach(PointKind::reference, point);
    reach(r.write ? PointKind::write : PointKind::read, point);
  };
  const bool any = is_wanted(PointKind::walk) || is_wanted(PointKind::reference) ||
                   is_wanted(PointKind::read) || is_wanted(PointKind::write);
  if (any) tools::for_each_access(execution, one);
}

/// On the stack above the return address where a program runs; the kernel takes the first three in
/// registers, as Linux on i386 is built (-mregparm=3). In 64-bit mode all take the first six in
/// registers (System V ABI, AMD64 supplement, 3.2.3).
void MdlRun::keep_arguments(const tools::Context& context) {
  const tools::MachineGuest guest(context.machine());
  arguments_.clear();
  const bool program = guest.runs_program();
  const bool wide = guest.in_64_bit_mode();
  if (wide) {
    for (const int number : std::initializer_list<int>{kEdi, kEsi, kEdx, kEcx, 8, 9}) {
      arguments_.push_back(static_cast<std::int64_t>(guest.gpr(number)));
    }
  } else if (!program) {
    for (const int number : {kEax, kEdx, kEcx}) arguments_.push_back(guest.gpr(number));
  }
  const unsigned bytes = guest.word_bytes();
  LinearAddr at = guest.onward(LinearAddr{guest.gpr(kEsp)}, bytes);
  while (arguments_.size() < kArguments) {
    arguments_.push_back(guest.word(at));
    at = guest.onward(at, bytes);
  }
}

// ---------------------------------------------------------------------------------------------
// What is told

void* MdlRun::code(const tools::StaticBlock& block) {
  Piece& piece = pieces_.emplace_back();
  piece.followed = follower_.code(block);
  piece.count = block.count();
  for (std::uint32_t i = 0; i < piece.count; ++i) {
    if (is_wanted(PointKind::instruction) || !for_each_code_.empty()) {
      piece.points.emplace_back(i, PointKind::instruction);
    }
    if (const auto kind = class_of(block[i].info)) piece.points.emplace_back(i, *kind);
  }
  piece.transfers = is_transfer(block.back().info);
  piece.calls = block.back().info.kind == InstructionClass::call ||
                block.back().info.kind == InstructionClass::far_call;
  return &piece;
}

void MdlRun::run(void* mine, const Execution& execution, const tools::Context& context) {
  look_at_context(context);
  piece_ = static_cast<const Piece*>(mine);
  execution_ = &execution;
  follower_.run(piece_->followed, execution, context);
}

void MdlRun::accesses(std::span<const tools::OtherAccess> all, const tools::Context& context) {
  if (!is_wanted(PointKind::walk)) return;
  look_at_context(context);
  for (const tools::OtherAccess& a : all) {
    if (a.kind != AccessKind::walk || a.code) continue;
    Point point = point_here();
    const std::optional<std::int64_t> values[] = {static_cast<std::int64_t>(a.physical.value),
                                                  a.size};
    point.values.arguments = values;
    reach(PointKind::walk, point);
  }
}

void MdlRun::event(const MachineEvent& event, const tools::Context& context) {
  using Kind = MachineEvent::Kind;
  context_changes();
  look_at_context(context);
  Point point = point_here();
  const auto reach_with = [&](PointKind kind, std::span<const std::optional<std::int64_t>> values) {
    point.values.arguments = values;
    reach(kind, point);
  };
  const auto reach_delivery = [&](DeliveredEvent::Kind kind, std::uint8_t vector,
                                  std::uint32_t error, bool entry) {
    if (kind == DeliveredEvent::Kind::software) return;
    const bool exception = kind == DeliveredEvent::Kind::exception;
    if (!exception) point.vector = vector;
    const std::optional<std::int64_t> values[] = {vector, error};
    reach_with(exception ? (entry ? PointKind::exception_entry : PointKind::exception_return)
                         : (entry ? PointKind::interrupt_entry : PointKind::interrupt_return),
               values);
  };
  switch (event.kind) {
    case Kind::delivered:
      begins_block_ = true;
      follower_.event(event, context);
      reach_delivery(event.delivery.kind, event.delivery.vector, event.delivery.error_code, true);
      break;
    case Kind::returned:
      if (const auto* const open = context.open(); open != nullptr && event.value != 0) {
        reach_delivery(open->kind, open->vector, 0, false);
      }
      follower_.event(event, context);
      break;
    case Kind::call_began:
    case Kind::call_ended: {
      std::array<std::optional<std::int64_t>, tools::kSystemCallArguments> values{};
      std::copy_n(event.call->arguments.begin(), event.call->known_arguments, values.begin());
      point.values.result = signed_result(*event.call);
      reach_with(event.kind == Kind::call_began ? PointKind::system_call_entry
                                                : PointKind::system_call_return,
                 values);
      break;
    }
    case Kind::port_read:
    case Kind::port_write: {
      point.port = event.port;
      const std::optional<std::int64_t> values[] = {event.port, event.size,
                                                    static_cast<std::int64_t>(event.value)};
      reach_with(event.kind == Kind::port_read ? PointKind::port_read : PointKind::port_write,
                 values);
      break;
    }
    case Kind::external_write: {
      const std::optional<std::int64_t> values[] = {static_cast<std::int64_t>(event.physical.value),
                                                    event.size};
      reach_with(PointKind::dma, values);
      break;
    }
    case Kind::address_space: {
      const std::optional<std::int64_t> values[] = {static_cast<std::int64_t>(event.value)};
      reach_with(PointKind::switch_, values);
      break;
    }
    case Kind::halted:
      reach_with(PointKind::halt, {});
      break;
    case Kind::window_closed:
      ++window_;
      break;
    default:
      follower_.event(event, context);
  }
  context_changes();
}

void MdlRun::end() {
  if (!is_wanted(PointKind::run_ends) || context_ == nullptr) return;
  threads_.for_each([this](Thread& thread) {
    for (const Code& code : at(PointKind::run_ends)) {
      code.run->reach(*code.attachment, thread, point_here());
    }
  });
}

void MdlRun::report(tools::Table& table) const {
  for (const MetricRun& run : runs_) run.report(table);
}

}  // namespace citcat::mdl
