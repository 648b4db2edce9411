#include "tools/host/context.h"

#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {

namespace {

bool is_interrupt(DeliveredEvent::Kind kind) {
  return kind == DeliveredEvent::Kind::external || kind == DeliveredEvent::Kind::nmi ||
         kind == DeliveredEvent::Kind::smi;
}

}  // namespace

const Context::Open* Context::interrupt() const {
  for (const Open* o = open_.get(); o != nullptr; o = o->outer.get()) {
    if (is_interrupt(o->kind)) return o;
  }
  return nullptr;
}

std::uint32_t Context::interrupt_depth() const {
  std::uint32_t depth = 0;
  for (const Open* o = open_.get(); o != nullptr; o = o->outer.get()) {
    if (is_interrupt(o->kind)) ++depth;
  }
  return depth;
}

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

void Context::address_space_loaded(std::uint32_t cr3) {
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
bool Context::isolates(std::uint32_t cr3) const {
  constexpr std::uint64_t kEntry = 32;  ///< instructions; Linux takes less than ten
  return entered_ && (cr3 ^ address_space_) == kUserTables && (cr3 & kUserTables) == 0 &&
         in_long_mode(machine_->engine()) &&
         machine_->position().instruction - entered_at_ <= kEntry;
}

bool Context::in_wide_call() const {
  for (const Open* o = open_.get(); o != nullptr; o = o->outer.get()) {
    if (o->system_call) return o->wide_call;
  }
  return false;
}

std::optional<std::uint32_t> Context::system_call() const {
  for (const Open* o = open_.get(); o != nullptr; o = o->outer.get()) {
    if (o->system_call) return o->eax;
  }
  return std::nullopt;
}

void Context::delivered(const DeliveredEvent& event) {
  refresh();
  interrupted_level_ = level_;
  interrupted_open_ = open_;
  auto opened = std::make_shared<Open>();
  entered(level_);
  opened->kind = event.kind;
  opened->vector = event.vector;
  opened->level = level_;
  opened->eax = machine_->engine().gpr(kEax);
  opened->system_call = event.kind == DeliveredEvent::Kind::software &&
                        event.vector == kSystemCallVector && level_ == kUserLevel;
  if (level_ != kUserLevel) opened->outer = open_;
  open_ = std::move(opened);
  level_changes();
}

void Context::fast_call(bool wide) {
  auto opened = std::make_shared<Open>();
  entered(level_);
  opened->kind = DeliveredEvent::Kind::software;
  opened->vector = kSystemCallVector;
  opened->level = level_;
  opened->eax = machine_->engine().gpr(kEax);
  opened->system_call = level_ == kUserLevel;
  opened->wide_call = wide;
  if (level_ != kUserLevel) opened->outer = open_;
  open_ = std::move(opened);
  level_changes();
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
