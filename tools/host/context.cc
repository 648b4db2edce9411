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
  if (!begun_) address_space_ = space_of(machine_->engine().address_space());
  begun_ = true;
  level_ = level;
  if (level == kUserLevel) {
    open_.reset();
  } else if (returning_ && open_ != nullptr) {
    open_ = open_->outer;
  }
  returning_ = false;
}

void Context::address_space_loaded(AddressSpaceId cr3) {
  begun_ = true;
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

/// It is the other table of the process that was left just now: too soon for another process.
bool Context::isolates(AddressSpaceId cr3) const {
  constexpr std::uint64_t kEntry = 32;  ///< instructions; Linux takes less than ten
  return entered_ && (cr3 ^ address_space_) == kUserTables && (cr3 & kUserTables) == 0 &&
         in_long_mode(machine_->engine()) &&
         machine_->position().instruction - entered_at_ <= kEntry;
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

void Context::returned() {
  returning_ = true;
  level_changes();
}

}  // namespace citcat::tools
