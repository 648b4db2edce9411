#pragma once
// Turns what the emulator reports about its run into what a bus monitor would have seen.
//
// Positions: an instruction counts when it has ended. The emulator reports when an instruction
// starts, so each start ends the instruction before it, except where the same instruction simply
// starts again: the next iteration of a REP, a store into the block that is being executed, a
// fault.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/bus/bus_model.h"
#include "monitor/bus/guest_memory.h"
#include "monitor/bus/record_sink.h"
#include "monitor/instructions/insn_class.h"
#include "monitor/instructions/segment_limits.h"
#include "monitor/log/interrupt_log.h"
#include "monitor/recorder/way_in.h"
#include "monitor/state/data_breakpoints.h"
#include "monitor/state/fpu_image.h"
#include "monitor/state/fpu_pointers.h"
#include "monitor/state/state_block.h"
#include "monitor/state/tag_word.h"
#include "monitor/walk/page_walker.h"

namespace citcat::monitor {

inline constexpr std::uint32_t kStepping = 0x100, kResume = 0x10000;  // EFLAGS.TF and RF

/// The first four bytes of `value`, or as many as it has.
inline std::uint32_t dword_of(std::span<const std::uint8_t> value) {
  std::uint32_t dword = 0;
  std::memcpy(&dword, value.data(), std::min<std::size_t>(value.size(), sizeof dword));
  return dword;
}

/// Exceptions that push an error code (Intel SDM vol. 3, table 6-1).
bool pushes_error_code(unsigned vector);

/// Registers of the emulated processor, as they are at a callback that asked for them.
class Registers {
 public:
  virtual ~Registers() = default;
  /// A general register, of which there are 8 on a processor of 32 bits. Outside 64-bit mode the
  /// lower half.
  virtual std::uint64_t gpr(unsigned n) = 0;
  virtual std::uint16_t selector(unsigned n) = 0;  ///< encoding order ES CS SS DS FS GS
  /// Right at the first instruction of a block only.
  std::uint64_t ip() {
    if (ip_at_ == nullptr || ++ip_reads_ % kCheckedEvery == 0) return read_ip();
    std::uint64_t value = 0;
    std::memcpy(&value, ip_at_, ip_bytes_);
    return value;
  }
  virtual ControlRegisters control() = 0;
  virtual bool in_virtual8086() = 0;
  /// The whole state, hidden parts too. Slow.
  virtual LoggedState state() = 0;
  /// What a processor with long mode has besides; nullopt of others.
  virtual std::optional<LongModeRegisters> long_mode_registers() { return std::nullopt; }
  /// The mode or a descriptor table has changed: what a selector stood for it may stand for no
  /// more.
  virtual void forget_segments() = 0;

 protected:
  virtual std::uint64_t read_ip() = 0;
  /// Where the emulator keeps it, once that is known; it is compared now and then with what
  /// read_ip() tells.
  const std::uint8_t* ip_at_ = nullptr;
  unsigned ip_bytes_ = 4;

 private:
  static constexpr unsigned kCheckedEvery = 256;
  unsigned ip_reads_ = 0;
};

/// One translated instruction. Lives as long as the emulator. There are many, and nearly all time
/// is spent loading them from memory. So they are small, and the most used fields come first.
struct Insn {
  std::uint64_t linear = 0;  ///< where it was translated
  /// The machine's address of its first byte, or GuestMemory::kNotInRam.
  std::uint64_t physical = 0;
  std::uint8_t size = 0;
  CodeSize code : 2 = CodeSize::bits32;
  bool first_in_block : 1 = false;
  bool user : 1 = false;  ///< at privilege level 3: blocks are translated for one level
  /// Nothing is to be done when it has ended: registers have not to be looked at.
  bool ends_plainly : 1 = false;
  /// Its accesses are those of a processor.
  bool accesses_plainly : 1 = false;
  /// All of it is in the line (without caches: the dword) where the instruction before it in its
  /// block ends.
  bool continues_line : 1 = false;
  /// The recorder may be told later that it began: nothing is looked at then.
  bool waits : 1 = false;
  bool waits_for_stop : 1 = false;  ///< the recording may end before it for what it is
  /// What is seen of its accesses is what the caches let through.
  bool accesses_unseen : 1 = false;
  /// So many after it in its block continue its line and wait.
  std::uint8_t alike_behind = 0;
  InsnClass what;
  std::array<std::uint8_t, 15> bytes{};
};

/// Completes what is known of an instruction by what it is. `before`: in its block, or nullptr.
void complete(Insn& insn, const Insn* before, CacheModel model);
/// Completes what is known of a whole block, all of whose instructions are complete otherwise.
void complete_block(std::span<Insn> block);

class Recorder : private WayInMemory {
 public:
  Recorder(GuestMemory& memory, RecordSink& sink, InterruptLog& log, Registers& registers,
           CacheModel model);

  /// With several processors: this is number `number`, and the caches of `others` see its bus.
  void share(unsigned number, std::vector<BusModel*> others);
  BusModel& bus() { return bus_; }

  /// Begins at an instruction that is about to start. `window`: the driver's, 0 for none; its state
  /// block goes out first. Without one the emulator's own view of the state does.
  void begin(const Insn& first, std::uint32_t window);
  /// With several processors: one that is not running begins where it is, when another has begun.
  /// One that has not been started yet waits for that.
  void begin_at_rest();
  /// Another processor goes on. Everything that this one has done is shown by then; its registers
  /// are to be had.
  void rest();
  /// It goes on.
  void resume() { sink_.select(number_); }
  /// It was initialised (INIT) and waits to be started.
  void initialised();
  /// It waits to be started: nothing is delivered to it.
  bool waits() const { return waits_; }
  bool active() const { return active_; }
  /// What WRMSR and XSETBV have written and CPUID has told so far. The emulator tells no other way;
  /// a recording without the driver begins with them.
  ModelFacts& facts() { return facts_; }
  /// Ends it, with the reason why it cannot go on.
  void refuse(const std::string& why) {
    if (active_) give_up(why);
  }
  /// Ends the recording; nothing more is sent. Records say how far the processor came, unless the
  /// reason is "error": what then went on last is not worth a replay.
  void end(const std::string& reason);
  /// The same, without a word of the totals.
  void close(const std::string& reason);
  /// Counts of the recording.
  struct Totals {
    std::uint64_t instructions = 0, interrupts = 0, exceptions = 0, software = 0, external = 0,
                  walks = 0, disagreements = 0;
    void add(const Totals& more);
  };
  Totals totals() const;
  static void say_totals(const Totals& totals, const std::string& reason, RecordSink& sink);

  /// An instruction starts.
  void start(const Insn& insn) {
    if (arrive(insn)) enter(insn);
  }
  /// The first half of that: what ran before is complete. False where nothing is to begin: it goes
  /// on, or is no longer recorded.
  bool arrive(const Insn& insn);
  /// The second half: it is fetched.
  void enter(const Insn& insn);
  /// The next one of a block starts, after one that ends plainly: nothing has come between them.
  void follow(const Insn& insn) {
    if (arrive_behind()) enter_behind(insn);
  }
  // The halves of that, as above.
  bool arrive_behind();
  void enter_behind(const Insn& insn);
  /// The same of all from `first` to `last`, which wait.
  void follow_all(const Insn* first, const Insn* last);
  /// The same as start() for the first instruction of a block where nothing has happened since the
  /// last one. False, with nothing done, where there is more to it.
  bool start_plainly(const Insn& insn);
  /// The same for the next iteration of a REP.
  bool iterate_plainly(const Insn& insn);
  /// It has read or written memory, at an address of the machine.
  void access(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address,
              bool device, std::span<const std::uint8_t> value);

  /// The same for one of up to eight bytes of RAM below 4 GiB of which nothing is seen. False, with
  /// nothing done, where something may be.
  bool load_unseen(const Insn& insn, std::uint64_t linear, std::uint64_t address, unsigned size) {
    // It may be begun anew, may be refused for the right to write, and may mark tables.
    if (first_read_ == linear || insn.what.updates_memory ||
        !is_access_unseen(insn, false, linear, address, size) ||
        !bus_.read_unseen(static_cast<std::uint32_t>(address), size))
      return false;
    if (shown_++ == 0) first_read_ = linear;
    if (insn.what.kind != InsnKind::plain) iterate(false);
    return true;
  }
  bool store_unseen(const Insn& insn, std::uint64_t linear, std::uint64_t address,
                    std::span<const std::uint8_t> value) {
    if (!is_access_unseen(insn, true, linear, address, static_cast<unsigned>(value.size())) ||
        !bus_.write_unseen(static_cast<std::uint32_t>(address), value))
      return false;
    first_read_.reset();
    ++shown_;
    if (insn.what.kind != InsnKind::plain) iterate(true);
    return true;
  }
  /// Takes a store out of RAM again that was made before the recorder was told of what began until
  /// then. False, with nothing done, where that makes no difference to `first` and what follows it
  /// up to `last`.
  bool take_out(std::uint64_t address, unsigned size, const Insn& first, const Insn& last);
  void put_back(std::uint64_t address, std::span<const std::uint8_t> value) {
    memory_.put(static_cast<std::uint32_t>(address), value);
  }

  std::uint64_t instructions() const { return completed_; }
  /// The driver has stored its stop marker.
  bool stop_marker_seen() const { return stop_marker_; }

 private:
  void send_state_block(std::span<const std::uint32_t> words, std::uint32_t base);
  void send_driver_state(std::uint32_t window);
  void send_emulator_state(const LoggedState& state, std::uint64_t ip);
  void begin_with(std::uint32_t window);
  void take_control();
  bool goes_on_where_it_was();
  void take_start();
  void note_message(std::uint32_t address, std::span<const std::uint8_t> bytes);
  void send_message(std::uint32_t command, std::uint32_t destination);
  void give_up(const std::string& why);

  static constexpr std::uint32_t kProtectedMode = 1;       ///< CR0.PE
  static constexpr std::uint32_t kVirtual8086 = 1u << 17;  ///< EFLAGS.VM
  /// No linear address of any mode: it is not canonical.
  static constexpr std::uint64_t kNowhere = std::uint64_t{1} << 63;
  template <typename T>
  static std::array<std::uint8_t, sizeof(T)> bytes_of(T value) {
    std::array<std::uint8_t, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }

  // recorder_delivery.cc
  void take_log(const Insn& next) {
    if (log_.pending() || in_real_mode()) take_new_log(next);
  }
  void take_new_log(const Insn& next);
  /// What a processor returns to, and pushes, where that is something else than the emulator's.
  struct Correction {
    unsigned passed_bytes = 0;     ///< of an instruction that has ended for a processor alone
    std::uint32_t error_code = 0;  ///< a processor's
  };
  void deliver(const LoggedEvent& event, LoggedEvent* second = nullptr);

  // recorder_reset.cc
  void take_reset(LogItem item, const LoggedEvent& found, LoggedEvent* failed);
  void end_before_reset(const LoggedState& before);
  bool is_own_trap(const LoggedEvent& event) const;
  bool finish_before(const LoggedEvent& event, bool unfinished, bool own);
  void announce(const LoggedEvent& event);
  void deliver_handler(const LoggedEvent& event, LoggedEvent* second, const Correction& correction);
  void end_by_second(const LoggedEvent& event, const WayIn& way, LoggedEvent& second,
                     const std::optional<Refusal>& refusal, const Correction& correction);
  void push_frame(const LoggedEvent& event, const WayIn& way, const Correction& correction,
                  std::optional<std::uint64_t> faulting = {});
  std::uint64_t read_for_processor(std::uint64_t linear, unsigned size) override;

  // recorder_real_mode.cc
  void take_real_events(std::vector<LoggedEvent> events, const Insn& next);
  bool software_interrupt_taken(std::size_t later_events);
  std::uint32_t real_vector(unsigned number);
  bool nmi_taken(std::span<const LoggedEvent> events);
  bool goes_on_at(std::uint32_t place);
  void refuse_unexplained();
  void complete_real_event(LoggedEvent& event, unsigned frames_above);
  void deliver_real(const LoggedEvent& event, unsigned passed_bytes);
  bool in_real_mode() const { return (walker_.cr0() & kProtectedMode) == 0; }
  bool repeat_used_up(const LoggedState& state) const;
  void find_first_page(const LoggedEvent& event, bool at_flight);
  void write_own(std::uint64_t linear, std::span<const std::uint8_t> bytes,
                 std::optional<Notice> corrects);
  void correct_bytes(std::uint64_t linear, std::span<const std::uint8_t> bytes);
  void correct_ram(std::uint32_t physical, std::span<const std::uint8_t> bytes,
                   Notice notice = Notice::taken);
  std::uint64_t read_linear64(std::uint64_t linear);
  std::uint32_t read_linear32(std::uint64_t linear);
  std::uint16_t read_linear16(std::uint64_t linear);
  std::uint8_t read_linear8(std::uint64_t linear);

  // recorder_refusals.cc
  void refuse_wrong_delivery(const LoggedEvent& event, const Refusal& refusal);
  void refuse_wrong_gate(const WayIn& way);
  void refuse_wrong_exception(const LoggedEvent& event);
  void refuse_wrong_transfer(const LoggedState* after);
  void refuse_two_traps(const LoggedEvent& first, const LoggedEvent& second);
  void refuse_wrapped_return(const Insn& insn);
  void refuse_wrong_debug_status(const Insn& insn);
  void learn_segments();
  bool is_refused(const Insn& insn, bool store, std::uint64_t linear, std::size_t size);
  TableEntry peek_entry(unsigned selector);

  // recorder_long_mode.cc
  void note_task_base(const LoggedState& state);
  bool returns_from_64_bits() const;
  void refuse_unheld();
  void check_dumped_components(std::span<const std::uint32_t> words);

  // recorder_segments.cc
  struct Tables {
    std::uint64_t gdt;
    std::uint32_t gdt_limit;
    std::uint64_t ldt;
    std::uint32_t ldt_limit;
    std::uint64_t idt;
  };
  void change_mode();
  struct TaskSwitch {
    LoggedSegment old_task;
    std::uint32_t new_base = 0;
    bool saved_flags = false;
    std::array<std::uint8_t, 4> flags{};  ///< as IRET saves them
  };
  const Tables& tables();
  void note_descriptor(std::uint64_t linear, std::uint32_t high);
  bool reads_null_descriptor(std::uint64_t linear);
  std::span<const std::uint8_t> as_switched(const Insn& insn, bool store, std::uint64_t linear,
                                            std::span<const std::uint8_t> value);
  void finish_transfer(const LoggedState* after);
  void mark_loaded(std::uint16_t selector);
  void mark_accessed(std::uint64_t descriptor);
  void follow_a20();

  /// `after`: the state it left, where the processor has gone on since.
  void finish(const LoggedState* after = nullptr);
  void prepare(const Insn& insn);
  std::uint64_t linear_of(const Insn& insn);
  /// An offset or a linear address of the instruction's mode: of 32 bits outside 64-bit mode.
  static std::uint64_t narrowed(const Insn& insn, std::uint64_t address) {
    return insn.code == CodeSize::bits64 ? address : static_cast<std::uint32_t>(address);
  }
  std::uint64_t code_base(std::uint64_t ip, std::uint64_t translated_at);
  void fetch(const Insn& insn, std::uint64_t linear);
  bool fetch_unseen(const Insn& insn, std::uint64_t linear);
  bool is_used_up(std::uint64_t count) const;
  bool reads_permission(const Insn& insn, std::uint64_t linear);
  void iterate(bool store);
  /// Whether anything is to be looked at before the next instruction begins.
  bool something_happened() const {
    return log_.pending() || log_.failed() || in_real_mode() || walker_.keeps_pointers() ||
           stand_ins_.problem() != nullptr;
  }
  /// Segments are not looked at in 64-bit mode.
  bool needs_segments(const Insn& insn) const {
    return segments_.is_unknown() && insn.code != CodeSize::bits64;
  }
  bool is_access_unseen(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address,
                        unsigned size) {
    return in_flight_ == &insn && insn.accesses_unseen && !task_ && shown_before_ == 0 &&
           (insn.code == CodeSize::bits64 ||
            segments_.allows_all(insn.what.loads_from, insn.what.stores_to)) &&
           !breakpoints_.watch_data() && address <= ~std::uint32_t{0} && !stand_ins_.any() &&
           !walker_.keeps_pointers() && size <= left_in_page(linear) &&
           walker_.holds(linear, store, static_cast<std::uint32_t>(address));
  }
  void access_plainly(const Insn& insn, bool store, std::uint64_t linear, std::uint32_t physical,
                      bool device, std::span<const std::uint8_t> value);
  void note_stop_marker(std::uint32_t physical, std::span<const std::uint8_t> value);
  void set_position() { sink_.set_position(completed_, iterations_); }
  /// A general register after the instruction that ends.
  std::uint64_t left(unsigned n) const {
    return left_ != nullptr ? left_->gpr[n] : registers_.gpr(n);
  }
  void say_internal(const char* op);
  void say_random(const char* op);
  void say_value(const char* op, std::array<std::uint32_t, 4> values);

  std::uint64_t effective_address(const Insn& insn, const LoggedState& state);
  void expect_stores(std::uint64_t linear, unsigned size);
  void block_access(std::uint64_t linear, unsigned size, bool store);

  // recorder_fpu.cc
  std::uint64_t segment_base(unsigned segment, std::uint16_t selector);
  void note_fpu_access(const Insn& insn, std::uint64_t linear);
  EnvironmentForm environment_form(const Insn& insn);
  bool is_environment(const Insn& insn, std::uint64_t linear);
  void read_environment(const Insn& insn, std::uint64_t linear);
  void load_fpu_environment(const Insn& insn);
  std::span<const std::uint8_t> as_stored_environment(const Insn& insn, std::uint64_t linear,
                                                      std::span<const std::uint8_t> value);
  void load_fpu_image(const Insn& insn);
  void finish_x87(const Insn& insn);
  void fpu_image(const Insn& insn, bool store);
  std::array<std::uint8_t, 16> stored_fpu_block(const Insn& insn, unsigned offset,
                                                const std::uint8_t* emulated);

  // recorder_extended_state.cc
  void prepare_extended_state(const Insn& insn);
  void finish_extended_state(const Insn& insn);
  bool peek(std::uint64_t linear, std::span<std::uint8_t> bytes) const;
  void store_as_own(std::uint64_t linear, std::span<const std::uint8_t> bytes);
  void save_components(const Insn& insn);
  void read_components(const Insn& insn);

  struct StringRead {
    std::uint64_t linear = 0;
    std::uint32_t physical = 0;
    bool device = false;
    std::size_t size = 0;
    std::array<std::uint8_t, 16> bytes{};
  };
  void compare_strings(const StringRead& read);
  void show(const StringRead& read);
  void transfer(bool store, std::uint64_t linear, std::uint32_t physical, bool device,
                std::span<const std::uint8_t> value);
  std::span<const std::uint8_t> as_moved(const Insn& insn, bool store, std::uint64_t linear,
                                         std::span<const std::uint8_t> value);
  std::span<const std::uint8_t> as_returned(const Insn& insn, std::uint64_t linear,
                                            std::span<const std::uint8_t> value);
  void read_first_string(const LoggedState& state);
  void note_upper_half(InsnKind kind, std::uint64_t linear, std::span<const std::uint8_t> dword);
  void load_task_base();
  void begin_attempt(bool again);
  bool is_begun_anew(InsnKind kind, bool store, std::uint64_t linear);
  std::span<const std::uint8_t> may_update(const Insn& insn, std::uint64_t linear,
                                           std::optional<std::uint32_t> physical,
                                           std::span<const std::uint8_t> value);

  GuestMemory& memory_;
  RecordSink& sink_;
  InterruptLog& log_;
  Registers& registers_;
  BusModel bus_;
  StandIns stand_ins_;
  PageWalker walker_;

  bool active_ = false;
  unsigned number_ = 0;
  bool several_ = false;
  bool waits_ = false;             ///< for a SIPI
  std::uint32_t destination_ = 0;  ///< of messages: the upper half of the command register
  bool line_is_known_ = false;     ///< that of the last fetch is held as it is in memory
  std::uint64_t arrived_at_ = 0;   ///< linear address of what arrive() was told of
  bool stop_marker_ = false;
  std::uint32_t window_ = 0;
  std::uint64_t completed_ = 0;
  std::uint32_t iterations_ = 0;  ///< of the REP in flight
  unsigned accesses_ = 0;         ///< of the iteration in progress
  unsigned shown_ = 0;            ///< accesses since the attempt or the iteration began
  unsigned shown_before_ = 0;     ///< in the attempt before: the first of these are the same
  std::optional<std::uint64_t> first_read_;  ///< its first access, a read, until it stores
  StringRead held_back_;                     ///< of the iteration of CMPS in progress
  std::uint64_t first_access_ = 0;           ///< linear address, of IRET and far RET
  bool to_virtual8086_ = false;              ///< the IRET in flight has read EFLAGS with VM set
  bool from_virtual8086_ = false;            ///< it began in virtual-8086 mode
  const Insn* in_flight_ = nullptr;
  const LoggedState* left_ = nullptr;  ///< what it left, where the emulator has gone on since
  std::uint64_t in_flight_linear_ = 0;
  std::uint64_t displacement_ = 0;  ///< of the block: where it runs minus where it was translated
  struct CodeSegment {
    std::uint64_t base = 0;
    std::uint16_t selector = 0;
    bool known = false;
    bool hidden = true;  ///< real mode has not loaded CS: its selector does not say
  } code_segment_;
  std::uint64_t next_linear_ = 0;  ///< after the instruction before, for sequential fetches

  // What an instruction in flight needs when it has ended.
  struct PortAccess {
    std::uint32_t number = 0, value = 0;
  } port_;
  std::uint64_t stack_pointer_ = 0;  ///< before a software interrupt
  std::optional<std::uint64_t> block_address_;
  std::optional<std::uint64_t> environment_;  ///< linear address of the one that x87 code moves
  std::array<std::uint8_t, 4> field_{};       ///< of it, as a processor stores it
  /// What XSAVE and its like, XGETBV and XSETBV work with.
  struct ExtendedState {
    std::uint64_t operand = 0;                    ///< EDX:EAX
    std::uint32_t number = 0;                     ///< ECX
    std::uint64_t there = 0;                      ///< components that XRSTOR takes from memory
    std::array<std::uint8_t, kAreaBytes> area{};  ///< before it is stored to
    bool in_ram = false;                          ///< all of it
    std::uint64_t wanted(const ModelFacts& facts) const { return operand & facts.xcr0; }
  } extended_;
  FpuPointers fpu_;
  TagWord tags_;
  struct KnownBase {
    std::uint16_t selector = 0;
    std::uint64_t base = 0;
    bool known = false;
  };
  SegmentLimits segments_;  ///< of code of 16 and 32 bits
  DataBreakpoints breakpoints_;
  std::optional<Tables> tables_;    ///< since it was last asked for
  std::optional<TaskSwitch> task_;  ///< that the instruction in flight makes
  /// What the far transfer in flight has read: a call gate, a code segment's descriptor.
  struct FarTransfer {
    std::optional<TableEntry> gate, code;
  } transfer_;
  unsigned level_ = 0;                   ///< privilege level before the far transfer in flight
  std::array<KnownBase, 4> known_base_;  ///< ES CS SS DS, for the selector last asked for

  ModelFacts facts_;
  struct TaskBase {
    std::uint64_t whole = 0;  ///< of TR, of which the log has a half outside 64-bit mode
    std::uint32_t high = 0;   ///< that LTR has read
  } task_base_;
  struct Delivered {
    std::uint64_t interrupts = 0, exceptions = 0, software = 0;
  } delivered_;
};

}  // namespace citcat::monitor
