#include "replay/machine/units/stack_pusher.h"

#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

StackTop StackPusher::inner_stack(std::uint32_t level, std::uint32_t ext,
                                  std::optional<Descriptor>& descriptor) {
  const Segment tr = cpu_.engine.tr();
  const bool wide = (tr.attributes & 8) != 0;
  const std::uint32_t at = wide ? 4 + 8 * level : 2 + 4 * level;
  if (at + (wide ? 7 : 3) > tr.limit) {
    throw CpuException{kInvalidTss, (tr.selector & 0xfffcu) | ext, 0};
  }
  StackTop top;
  top.inner = true;
  top.user = level == 3;
  top.esp = system_.read(linear32(tr.base, at), wide ? 4 : 2);
  const auto ss =
      static_cast<std::uint16_t>(system_.read(linear32(tr.base, at + (wide ? 4 : 2)), 2));
  const std::uint32_t error = (ss & 0xfffcu) | ext;
  if ((ss & 0xfffc) == 0) throw CpuException{kInvalidTss, ext, 0};
  descriptor = segments_.read_descriptor(ss, kInvalidTss, ext);
  if ((ss & 3u) != level || descriptor->dpl() != level || !descriptor->is_writable_data()) {
    throw CpuException{kInvalidTss, error, 0};
  }
  if (!descriptor->present()) throw CpuException{kStackFault, error, 0};
  top.segment = descriptor->segment(ss);
  return top;
}

/// Moves the stack pointer down by one push, and returns the offset of its place.
std::uint32_t StackPusher::next_push(StackTop& top, std::uint32_t width, std::uint32_t ext) const {
  const Segment& stack = top.segment;
  const std::uint32_t mask = stack_mask(stack);
  const std::uint32_t at = (top.esp - width) & mask;
  const bool expand_down = (stack.attributes & 0x0c) == 0x04;
  const bool fits = expand_down ? at > stack.limit && mask - at >= width - 1
                                : at <= stack.limit && stack.limit - at >= width - 1;
  if (!fits) {
    throw CpuException{kStackFault, top.inner ? ((stack.selector & 0xfffcu) | ext) : ext, 0};
  }
  top.esp = (top.esp & ~mask) | at;
  return at;
}

void StackPusher::push(StackTop& top, std::uint32_t value, std::uint32_t width, std::uint32_t ext) {
  const std::uint32_t at = next_push(top, width, ext);
  system_.push(linear32(top.segment.base, at), value, width, top.user);
}

void StackPusher::page_in_pushes(StackTop top, std::uint32_t width, unsigned count) {
  for (; count != 0; --count) {
    const std::uint32_t at = next_push(top, width, 0);
    const LinearAddr linear = linear32(top.segment.base, at);
    cpu_.mmu.translate(linear, Access::write, program(top.user));
    cpu_.mmu.translate(linear.plus32(width - 1), Access::write, program(top.user));
  }
}

}  // namespace citcat
