#pragma once
// The state that most units of the machine share: the engine with its memory, the place in the run,
// and everything that follows from the processor's mode.

#include <algorithm>
#include <array>
#include <cstdint>

#include "events/machine/cpu_traits.h"
#include "events/recording.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_code.h"
#include "replay/machine/audience.h"
#include "replay/machine/cpu_exception.h"
#include "replay/machine/environment.h"
#include "replay/machine/execution_path.h"
#include "replay/machine/machine_stats.h"
#include "replay/machine/memory.h"
#include "replay/machine/mmu.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// What the run loop must do after the engine stopped.
enum class AfterStop : std::uint8_t {
  none,
  at_position,
  emulate,
  raise,
  native_fault,
  fix_flags,
  map_page,
  segment_end,
  patch,
  finish_repeat,
  resume,
  forget_code,
  debug_trap,
  flush_tlb,
};

/// Bytes in a segment of real mode.
inline constexpr std::uint32_t kRealSegmentBytes = 0x10000;

/// Where the code being executed lies.
struct CodePage {
  static constexpr LinearAddr kNone{1};  ///< never equal to a page's address

  std::uint32_t base = 0;  ///< of CS at the instruction in flight; 0 in 64-bit mode
  LinearAddr page = kNone;
  PhysAddr frame;
  const std::uint8_t* host = nullptr;

  void forget() { page = kNone; }
};

/// Owned by the machine; every unit holds a reference. Nothing here calls a unit.
struct CpuContext {
  static constexpr std::uint32_t kResumeFlag = 1u << 16, kVirtual8086 = 1u << 17;  ///< of EFLAGS

  /// `client` and `walks` are called once the engine runs, not before.
  CpuContext(CpuModel cpu, const BusModel& outer_bus, Environment& outside,
             const Listeners& listeners, ExecutionPath path, EngineClient& client,
             WalkObserver& walks)
      : model(cpu),
        traits(cpu_traits(cpu)),
        bus(outer_bus),
        environment(outside),
        audience(listeners, memory),
        by_blocks(path == ExecutionPath::blocks && has_fast_tier() && !traits.sixteen_bit &&
                  !audience.wants_each_access()),
        wants_reads(audience.wants_reads()),
        engine(cpu, client),
        memory(engine, bus.address_mask, traits.address_pins),
        mmu(engine, memory, walks, traits.one_tlb) {}

  const CpuModel model;
  const CpuTraits& traits;
  const BusModel bus;
  Environment& environment;
  Audience audience;
  const bool by_blocks;    ///< ordinary code runs unreported
  const bool wants_reads;  ///< somebody does

  Engine engine;
  Memory memory;
  Mmu mmu;
  EngineCode engine_code;

  Position position;
  LinearAddr linear;  ///< of the instruction or block in progress, or the next one
  CodePage code;
  Position until;                  ///< where run() ends
  std::uint64_t blocks_until = 0;  ///< instruction: nothing from there on may be part of a block
  bool polling = false;            ///< the environment is asked at every boundary
  bool halted = false;
  bool shut_down = false;
  bool has_tzcnt = false;        ///< by CPUID, as CodeMode has it
  bool has_lzcnt = false;        ///< the same
  bool scans_untold = false;     ///< nothing tells of one of the two, and the processor may have it
  std::uint64_t cr8 = 0;         ///< of processors with long mode
  bool resume_flag = false;      ///< EFLAGS.RF was loaded by the IRET just completed
  bool code_cache_full = false;  ///< translated code is to be forgotten at the next boundary
  AfterStop after_stop = AfterStop::none;
  MachineStats stats;  ///< but what others count: Machine::stats()

  /// Stops the engine before what it reports just now.
  void request(AfterStop action) {
    after_stop = action;
    engine.stop();
  }
  /// Finds `blocks_until` anew: what was due may have come.
  void find_block_limit() { blocks_until = std::min(until.instruction, audience.block_limit()); }
  /// What would complete before instruction `end` must not run as a block.
  bool is_due_before(std::uint64_t end) {
    if (end <= blocks_until) [[likely]]
      return false;
    find_block_limit();
    return end > blocks_until;
  }
  /// Something but the end of run() is due within the instruction in progress.
  bool must_tell_each_now() {
    return is_due_before(position.instruction + 1) && blocks_until < until.instruction;
  }
  bool boundary_stop() {
    return position >= until || (polling && environment.wants_stop(position));
  }

  /// EFLAGS with RF, which is not left to the engine: it clears RF only at the end of its blocks,
  /// the processor after one instruction.
  std::uint32_t flags() const {
    return (engine.eflags() & ~kResumeFlag) | (resume_flag ? kResumeFlag : 0);
  }
  /// EFER.LMA: long mode, of which 64-bit mode is the part in which CS.L is set.
  bool long_mode() const { return (engine.hflags() & kHfLma) != 0; }
  bool bits64() const { return (engine.hflags() & kHfCs64) != 0; }
  /// What is added to offsets in the segment: in 64-bit mode only FS and GS have a base.
  std::uint64_t base_of(int segment) const {
    if (!bits64()) return engine.segment_base(segment);
    return segment == kFs || segment == kGs ? engine.wide().segment_base(segment) : 0;
  }
  std::array<std::uint64_t, 6> bases() const {
    std::array<std::uint64_t, 6> all{};
    for (int i = 0; i < 6; ++i) all[static_cast<std::size_t>(i)] = base_of(i);
    return all;
  }
  /// `bytes` after an address of a program: in 64-bit mode the address space does not end at 4
  /// GiB.
  LinearAddr onward(LinearAddr at, std::uint64_t bytes) const {
    return bits64() ? LinearAddr{at.value + bytes} : at.plus32(static_cast<std::uint32_t>(bytes));
  }
  /// The same of what the processor itself keeps: descriptor tables, task segments.
  LinearAddr onward_in_system(LinearAddr at, std::uint64_t bytes) const {
    return long_mode() ? LinearAddr{at.value + bytes}
                       : at.plus32(static_cast<std::uint32_t>(bytes));
  }
  /// EIP, or RIP.
  std::uint64_t ip() const { return bits64() ? engine.rip() : engine.eip(); }
  void set_ip(std::uint64_t ip) { engine.set_rip(ip); }
  /// The offset of an address in CS.
  std::uint64_t offset_in_code(LinearAddr at, std::uint32_t code_base) const {
    return bits64() ? at.value : at.low32() - code_base;
  }
  /// Where the engine's CS:EIP points.
  LinearAddr engine_address() const {
    if (bits64()) return LinearAddr{engine.rip()};
    return linear32(engine.segment_base(kCs), engine.eip());
  }
  /// The engine is to go on at `at`, in its CS.
  void go_on_at(LinearAddr at) {
    engine.set_rip(offset_in_code(at, bits64() ? 0 : engine.segment_base(kCs)));
  }
  std::uint32_t cpl() const { return engine.hflags() & kHfCpl; }
  bool user_mode() const { return cpl() == 3; }
  /// By whose rights the program reaches memory.
  Who program() const { return citcat::program(user_mode()); }
  bool protected_mode() const {
    return (engine.hflags() & kHfPe) != 0 && (engine.system_flags() & kVirtual8086) == 0;
  }
  /// Real mode of a processor before the 386.
  bool real_16_bit() const { return traits.sixteen_bit && (engine.cr(0) & 1) == 0; }
  /// For a processor before the 286.
  bool lacks_coprocessor() const {
    return traits.reads_for_coprocessor && (engine.cr(0) & kNoCoprocessor) != 0;
  }
  CodeMode code_mode() const {
    if (bits64()) return {false, false, true, has_tzcnt, has_lzcnt, false};
    return {(engine.hflags() & kHfCs32) != 0,
            !protected_mode(),
            false,
            has_tzcnt,
            has_lzcnt,
            lacks_coprocessor()};
  }
  /// SS.B, and the bits of the stack pointer that count.
  bool stack32() const { return (engine.hflags() & kHfSs32) != 0; }
  std::uint32_t stack_bits() const { return stack32() ? 0xffffffff : 0xffff; }
  /// Where the first access of an operand of the instruction in flight goes.
  std::uint64_t offset_of(const MemoryOperand& operand) const {
    return operand_offset(operand, engine.gprs(), stack32());
  }
  LinearAddr linear_of(const MemoryOperand& operand) const {
    return linear_at(base_of(operand.segment), offset_of(operand), operand.width);
  }
  /// The count of a repeated instruction, or of LOOP.
  std::uint64_t count_of(const DecodedInstruction& info) const {
    return engine.wide().gpr(kEcx) & address_mask(info.address_bits);
  }
  /// The processor's TLB has the page.
  bool is_held(LinearAddr at, Access access) {
    return mmu.look_up(at, access, program(), Lookup::held).has_value();
  }
  /// The low `bytes` of a general register, as instructions have them that write 2, 4 or 8, or AL.
  std::uint64_t low_part(int number, unsigned bytes) const {
    return engine.wide().gpr(number) & part_mask(bytes);
  }
  /// Writes them. Of 4 bytes the upper half is cleared, of fewer the rest stays as it is.
  void set_low_part(int number, std::uint64_t value, unsigned bytes) {
    const std::uint64_t mask = part_mask(bytes);
    const std::uint64_t kept = bytes < 4 ? engine.wide().gpr(number) & ~mask : 0;
    engine.wide().set_gpr(number, kept | (value & mask));
  }
  void move_stack_pointer(std::int64_t distance) {
    if (bits64()) {
      engine.wide().set_gpr(kEsp, engine.wide().gpr(kEsp) + static_cast<std::uint64_t>(distance));
      return;
    }
    const auto by = static_cast<std::uint32_t>(distance);
    const std::uint32_t mask = stack_bits(), esp = engine.gpr(kEsp);
    engine.set_gpr(kEsp, (esp & ~mask) | ((esp + by) & mask));
  }
  static std::uint64_t part_mask(unsigned bytes) { return ~std::uint64_t{0} >> (64 - 8 * bytes); }
  /// True where bits 47 to 63 of the address are equal (SDM vol. 1, 3.3.7.1).
  static bool is_canonical(std::uint64_t value) {
    constexpr unsigned kUnused = 16;
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << kUnused) >> kUnused) ==
           value;
  }
  void require_ring0() const {
    if ((engine.cr(0) & 1) != 0 && cpl() != 0) throw CpuException{13, 0u, 0};
  }
  /// SDM vol. 3, 20.2.3: virtual-8086 tasks need IOPL 3 for INT n, PUSHF, POPF and IRET.
  void require_iopl_in_v86() const {
    const std::uint32_t flags = engine.system_flags();
    if ((flags & kVirtual8086) != 0 && (flags >> 12 & 3) != 3) throw CpuException{13, 0u, 0};
  }
};

}  // namespace citcat
