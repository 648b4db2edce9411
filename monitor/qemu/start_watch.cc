#include "monitor/qemu/start_watch.h"

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/qemu/turn_taking.h"

namespace citcat::monitor {
namespace {

void on_wbinvd(unsigned, void*) {
  hear();
  if (monitor->phase == Phase::waiting &&
      static_cast<std::uint32_t>(monitor->now->registers.gpr(3)) == CITCAT_ARM_VALUE)
    arm();
}

void on_address(unsigned, void*) {
  if (monitor->phase == Phase::waiting) arm();
}

void on_count(unsigned, void* user) {
  hear();
  monitor->started += reinterpret_cast<std::uintptr_t>(user);
  if (monitor->phase == Phase::waiting && monitor->started >= monitor->options.start.number) arm();
}

void on_port_write(unsigned, void* user) {
  hear();
  if (monitor->phase == Phase::waiting &&
      is_trigger_port_write(monitor->start_watch, *static_cast<const Insn*>(user)))
    arm();
}

CodeSize size_from(void* user) {
  return static_cast<CodeSize>(reinterpret_cast<std::uintptr_t>(user));
}
void* as_user_data(CodeSize size) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(size));
}

void on_user_block(unsigned, void* code) {
  hear();
  if (monitor->phase != Phase::waiting) return;
  (void)monitor->stop_process.block(size_from(code));
  if (monitor->start_process.block(size_from(code))) arm();
}

void on_system_call(unsigned, void* code) {
  hear();
  if (monitor->phase != Phase::waiting) return;
  (void)monitor->stop_process.call(size_from(code));
  if (monitor->start_process.call(size_from(code))) arm();
}

void on_wrmsr(unsigned, void*) {
  hear();
  const auto low = [](unsigned n) {
    return static_cast<std::uint32_t>(monitor->now->registers.gpr(n));
  };
  monitor->now->recorder.facts().msrs[low(1)] = std::uint64_t{low(2)} << 32 | low(0);
}

/// XSETBV is about to be executed. It takes what a processor takes: of register 0, at level 0, with
/// the component that XCR0 always has (Intel SDM vol. 2, XSETBV).
void on_xsetbv(unsigned, void*) {
  hear();
  const auto low = [](unsigned n) {
    return static_cast<std::uint32_t>(monitor->now->registers.gpr(n));
  };
  if (low(1) != 0 || (low(0) & kX87State) == 0 || monitor->now->registers.at_user_level()) return;
  monitor->now->recorder.facts().xcr0 = std::uint64_t{low(2)} << 32 | low(0);
}

/// CPUID is about to be executed.
void on_cpuid(unsigned, void*) {
  hear();
  monitor->now->asked_leaf = static_cast<std::uint32_t>(monitor->now->registers.gpr(0));
  monitor->now->asked_subleaf = static_cast<std::uint32_t>(monitor->now->registers.gpr(1));
}

/// It has been, and the next instruction of the block is about to be.
void on_cpuid_answer(unsigned, void*) {
  hear();
  const auto low = [](unsigned n) {
    return static_cast<std::uint32_t>(monitor->now->registers.gpr(n));
  };
  monitor->now->recorder.facts().note_cpuid(monitor->now->asked_leaf, monitor->now->asked_subleaf,
                                            {low(0), low(3), low(1), low(2)});
}

/// What a recording without the driver begins with, since only instructions tell of it.
void watch_model(qemu_plugin_insn* handle, const Insn& insn, InsnKind before) {
  if (insn.what.kind == InsnKind::wrmsr)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_wrmsr, QEMU_PLUGIN_CB_R_REGS, nullptr);
  if (!monitor->now->registers.has_long_mode()) return;
  if (before == InsnKind::cpuid)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_cpuid_answer, QEMU_PLUGIN_CB_R_REGS, nullptr);
  if (insn.what.kind == InsnKind::cpuid)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_cpuid, QEMU_PLUGIN_CB_R_REGS, nullptr);
}

}  // namespace

bool is_trigger_port_write(PortWatch& watch, const Insn& insn) {
  const std::uint32_t port = insn.what.port_in_dx
                                 ? static_cast<std::uint16_t>(monitor->now->registers.gpr(2))
                                 : insn.what.port;
  return watch.write(port, static_cast<std::uint32_t>(monitor->now->registers.gpr(0)),
                     insn.what.operand_bytes);
}

void note_model(const Insn& insn) {
  if (insn.what.kind == InsnKind::wrmsr) on_wrmsr(0, nullptr);
  if (insn.what.kind == InsnKind::xsetbv) on_xsetbv(0, nullptr);
}

void watch_for_start(qemu_plugin_tb* block, qemu_plugin_insn* handle, InsnKind before,
                     std::unique_ptr<Insn> insn) {
  const Trigger& start = monitor->options.start;
  if (insn->what.kind == InsnKind::xsetbv)
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_xsetbv, QEMU_PLUGIN_CB_R_REGS, nullptr);
  // The driver dumps these itself.
  if (start.kind != Trigger::Kind::driver) watch_model(handle, *insn, before);
  if (insn->user && insn->first_in_block && monitor->watches_processes())
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_user_block, QEMU_PLUGIN_CB_R_REGS,
                                           as_user_data(insn->code));
  if (insn->user && insn->what.calls_system && monitor->watches_processes())
    qemu_plugin_register_vcpu_insn_exec_cb(handle, on_system_call, QEMU_PLUGIN_CB_R_REGS,
                                           as_user_data(insn->code));
  switch (start.kind) {
    case Trigger::Kind::driver:
      if (insn->what.kind == InsnKind::wbinvd)
        qemu_plugin_register_vcpu_insn_exec_cb(handle, on_wbinvd, QEMU_PLUGIN_CB_R_REGS, nullptr);
      break;
    case Trigger::Kind::address:
      if (insn->linear == start.number)
        qemu_plugin_register_vcpu_insn_exec_cb(handle, on_address, QEMU_PLUGIN_CB_NO_REGS, nullptr);
      break;
    case Trigger::Kind::count:
      if (insn->first_in_block)
        qemu_plugin_register_vcpu_tb_exec_cb(
            block, on_count, QEMU_PLUGIN_CB_NO_REGS,
            reinterpret_cast<void*>(qemu_plugin_tb_n_insns(block)));
      break;
    case Trigger::Kind::port:
    case Trigger::Kind::console:
      if (insn->what.kind == InsnKind::out)
        qemu_plugin_register_vcpu_insn_exec_cb(handle, on_port_write, QEMU_PLUGIN_CB_R_REGS,
                                               insn.release());
      break;
    case Trigger::Kind::process:
    case Trigger::Kind::exit:
    case Trigger::Kind::reset:
    case Trigger::Kind::none:
      break;
  }
}

}  // namespace citcat::monitor
