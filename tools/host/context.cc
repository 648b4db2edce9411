#include "tools/host/context.h"

#include <utility>

#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {

namespace {

bool is_interrupt(DeliveredEvent::Kind kind) {
  return kind == DeliveredEvent::Kind::external || kind == DeliveredEvent::Kind::nmi ||
         kind == DeliveredEvent::Kind::smi;
}

}  // namespace

/// One after the other, not one within the other: a chain may be longer than the stack is deep.
Context::Open::~Open() {
  std::shared_ptr<Open> next = std::move(outer);
  while (next != nullptr && next.use_count() == 1) next = std::exchange(next->outer, nullptr);
}

std::optional<std::uint8_t> Context::interrupt() const {
  if (interrupt_depth() == 0) return std::nullopt;
  return open_->interrupt;
}

std::uint32_t Context::interrupt_depth() const { return open_ != nullptr ? open_->interrupts : 0; }

std::uint32_t Context::machine_level() const { return machine_->engine().hflags() & kHfCpl; }

void Context::settle(std::uint32_t level) {
  if (!begun_) {
    isolated_ = isolated_ || runs_with_isolated_tables(*machine_);
    address_space_ = space_of(machine_->engine().address_space());
  }
  begun_ = true;
  level_ = level;
  if (level == kUserLevel) {
    open_.reset();
  } else if (returning_ != nullptr) {
    open_ = returning_->outer;
  }
  returning_ = nullptr;
}

void Context::address_space_loaded(AddressSpaceId cr3) {
  begun_ = true;
  if (returning_ != nullptr) open_ = std::exchange(returning_, nullptr)->outer;
  if (!isolated_ && isolates(cr3)) {
    isolated_ = true;
    address_space_ = space_of(address_space_);
  }
  cr3 = space_of(cr3);
  if (cr3 == address_space_) return;
  // What was interrupted in the one is open until that goes on.
  open_of_[address_space_] = std::move(open_);
  const auto found = open_of_.find(cr3);
  open_ = found != open_of_.end() ? std::move(found->second) : nullptr;
  address_space_ = cr3;
}

void Context::entered(std::uint32_t from_level) {
  if (from_level != kUserLevel) return;
  entered_ = true;
  entered_at_ = machine_->position().instruction;
}

/// It is the other table of the process: the kernel changes to its own too soon for a switch of
/// processes, or to the program's to go back to it.
bool Context::isolates(AddressSpaceId cr3) const {
  if ((cr3 ^ address_space_) != kUserTables || !in_long_mode(machine_->engine())) return false;
  if ((cr3 & kUserTables) == 0) return was_entered_just_now();
  // Switches of tasks and RSM load CR3, too.
  return load_.second == machine_->position() && is_leaving_kernel(*machine_, load_.first);
}

bool Context::was_entered_just_now() const {
  return entered_ && machine_->position().instruction - entered_at_ <= kMostToLoad;
}

bool Context::in_wide_call() const { return open_ != nullptr && open_->in_wide_call; }

std::optional<std::uint32_t> Context::system_call() const {
  return open_ != nullptr ? open_->call : std::nullopt;
}

/// An event that is delivered to level 3 has no outer one.
void Context::open(Open opened) {
  entered(level_);
  opened.level = level_;
  opened.eax = machine_->engine().gpr(kEax);
  opened.stack = stack_address(machine_->engine());
  if (level_ != kUserLevel) opened.outer = open_;
  if (const Open* const outer = opened.outer.get()) {
    opened.depth = outer->depth + 1;
    opened.interrupts = outer->interrupts;
    opened.interrupt = outer->interrupt;
    opened.call = outer->call;
    opened.in_wide_call = outer->in_wide_call;
  }
  if (is_interrupt(opened.kind)) {
    ++opened.interrupts;
    opened.interrupt = opened.vector;
  }
  if (opened.system_call) {
    opened.call = opened.eax;
    opened.in_wide_call = opened.wide_call;
  }
  open_ = std::make_shared<Open>(std::move(opened));
  if (open_->depth >= 2 * kDeepest) forget_outermost();
  level_changes();
}

/// Memory is not to grow with the length of a run that never returns from its handlers.
void Context::forget_outermost() {
  Open* o = open_.get();
  for (std::uint32_t depth = kDeepest; depth > 1 && o->outer != nullptr; --depth) {
    o->depth = depth;
    o = o->outer.get();
  }
  o->depth = 1;
  o->outer.reset();
}

void Context::delivered(const DeliveredEvent& event) {
  refresh();
  interrupted_level_ = level_;
  interrupted_open_ = open_;
  Open opened;
  opened.kind = event.kind;
  opened.vector = event.vector;
  opened.system_call = event.kind == DeliveredEvent::Kind::software &&
                       event.vector == kSystemCallVector && level_ == kUserLevel;
  open(std::move(opened));
}

void Context::fast_call(bool wide) {
  Open opened;
  opened.kind = DeliveredEvent::Kind::software;
  opened.vector = kSystemCallVector;
  opened.system_call = level_ == kUserLevel;
  opened.wide_call = wide;
  open(std::move(opened));
}

void Context::fast_returned() {
  open_.reset();
  level_changes();
}

bool Context::returned(const ExecutedInstruction& by) {
  level_changes();
  returning_ = open_.get();
  if (returning_ == nullptr || machine_level() == kUserLevel) return true;
  const std::optional<LinearAddr> stack = stack_behind(by);
  if (!stack) return true;
  returning_ = interrupted_with(*stack);
  return returning_ != nullptr;
}

/// Where the stack is once IRET has gone back; nullopt where it has no frame, as within tasks, or
/// the frame is not known.
std::optional<LinearAddr> Context::stack_behind(const ExecutedInstruction& iret) const {
  constexpr unsigned kWords = 3;  // IP, CS and flags; in 64-bit mode RSP and SS follow
  if (iret.info->kind != InstructionClass::iret || iret.ea_count == 0) return std::nullopt;
  const unsigned bytes = iret.info->operand_bytes;
  const LinearAddr behind{iret.ea[0].value + kWords * bytes};
  if (!iret.info->bits64) return behind;
  std::uint64_t stack = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto physical = machine_->find(LinearAddr{behind.value + i});
    const auto byte = physical ? machine_->memory().defined_byte(*physical) : std::nullopt;
    if (!byte) return std::nullopt;
    stack |= std::uint64_t{*byte} << 8 * i;
  }
  return LinearAddr{stack};
}

/// The innermost that interrupted what has this stack. It may have changed by an item: Linux calls
/// from an exception's handler as if the interrupted code did (int3_emulate_call()). A handler's
/// own stack is farther away, below the frame.
Context::Open* Context::interrupted_with(LinearAddr stack) const {
  constexpr int kSearched = 64;
  constexpr std::uint64_t kItem = 8, kSmallestFrame = 6;
  const std::uint64_t below = in_long_mode(machine_->engine()) ? kItem : kSmallestFrame - 2;
  int left = kSearched;
  for (Open* o = open_.get(); o != nullptr && left > 0; o = o->outer.get(), --left) {
    if (o->stack.value - stack.value <= below || stack.value - o->stack.value <= kItem) return o;
  }
  return nullptr;
}

}  // namespace citcat::tools
