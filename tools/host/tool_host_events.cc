// Passes events between instructions to the tools.

#include "replay/machine/machine.h"
#include "tools/host/tool_host.h"

namespace citcat::tools {

void ToolHost::tell_event(MachineEvent event) {
  now_ = event.position;
  if (options_.names != nullptr) options_.names->event(event, context_);
  if (listening_.events.empty() || !in_range(event.position)) return;
  if (!context_.begun() && context_.refresh()) context_changed();
  if (options_.scope != nullptr && !options_.scope->holds(context_terms_)) return;
  Group& mine = group();
  for (const std::size_t i : listening_.events) mine.tools[i]->event(event, context_);
}

/// Whoever is told the beginning is told the end, though it is elsewhere in the scope.
void ToolHost::call_began(std::uint64_t number, const SystemCall& call) {
  if (listening_.events.empty() || !in_range(now_)) return;
  if (options_.scope != nullptr && !options_.scope->holds(context_terms_)) return;
  open_calls_[number] = &group();
  tell_call(MachineEvent::Kind::call_began, number, call, group());
}

void ToolHost::call_ended(std::uint64_t number, const SystemCall& call) {
  look_for_another_process(now_);
  const auto open = open_calls_.find(number);
  if (open == open_calls_.end()) return;
  Group& mine = *open->second;
  open_calls_.erase(open);
  tell_call(MachineEvent::Kind::call_ended, number, call, mine);
}

void ToolHost::tell_call(MachineEvent::Kind kind, std::uint64_t number, const SystemCall& call,
                         Group& group) {
  MachineEvent event = MachineEvent::at(kind, now_);
  event.call = &call;
  event.number = number;
  for (const std::size_t i : listening_.events) group.tools[i]->event(event, context_);
}

void ToolHost::mapping(LinearAddr page, PhysAddr frame, Position now) {
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::mapping, now);
  event.linear = page;
  event.physical = frame;
  tell_event(event);
}

void ToolHost::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::port_read, now);
  event.port = port;
  event.size = size;
  event.value = value;
  tell_event(event);
  count_for_windows(Counted::ports, port, now);
}

void ToolHost::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::port_write, now);
  event.port = port;
  event.size = size;
  event.value = value;
  tell_event(event);
  count_for_windows(Counted::ports, port, now);
}

void ToolHost::delivered(const DeliveredEvent& delivery, Position now) {
  if (delivery.kind == DeliveredEvent::Kind::software) pending_.forget_code();
  flush_others();
  if (context_.refresh()) context_changed();
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::delivered, now);
  event.delivery = delivery;
  leave_repeat(now);
  tell_event(event);
  switch (delivery.kind) {
    case DeliveredEvent::Kind::exception:
      count_for_windows(Counted::exceptions, delivery.vector, now);
      break;
    case DeliveredEvent::Kind::software:
      if (delivery.vector == Context::kSystemCallVector) {
        count_for_windows(Counted::syscalls, context_.machine().engine().gpr(kEax), now);
      }
      break;
    default:
      count_for_windows(Counted::interrupts, delivery.vector, now);
  }
  context_.delivered(delivery);
  interrupted_at_ = now;
  context_changed();
}

void ToolHost::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  flush_others();
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::external_write, now);
  event.physical = a;
  event.size = static_cast<std::uint32_t>(bytes.size());
  tell_event(event);
}

void ToolHost::translation_dropped(LinearAddr page, Position now) {
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::translation_dropped, now);
  event.linear = page;
  tell_event(event);
}

void ToolHost::halted(Position now) {
  tell_event(MachineEvent::at(MachineEvent::Kind::halted, now));
}

void ToolHost::cache_flushed(bool write_back, Position now) {
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::cache_flushed, now);
  event.value = write_back ? 1 : 0;
  tell_event(event);
}

void ToolHost::shutdown(Position now) {
  tell_event(MachineEvent::at(MachineEvent::Kind::shutdown, now));
}

void ToolHost::address_space(AddressSpaceId cr3, Position now) {
  flush_others();
  MachineEvent event = MachineEvent::at(MachineEvent::Kind::address_space, now);
  event.value = cr3;
  const AddressSpaceId before = context_.address_space();
  context_.address_space_loaded(cr3);
  event.before = context_.space_of(before);
  context_changed();
  tell_event(event);
  count_for_windows(Counted::switches, 0, now);
  look_for_another_process(now);
}

}  // namespace citcat::tools
