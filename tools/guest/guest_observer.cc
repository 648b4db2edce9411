#include "tools/guest/guest_observer.h"

namespace citcat::tools {

void GuestObserver::watch(const Machine& machine) {
  guest_ = std::make_unique<MachineGuest>(machine);
  follower_.watch(*guest_);
  names_.address_space(guest_->address_space());
}

void GuestObserver::instruction(const ExecutedInstruction& e, Position now) {
  switch (e.info->kind) {
    case InstructionClass::iret:
      return follower_.returned(now);
    case InstructionClass::sysenter:
      return follower_.fast_call(now, false);
    case InstructionClass::syscall:
      return follower_.fast_call(now, true);
    case InstructionClass::sysret:
    case InstructionClass::sysexit:
      return follower_.fast_returned(now, e.info->kind == InstructionClass::sysret);
    default:
      return;
  }
}

void GuestObserver::delivered(const DeliveredEvent& event, Position now) {
  follower_.delivered(event, now);
}

void GuestObserver::address_space(AddressSpaceId cr3, Position /*now*/) {
  names_.address_space(cr3);
}

void GuestObserver::began(const SystemCall& call) {
  names_.began(call);
  if (listener_ != nullptr) listener_->began(call);
}

void GuestObserver::ended(const SystemCall& call) {
  if (listener_ != nullptr) listener_->ended(call);
}

void GuestObserver::forked(AddressSpaceId parent, AddressSpaceId child, Position now) {
  names_.forked(parent, child, now);
  if (listener_ != nullptr) listener_->forked(parent, child, now);
}

void GuestObserver::executed(AddressSpaceId address_space, const std::string& path, Position now) {
  names_.executed(address_space, path, now);
  if (listener_ != nullptr) listener_->executed(address_space, path, now);
}

void GuestObserver::renamed(AddressSpaceId address_space, const std::string& name, Position now) {
  names_.renamed(address_space, name, now);
  if (listener_ != nullptr) listener_->renamed(address_space, name, now);
}

}  // namespace citcat::tools
