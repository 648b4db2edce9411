#include "monitor/qemu/translation.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "monitor/qemu/monitor.h"
#include "monitor/qemu/physical_memory.h"
#include "monitor/qemu/recorded_window.h"
#include "monitor/qemu/start_watch.h"
#include "monitor/qemu/turn_taking.h"

namespace citcat::monitor {
namespace {

/// Callbacks that may look at registers cost more: only where something may be looked at.
bool needs_registers(const Insn& insn, const Insn* before) {
  return insn.first_in_block || insn.what.calls_system || insn.what.kind != InsnKind::plain ||
         (before != nullptr &&
          (before->what.kind != InsnKind::plain || before->what.loaded_segments != 0));
}

/// Whether the recording may end before an instruction for what it is.
bool may_be_last(const Insn& insn) {
  const Trigger& stop = monitor->options.stop;
  const bool process = stop.kind == Trigger::Kind::process || stop.kind == Trigger::Kind::exit;
  return (stop.kind == Trigger::Kind::address && insn.linear == stop.number) ||
         (process && insn.user && (insn.first_in_block || insn.what.calls_system));
}

/// The recorder may be told later that such an instruction was begun.
bool may_wait(const Insn& insn, const Insn* before) {
  return !needs_registers(insn, before) && insn.ends_plainly && !insn.waits_for_stop &&
         monitor->phase == Phase::recording;
}

Insn describe(qemu_plugin_insn* handle, bool first_in_block, bool user, CodeSize code) {
  Insn insn;
  insn.linear = qemu_plugin_insn_vaddr(handle);
  insn.code = code;
  insn.physical = monitor->memory.address_of(qemu_plugin_insn_haddr(handle));
  insn.size = static_cast<std::uint8_t>(
      qemu_plugin_insn_data(handle, insn.bytes.data(), insn.bytes.size()));
  insn.first_in_block = first_in_block;
  insn.user = user;
  insn.what = classify({insn.bytes.data(), insn.size}, code);
  return insn;
}

/// While waiting for no process: 16-bit code of protected mode is taken for 32-bit code,
/// compatibility mode for 64-bit mode. No more than the size of what it writes to ports is seen
/// otherwise.
CodeSize likely_code_size(QemuRegisters& registers) {
  if (registers.in_long_mode()) return CodeSize::bits64;
  return registers.in_real_mode() ? CodeSize::bits16 : CodeSize::bits32;
}

/// Once there is a machine, before the first address of its RAM is asked for.
bool find_high_memory() {
  if (std::exchange(monitor->knows_high_memory, true)) return true;
  return monitor->memory.find_high(find_physical_map(), find_physical_unmap());
}

/// Room for a block's instructions, for good: blocks live until they are translated anew. They are
/// close together, in large pages of the host, because most of the time they are in none of its
/// caches when they begin.
Insn* place_for(std::size_t count) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20, kRoom = kLargePage / sizeof(Insn);
  static std::span<Insn> room;
  if (count > kRoom) return new Insn[count];
  if (room.size() < count) {
    void* const memory = std::aligned_alloc(kLargePage, kLargePage);
    if (memory == nullptr) throw std::bad_alloc();
    (void)madvise(memory, kLargePage, MADV_HUGEPAGE);
    room = {static_cast<Insn*>(memory), kRoom};
  }
  const std::span<Insn> place = room.first(count);
  room = room.subspan(count);
  std::uninitialized_default_construct(place.begin(), place.end());
  return place.data();
}

/// Has a block reported to the recorder.
void follow_block(qemu_plugin_tb* block, bool user, CodeSize code) {
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  Insn* const insns = place_for(count);
  for (std::size_t n = 0; n < count; ++n) {
    qemu_plugin_insn* const handle = qemu_plugin_tb_get_insn(block, n);
    Insn* const insn = insns + n;
    const Insn* const before = n == 0 ? nullptr : insn - 1;
    *insn = describe(handle, n == 0, user, code);
    complete(*insn, before, monitor->options.cache);
    // Before it is known what was fetched of it: stores to it are looked at.
    monitor->memory.note_use(insn->physical, GuestMemory::kCode);
    insn->waits_for_stop = may_be_last(*insn);
    // Such a store is made for the processor for which the block is translated: see running().
    insn->waits = !monitor->several() && may_wait(*insn, before);
    if (insn->waits) {
      qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(handle, QEMU_PLUGIN_INLINE_STORE_U64,
                                                          {monitor->score, 0},
                                                          reinterpret_cast<std::uintptr_t>(insn));
    } else {
      const auto flags =
          needs_registers(*insn, before) ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS;
      qemu_plugin_register_vcpu_insn_exec_cb(handle, on_start, flags, insn);
    }
    const bool looks = insn->what.kind == InsnKind::x87 || moves_environment(insn->what.kind) ||
                       loads_code_segment(insn->what.kind);
    const auto access_flags = looks ? QEMU_PLUGIN_CB_R_REGS : QEMU_PLUGIN_CB_NO_REGS;
    void* const tagged = TaggedInsn(*insn).word();
    qemu_plugin_register_vcpu_mem_cb(handle, on_load, access_flags, QEMU_PLUGIN_MEM_R, tagged);
    qemu_plugin_register_vcpu_mem_cb(handle, on_store, access_flags, QEMU_PLUGIN_MEM_W, tagged);
  }
  complete_block({insns, count});
}

}  // namespace

void on_translate(std::uintptr_t first, std::uintptr_t second) {
  auto* const block = reinterpret_cast<qemu_plugin_tb*>(is_ours(second) ? first : second);
  if (monitor->phase == Phase::done) return;
  if (!find_high_memory())
    return stop_without_recording(
        "this QEMU does not say where its RAM is; choose no more than 2 GiB of it");
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  // A block is translated when it is about to run, at the level it runs at.
  QemuRegisters& registers = running().registers;
  const bool user = (monitor->phase != Phase::waiting || monitor->watches_processes()) &&
                    registers.at_user_level();
  const CodeSize code = monitor->phase == Phase::waiting && !user ? likely_code_size(registers)
                                                                  : registers.code_size();
  InsnKind kind_before = InsnKind::plain;
  if (monitor->phase != Phase::waiting) return follow_block(block, user, code);
  for (std::size_t n = 0; n < count; ++n) {
    qemu_plugin_insn* const handle = qemu_plugin_tb_get_insn(block, n);
    auto insn = std::make_unique<Insn>(describe(handle, n == 0, user, code));
    const InsnKind kind = insn->what.kind;
    watch_for_start(block, handle, kind_before, std::move(insn));
    kind_before = kind;
  }
}

}  // namespace citcat::monitor
