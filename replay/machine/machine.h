#pragma once
// The replayed processor: Unicorn's execution, completed to what the architecture says.
//
// Every instruction passes on_instruction() before the engine executes it, but for plain code that
// runs a block at a time where nobody asks for more (machine_blocks.cc). There its memory
// operands are translated and checked by our own Mmu, so that faults, accessed bits and the order
// of accesses are the processor's; instructions the engine does not do right are executed here;
// and whatever completed since is reported to the Sink.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "events/cpu_traits.h"
#include "events/recording.h"
#include "formats/io/zeroed_array.h"
#include "replay/engine/engine.h"
#include "replay/engine/engine_code.h"
#include "replay/machine/a20_gate.h"
#include "replay/machine/block_table.h"
#include "replay/machine/code_bytes.h"
#include "replay/machine/cpu_context.h"
#include "replay/machine/defined_lines.h"
#include "replay/machine/environment.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/memory.h"
#include "replay/machine/mmu.h"
#include "replay/machine/observer.h"
#include "replay/machine/replay_stopped.h"
#include "replay/machine/running_block.h"
#include "replay/x86/decode_cache.h"
#include "replay/x86/decoded_code.h"
#include "replay/x86/decoded_instruction.h"
#include "replay/x86/early_cpu_quirks.h"
#include "replay/x86/smm_save_map.h"
#include "replay/x86/undefined_flags.h"

namespace citcat {

class HostFpu;

class Machine final : private EngineClient, private WalkObserver {
 public:
  /// `sink` may be null; both must outlive the machine. The path is a wish: processors before the
  /// 386 and sinks that do not take blocks get ExecutionPath::instructions.
  Machine(CpuModel model, const BusModel& bus, Environment& environment, Sink* sink,
          ExecutionPath path = ExecutionPath::instructions);
  ~Machine() override;

  void load(const CpuState& state, const MemoryImage& image);
  CpuState save() const;

  /// Everything that decides how the run goes on, at an instruction boundary or between iterations
  /// of a REP. Cheap to copy but for the frames written since load().
  struct Snapshot {
    CpuState cpu;
    Position position;
    std::vector<Memory::SavedPage> pages;
    std::shared_ptr<const Mmu::State> tlb;
    std::uint64_t model_specific_results = 0;
    bool resume_flag = false;
    bool interrupts_inhibited = false;  ///< in the shadow of STI or MOV SS
    bool shut_down = false;
    bool awaits_output_port = false;  ///< of the A20 gate's keyboard controller
    bool in_stack_shadow = false;     ///< SS was just loaded
    std::uint32_t debug_pending = 0;  ///< bits for DR6 of a trap held off by that
    std::uint32_t smbase = kResetSmbase;
    /// The register holds `value`, and is known, wherever the snapshot keeps it.
    void set_register(const std::string& name, std::uint64_t value);
  };
  Snapshot snapshot() const;
  /// `image` is the one given to load().
  void restore(const Snapshot& snapshot, const MemoryImage& image);

  Memory& memory() { return cpu_.memory; }
  Engine& engine() { return cpu_.engine; }
  /// Where an SMI would save its state; nullopt where neither the state nor an SMI has told.
  std::optional<std::uint32_t> smbase() const {
    return smbase_known_ ? std::optional(smbase_) : std::nullopt;
  }
  const Engine& engine() const { return cpu_.engine; }
  const Mmu& mmu() const { return cpu_.mmu; }

  Position position() const { return cpu_.position; }
  /// Results so far that implementations compute differently (x87 transcendentals, RCPPS ...).
  std::uint64_t model_specific_results() const { return model_specific_results_; }
  /// The instruction that gave the first of them since load() or restore().
  struct ModelSpecific {
    Position position;
    std::uint32_t linear = 0;
    std::vector<std::uint8_t> bytes;  ///< of the instruction
  };
  const std::optional<ModelSpecific>& first_model_specific() const { return first_model_specific_; }
  /// What instructions did to the flags that were not told one by one to the sink that compares,
  /// since this was called last.
  FlagEffect take_untold_flags() { return std::exchange(expectation_.untold_flags, {}); }
  /// Bits of the dword being told to Sink::write() that no manual defines: the state that an SMI
  /// saves has such.
  std::uint32_t reserved_bits() const { return reserved_bits_; }
  /// The instruction in progress stores a floating-point or vector register.
  bool in_floating_point_store() const;
  /// The order on the bus of what the instruction in flight, or the delivery after it, stores is
  /// the processor's (docs/fidelity.md, "Order and size of accesses"), not an assumption.
  bool knows_order_of_stores() const;
  /// It is MOVS, repeated or not.
  bool in_string_copy() const;
  /// It is INS, repeated or not.
  bool in_port_input() const;
  bool halted() const { return cpu_.halted; }
  bool shut_down() const { return cpu_.shut_down; }

  /// Runs until the position is `until` or later, the processor halts or shuts down, or the
  /// environment wants a stop. Throws ReplayStopped.
  void run(Position until);
  /// Linear address of the instruction that the position names: the next one, or the one at which
  /// run() was left by an exception.
  std::uint32_t next_linear() const;
  /// How often page tables are read; what the guest sees is the same.
  void set_walk_policy(WalkPolicy policy) { cpu_.mmu.set_walk_policy(policy); }
  void set_polling(bool on) { cpu_.polling = on; }

  /// Delivers INTR or NMI at the current position; wakes from HLT.
  void interrupt(std::uint8_t vector, DeliveredEvent::Kind kind);
  /// Delivers an SMI at the current position; wakes from HLT. The low byte of the SMM `revision`
  /// identifier tells the map of the saved state; any that is not known means the P6 family's.
  void system_management_interrupt(std::uint8_t revision);
  /// Changes memory as another bus master does.
  void external_write(PhysAddr captured, std::span<const std::uint8_t> data);

 private:
  // EngineClient
  void on_instruction(std::uint32_t linear, std::uint32_t size) override;
  TranslatedBlock* on_translation(std::uint32_t linear) override;
  bool reports(std::uint32_t linear) override;
  std::span<const PhysAddr> hides(std::uint32_t linear) override;
  void on_block(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated) override;
  void on_exception(std::uint32_t vector, bool software) override;
  std::optional<Translation> on_translate(std::uint32_t linear, EngineAccess access) override;
  std::uint32_t on_in(std::uint16_t port, std::uint32_t size) override;
  void on_out(std::uint16_t port, std::uint32_t size, std::uint32_t value) override;
  // WalkObserver
  void walk_read(PhysAddr entry, std::uint32_t size) override;
  void quiet_walk_read(PhysAddr entry, std::uint32_t size) override;
  void walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) override;
  void mapping_used(LinearAddr page, PhysAddr frame) override;
  void mapping_evicted(Access access) override;
  std::optional<std::uint64_t> missing_pdpte(unsigned index, LinearAddr wanted) override;

  /// The engine executes code of another frame than the processor does.
  struct CodeElsewhere {};
  static constexpr std::uint32_t kNoFrame = ~std::uint32_t{0};  ///< never a frame's number

  // machine.cc, machine_operands.cc: the life of an instruction
  void set_registers(const CpuState& state);
  void complete_in_flight(std::uint32_t next_linear);
  void report_completed();
  ExecutedInstruction executed() const;
  void report_descriptors();
  void retire();
  bool settle_before(std::uint32_t linear);
  void begin(std::uint32_t linear);
  void prepare(std::uint32_t linear);
  void check_allowed() const;
  void prepare_operands();
  void keep_overwritten();
  void put_back_overwritten();
  void begin_anew();
  bool comes_again() const;
  void access(const DataAccess& a, const MemoryOperand& operand);
  void access_pages(const DataAccess& a, Access kind, bool is_read);
  void read_part(PhysAddr at, std::uint32_t size, std::uint32_t first);
  void store_part(PhysAddr at, std::uint32_t size);
  void tell_read(PhysAddr at, std::uint32_t size, std::uint32_t first);
  bool reaches_beyond_limit(std::uint32_t linear);
  [[noreturn]] void refuse_undefined(const DecodedInstruction& info, std::uint32_t linear);
  const DecodedInstruction& fetch(std::uint32_t linear);
  void require_code_at(LinearAddr page, PhysAddr frame) const;
  void check_segment(const DataAccess& a, const MemoryOperand& operand, bool writes) const;
  bool repeat_count_is_zero() const;
  bool run_step();
  void finish_run_step();
  void handle_native_fault();
  void resolve_translation_fault();
  void ask_for_code_again();
  void settle_in_flight(std::uint32_t linear, bool completed);
  bool touches_system_tables() const;
  bool lies_in_system_tables(std::uint32_t page) const;
  void flags_after(const DecodedInstruction& info);
  void keep_flag_inputs(const DecodedInstruction& info);
  void after_system(const DecodedInstruction& info);
  bool follows_a20_gate(const CpuState& state) const;
  void move_a20_gate();
  template <class F>
  void access_port(F&& access);
  void take_port_access_back();

  // machine_blocks.cc: code that runs unreported
  // Those few lines of each block's way that the compiler would not take into it by itself.
  /// Sets cpu_.code.block_page and cpu_.code.block_frame for code at `linear`; false where
  /// find_code() has none.
  bool find_frame(std::uint32_t linear) {
    return (linear & ~kPageMask) == cpu_.code.block_page || find_new_frame(linear);
  }
  bool find_new_frame(std::uint32_t linear);
  std::optional<PhysAddr> find_code(LinearAddr page);
  std::uint32_t find_second_frame(std::uint32_t linear);
  bool lies_as_translated(std::uint32_t linear, std::uint32_t size, const BlockTemplate* block,
                          std::uint32_t& second);
  /// Of a block that crosses pages the second one still is where it was.
  bool lies_in_both_pages(const BlockTemplate& block) {
    return block.second_frame == BlockTemplate::kNoFrame ||
           find_second_frame(block.key.linear) == block.second_frame;
  }
  void warm_up(std::uint32_t linear);
  void forget_code();
  bool settle_block(std::uint32_t linear, std::uint32_t size);
  bool stores_into_itself(std::uint32_t linear) const;
  bool ask_to_tell(const BlockTemplate& block);
  void refuse_block(BlockTemplate& block);
  bool enter_block(BlockTemplate& block);
  void retire_block(std::uint32_t count);
  /// That many instructions of a block completed.
  void count_block(std::uint32_t count) {
    cpu_.resume_flag = false;
    flight_.retries = 0;
    cpu_.position.instruction += count;
  }
  void leave_block(std::uint32_t linear);
  bool runs_in_block(std::uint32_t linear);
  std::optional<Translation> translate_for_engine(std::uint32_t linear, EngineAccess kind);
  void share_entry(Translation& known, LinearAddr page, EngineAccess kind);
  bool drops_code(const BlockTemplate& block, LinearAddr page) const;
  std::optional<Translation> translate_for_block(LinearAddr page, Access access);
  Translation allow_engine(Translation known, Access access);
  void note_code(std::uint32_t frame);
  bool begins_to_patch(std::uint32_t frame);
  void note_patches();
  [[gnu::always_inline]] void follow(std::uint32_t linear, std::uint32_t size,
                                     BlockTemplate& block);
  void follow_elsewhere(std::uint32_t linear, std::uint32_t size, BlockTemplate& block);
  void follow_comparing(std::uint32_t linear, std::uint32_t size, BlockTemplate& block);
  void follow_asked(std::uint32_t linear, std::uint32_t size, BlockTemplate& block);
  bool follow_compared(std::uint32_t linear, BlockTemplate& block);
  void meet_other(std::uint32_t linear, std::uint32_t size, TranslatedBlock& translated);
  void meet_block(std::uint32_t linear, std::uint32_t size, BlockTemplate* block);

  // machine_translation.cc: what of a block that is translated runs unreported
  std::uint64_t block_mode() const;
  BlockTemplate* plan_block(std::uint32_t linear);
  bool would_be_left(const BlockTemplate& block);
  bool can_be_told(const BlockTemplate& block);
  bool may_be_once_more(std::uint32_t linear) const;
  CodeBytes code_bytes(const BlockKey& key) const;
  std::array<std::optional<PhysAddr>, 2> engine_frames(LinearAddr page);
  void note_hidden(CodeBytes& code);
  bool is_still(const BlockTemplate& block, std::uint32_t limit) const;
  BlockTemplate compile_block(const BlockKey& key, std::uint32_t limit);
  bool lies_in_patched_frame(const CodeBytes& code) const;
  bool must_be_reported(const DecodedInstruction& info, const BlockKey& key) const;
  bool may_be_made_twice(const DecodedInstruction& info, const BlockKey& key) const;
  void retranslate();
  void replan();

  // machine_repeats.cc: repeated strings, many iterations at a time
  struct StringRun {
    PhysAddr at;
    std::uint8_t* host = nullptr;
    std::uint32_t bytes = 0;
  };
  std::optional<StringRun> string_run(const MemoryOperand& operand);
  bool may_repeat_quickly() const;
  std::uint32_t count_quick_iterations();
  std::uint32_t count_equal_or_different(std::uint32_t count) const;
  bool repeat_quickly();
  std::uint32_t count_untold(std::uint32_t left, bool prepared);
  std::uint32_t agree_on_iterations(std::uint32_t most);
  std::span<const std::uint8_t> speculate_stores(std::uint32_t& count);
  void store_string(std::uint32_t count);
  void pass_iterations(std::uint32_t count);
  void tell_iteration_reads();
  void tell_iteration();

  // machine_block_accesses.cc: what blocks read and stored, and taking them back
  /// The processor's TLB has the page.
  bool is_held(LinearAddr at, Access access) {
    return cpu_.mmu.held(at, access, cpu_.user_mode()).has_value();
  }
  void note_accesses(const BlockTemplate& block);
  void note_access(std::uint32_t linear, const BlockTemplate::Access& a);
  void note_defined(std::uint32_t linear, PhysAddr at);
  std::uint64_t lines_mark() const { return DefinedLines::mark_of(cpu_.mmu.epoch()); }
  bool may_tell(const BlockTemplate& block);
  bool find_stores(const BlockTemplate& block);
  bool is_stored(PhysAddr at, std::uint32_t size) const;
  bool add_store(const BlockStore& store);
  void save_overwritten();
  bool agrees_ahead(const BlockTemplate& block);
  void copy_out(PhysAddr at, std::uint32_t size, std::array<std::uint8_t, 8>& to) const;
  bool left_no_traces(std::size_t first) const;
  bool gather_stores(const BlockTemplate& block);
  bool gather_read(const BlockTemplate::Access& read, std::uint32_t linear);
  bool tell_accesses(const BlockTemplate& block);
  /// Tells `block`, which ran, to those who do not compare it.
  void tell_unasked(const BlockTemplate& block) {
    if (expectation_.keeps_account && (!expectation_.block_compared || running_.speculated))
      note_accesses(block);
    if (block_receiver_ != nullptr) tell_receiver(block, cpu_.position);
  }
  void tell_receiver(const BlockTemplate& block, Position first) {
    told_.code = &block;
    block_receiver_->block(told_, first);
  }
  bool tell_block(const BlockTemplate& block);
  void roll_block_back();

  // machine_quirks.cc: what processors before the 386 do differently, and instructions that the
  // engine executes rightly only in other surroundings
  bool prepare_16_bit();
  bool needs_canonical() const;
  void split_access(const DataAccess& a, const MemoryOperand& operand);
  void lend_beyond(std::uint32_t base, std::uint32_t size);
  void refuse_reading_own_code(PhysAddr a, std::uint32_t size);
  void arrange();
  void lend(PhysAddr at, std::uint8_t value, std::optional<PhysAddr> home);
  void restore_arrangement();
  void forget_lent_code();
  void finish_repeat();
  void deliver_segment_end();
  void reduce_8088_shift();
  bool emulated_on_8088() const;
  void emulate_on_8088();
  void emulate_coprocessor_cycles();
  void note_mmx();

  // machine_emulation.cc: instructions executed here
  static bool emulated(InstructionClass kind);
  bool is_made_here();
  void emulate();
  void emulate_internal_read(InternalRead::Op op);
  void emulate_cpuid();
  void emulate_sysenter();
  void emulate_sysexit();
  bool pushes_before_a_page() const;
  void emulate_segment_push();
  void emulate_software_interrupt();
  void emulate_floating_point();
  void require_ring0() const;
  void require_iopl_in_v86() const;
  void check_fpu_available(InstructionClass kind) const;
  void read_operand(std::uint32_t linear, std::span<std::uint8_t> out);
  std::uint32_t read_value(std::uint32_t linear, std::uint32_t size);
  void write_stores(std::span<const std::uint8_t> bytes);
  std::uint32_t next_eip() const;
  void move_stack_pointer(std::uint32_t by);
  void complete_emulated();
  void finish_mode_switch(std::uint32_t flags_before);
  std::optional<std::uint64_t> find_msr(std::uint32_t index) const;
  void set_msr(std::uint32_t index, std::uint64_t value);

  // machine_smm.cc: system management mode (Intel SDM vol. 3, chapter 34)
  void emulate_rsm();
  std::array<std::uint32_t, kSmmSavedWords> saved_state(const SmmSaveMap& map) const;
  std::array<std::uint32_t, kSmmSavedWords> unspecified_state(const SmmSaveMap& map) const;
  void require_smbase() const;
  void save_state(const SmmSaveMap& map);
  std::uint32_t saved_word(SmmField field) const;
  Segment saved_segment(unsigned index) const;
  void restore_saved(SmmField field, std::uint32_t word);
  void set_saved_segment(unsigned index, const Segment& segment);
  void mode_replaced();

  // machine_debug.cc: debug registers (Intel SDM vol. 3, chapter 17)
  void find_breakpoints();
  bool watches_code() const { return breaks_on_code_ || breaks_on_data_ || debug_pending_ != 0; }
  std::uint32_t met_breakpoints(std::uint32_t access, std::uint32_t address,
                                std::uint32_t size) const;
  void check_code_breakpoints(std::uint32_t linear);
  void check_data_breakpoints(const DataAccess& a);
  void check_port_breakpoints(std::uint16_t port, std::uint32_t size);
  void check_general_detect();
  void clear_general_detect();
  bool in_stack_shadow() const;
  void take_debug_trap();
  unsigned debug_register_number(unsigned encoded) const;
  std::uint32_t read_debug_register(unsigned encoded);
  void write_debug_register(unsigned encoded, std::uint32_t value);

  // machine_delivery.cc: exceptions and interrupts (Intel SDM vol. 3, chapter 6)
  /// False when another exception was delivered instead, or the processor shut down.
  bool raise(CpuException exception, std::uint32_t return_eip, DeliveredEvent::Kind kind);
  void deliver(const CpuException& exception, std::uint32_t return_eip, DeliveredEvent::Kind kind);
  void deliver_real(std::uint8_t vector, std::uint32_t return_eip);
  void deliver_protected(const CpuException& exception, std::uint32_t return_eip,
                         DeliveredEvent::Kind kind);
  struct Descriptor;
  Descriptor read_descriptor(std::uint16_t selector, std::uint8_t fault, std::uint32_t ext);
  void mark_accessed(const Descriptor& d);
  void mark_transfer_accessed();
  std::optional<std::uint32_t> descriptor_type_byte(std::uint16_t selector) const;
  std::uint16_t operand_selector();
  void watch_descriptor();
  void report_watched_descriptor();
  /// Where an interrupt frame or a return address goes.
  struct StackTop {
    Segment segment;
    std::uint32_t esp = 0;
    bool user = false;   ///< pushes are made with the user's rights
    bool inner = false;  ///< a more privileged level's stack: faults name its selector
  };
  StackTop inner_stack(std::uint32_t level, std::uint32_t ext,
                       std::optional<Descriptor>& descriptor);
  std::uint32_t next_push(StackTop& top, std::uint32_t width, std::uint32_t ext) const;
  void push(StackTop& top, std::uint32_t value, std::uint32_t width, std::uint32_t ext);
  std::uint32_t pushed_flags(DeliveredEvent::Kind kind, std::uint8_t vector) const;
  std::uint32_t system_read(std::uint32_t linear, std::uint32_t size);
  void system_write(std::uint32_t linear, std::uint32_t value, std::uint32_t size,
                    bool user = false);

  // machine_transfers.cc: jumps and calls that the engine makes otherwise
  bool takes_branch() const;
  std::uint32_t branch_target();
  void check_branch_target();
  bool look_up(std::uint16_t selector, Descriptor& out);
  void check_final_stack();
  void keep_upper_frame_pointer();
  void transfer_to_code(const Descriptor& code, std::uint32_t offset, bool call);
  void push_return_address(std::uint32_t width);
  void page_in_pushes(StackTop top, std::uint32_t width, unsigned count);
  void transfer_in_real_mode(std::uint16_t selector, std::uint32_t offset, bool call);

  // machine_returns.cc: returns that it makes otherwise
  bool returns_here() const;
  void emulate_near_return();
  void emulate_far_return();
  void return_to_segment(std::uint16_t selector, std::uint32_t target);
  Segment outer_stack(std::uint32_t level, std::uint32_t released);
  void drop_inner_segment(int s, std::uint32_t level);
  void check_return_target();
  std::uint32_t stacked(std::uint32_t offset, std::uint32_t size);
  bool code_admits_return(const Descriptor& code) const;
  bool stack_admits_return(std::uint32_t level, std::uint32_t released);
  bool ignores_vm_flag();
  void return_within_level();
  std::uint32_t read_stack(std::uint32_t above, std::uint32_t width);

  // machine_parts.cc: operands in parts, which wrap around 64 KiB each for itself
  bool is_in_parts(const DataAccess& a, const MemoryOperand& operand) const;
  void access_parts(const DataAccess& a, const MemoryOperand& operand);
  void read_floating_operand(std::span<std::uint8_t> out);
  std::uint32_t operand_part(const MemoryOperand& operand, unsigned i);
  bool wraps_between_parts() const;
  void emulate_bound();
  void emulate_load_far_pointer();
  Segment loaded_segment(int s, std::uint16_t selector);

  // machine_tasks.cc: call gates and task switches (Intel SDM vol. 3, 5.8 and chapter 7)
  enum class TaskSource : std::uint8_t { jump, call, iret, event };
  struct TaskState;
  struct TaskReturn {
    std::uint32_t eip = 0, eflags = 0;  ///< saved for the task that is left
  };
  bool transfers_here();
  void tell_transfer_descriptors();
  void tell_stack_read(std::uint32_t linear, std::uint32_t size);
  void tell_looked_up_descriptor();
  void check_port_permission();
  void tell_descriptor(std::uint16_t selector);
  void emulate_system_transfer();
  void transfer_to(std::uint16_t selector, std::uint32_t offset);
  void transfer_through(const Descriptor& gate, bool call);
  void transfer_through_call_gate(const Descriptor& gate, bool call);
  void push_gate_frame(const Descriptor& code, bool inner, bool wide, std::uint32_t parameters);
  Descriptor read_task_descriptor(std::uint16_t selector, std::uint32_t ext);
  void return_to_previous_task();
  void task_switch(const Descriptor& task, TaskSource source, std::uint32_t saved_eip,
                   std::uint32_t saved_flags, std::uint32_t ext);
  void page_in(std::uint32_t first, std::uint32_t last, Access access);
  TaskState read_task(std::uint32_t base, bool wide);
  void enter_task(const TaskState& state, bool wide, bool nested, std::uint32_t ext);
  void load_task_ldt(std::uint16_t selector, std::uint32_t ext);
  void load_task_stack(std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext);
  void load_task_data(int s, std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext);
  void load_task_code(std::uint16_t selector, std::uint32_t ext);
  void deliver_through_task(std::uint16_t selector, const CpuException& exception,
                            const TaskReturn& from, std::uint32_t ext);

  CpuContext cpu_;
  InFlight flight_;
  Expectation expectation_{cpu_};
  RunningBlock running_;
  SegmentRights rights_;

  std::unique_ptr<HostFpu> fpu_;

  std::array<StringRun, 2> string_runs_{};              ///< what they access, by operand
  std::array<std::uint8_t, kPageSize> string_pattern_;  ///< that STOS is going to store
  std::uint32_t frame_before_ = 0;                      ///< EBP before ENTER
  /// The general registers before a port access that was refused by an exception.
  std::optional<std::array<std::uint64_t, 8>> refused_port_access_;
  struct {
    bool active = false;
    PhysAddr physical;
    std::uint8_t before = 0;
  } watched_;  ///< type byte of a descriptor being loaded

  /// A byte of memory that holds something else while the engine executes one instruction.
  struct Loan {
    PhysAddr at;
    std::optional<PhysAddr> home;  ///< what the engine leaves at `at` belongs here
    std::uint8_t original = 0, lent = 0;
  };
  struct Beyond {
    std::uint32_t linear = 0;  ///< 64 KiB above the byte that the processor means
  };
  bool arranged_ = false;
  std::vector<Loan> loans_;
  std::vector<PhysAddr> lent_code_;
  std::vector<Beyond> beyond_;
  std::optional<std::uint32_t> count_register_;  ///< ECX while another shift count is lent
  std::optional<SegmentEndFault> segment_end_;
  bool fixes_flags_ = false;
  FlagInputs flag_inputs_;
  std::optional<std::uint32_t> flag_operand_;  ///< linear address of the explicit operand

  std::uint64_t model_specific_results_ = 0;
  std::optional<ModelSpecific> first_model_specific_;
  std::uint32_t fix_flags_ = 0;
  std::uint32_t page_to_map_ = 0;
  std::uint32_t invlpg_linear_ = 0;
  CpuException exception_;
  std::uint32_t native_vector_ = 0;
  bool native_software_ = false;

  DecodedCode decoded_;
  DecodeCache decode_cache_{cpu_.model};
  // Blocks.
  Detail detail_ = Detail::nothing;
  Sink* block_receiver_ = nullptr;  ///< of every block; null where nobody listens
  BlockTable blocks_;
  EngineCode engine_code_;
  std::vector<PhysAddr> hidden_;         ///< prefixes of the instruction being translated: hides()
  const BlockTemplate* plan_ = nullptr;  ///< of the block being translated; null: it is reported
  ExecutedBlock told_{nullptr, &running_.registers, {}, {}};  ///< to block_receiver_, last
  Engine::RawFlags flags_at_entry_{};
  std::vector<BlockStore> block_stores_;  ///< what it was going to store
  std::size_t stores_told_ = 0;           ///< of these, belong to instructions that completed
  std::vector<BlockRead> block_reads_;
  DefinedLines defined_lines_;
  std::uint32_t block_begin_ = 0;    ///< linear address of its first instruction
  std::uint64_t careful_until_ = 0;  ///< no block begins before this instruction
  std::uint32_t translations_ = 0;   ///< so far, modulo 2^32
  /// Number of a frame that holds code and is about to be stored to for the first time.
  std::uint32_t patched_frame_ = kNoFrame;
  std::uint32_t hot_ = 0;  ///< block the engine was stopped at
  /// A block that the engine made shorter than it was planned; size 0: it is not to be planned.
  struct {
    std::uint32_t linear = 0, size = 0xffffffff;
  } short_block_;

  /// Processors from the 486 on mask bit 20 themselves; before, the gate is outside and the pins
  /// show the bit, unless the state dump says otherwise.
  bool has_a20_gate_ = false;
  A20Gate a20_gate_;

  bool in_smm_ = false;
  std::uint32_t smbase_ = kResetSmbase;
  bool smbase_known_ = true;
  std::uint32_t reserved_bits_ = 0;

  // Debug traps: bits for DR6 that the instruction in flight has earned.
  static constexpr std::uint32_t kDr6Step = 1u << 14, kDr6TaskSwitch = 1u << 15;
  std::uint32_t debug_pending_ = 0;
  bool breaks_on_code_ = false, breaks_on_data_ = false, breaks_on_ports_ = false;
  std::uint64_t stack_shadow_ = ~std::uint64_t{0};  ///< the instruction after a load of SS
  bool task_entered_ = false;  ///< the delivery in progress is past a task switch's commit point

  std::vector<Msr> msrs_;
  std::vector<CpuidLeaf> cpuid_;
  std::uint64_t tsc_ = 0;
  std::array<std::uint32_t, 8> dr_{};
  CpuState loaded_;
};

}  // namespace citcat
