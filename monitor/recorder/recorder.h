#pragma once
// Turns what the emulator reports about its run into what a bus monitor would have seen.
//
// Positions: an instruction counts when it has ended. The emulator reports when an instruction
// starts, so each start ends the instruction before it, except where the same instruction simply
// starts again: the next iteration of a REP, a store into the block that is being executed, a
// fault.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "monitor/delivery/deliveries.h"
#include "monitor/delivery/event_log.h"
#include "monitor/delivery/resets.h"
#include "monitor/delivery/system_management.h"
#include "monitor/processor/observation.h"
#include "monitor/recorder/first_state.h"
#include "monitor/units/accesses.h"
#include "monitor/units/execution.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class Recorder {
 public:
  Recorder(GuestMemory& memory, RecordSink& sink, InterruptLog& log, Registers& registers,
           CacheModel model)
      : seen_(memory, sink, log, registers, model) {}

  /// Begins at an instruction that is about to start. `window`: the driver's, 0 for none; its state
  /// block goes out first. Without one the emulator's own view of the state does.
  void begin(const Insn& first, std::uint32_t window);
  bool active() const { return seen_.recording.active(); }
  /// Ends it, with the reason why it cannot go on.
  void refuse(const std::string& why) {
    if (active()) seen_.recording.give_up(why);
  }
  void end(const std::string& reason) { seen_.recording.end(reason); }
  void close(const std::string& reason) { seen_.recording.close(reason); }
  Totals totals() const { return seen_.recording.totals(); }
  std::uint64_t instructions() const { return seen_.flight.completed; }
  /// A recording without the driver begins with them.
  ModelFacts& facts() { return seen_.cpu.facts; }
  bool stop_marker_seen() const { return units_.window.stop_marker_seen(); }

  // recorder_turns.cc: several processors that take turns, with a recorder for each.
  /// This is number `number`, and the caches of `others` see its bus.
  void share(unsigned number, std::vector<BusModel*> others);
  BusModel& bus() { return seen_.cpu.bus; }
  /// One that is not running begins where it is, when another has begun. One that has not been
  /// started yet waits for that.
  void begin_at_rest();
  /// Another processor goes on. Everything that this one has done is shown by then; its registers
  /// are to be had.
  void rest();
  /// It goes on.
  void resume() { seen_.cpu.sink.select(seen_.cpu.number); }
  /// It was initialised (INIT) and waits to be started.
  void initialised();
  /// It waits to be started: nothing is delivered to it.
  bool waits() const { return waits_; }

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
  /// The same if all of them are on the line that was fetched last. Returns false, and does
  /// nothing, otherwise.
  bool pass(const Insn& first, const Insn& last) {
    Flight& flight = seen_.flight;
    if (!first.continues_line || first.alike_behind < &last - &first ||
        !seen_.code.line_is_known() || flight.insn == nullptr || !flight.insn->ends_plainly ||
        units_.guard.has_to_learn(first))
      return false;
    flight.iterations = 0;
    flight.completed += static_cast<std::uint64_t>(&last - &first) + 1;
    flight.attempt.begin(false);
    flight.accesses = 0;
    flight.insn = &last;
    flight.linear = seen_.code.linear_of(last);
    seen_.code.pass(flight.linear, last.size);
    return true;
  }
  /// The same as start() for the first instruction of a block where nothing has happened since the
  /// last one. False, with nothing done, where there is more to it. `calm`: there are quick
  /// accesses, in protected mode.
  bool start_plainly(const Insn& insn, bool calm);
  /// The same for the next iteration of a REP.
  bool iterate_plainly(const Insn& insn);

  // Accesses to RAM, as load_unseen() and store_unseen() take them, of at most eight bytes, for
  // which the emulator is asked nothing.
  /// The page of one of these, or nullptr. `told`: the recorder has been told of all instructions
  /// that began until then. Otherwise only what it has not been told of must be told before
  /// fill_quickly().
  [[gnu::always_inline]] const HeldPage* quick_page(TaggedInsn insn, bool store,
                                                    std::uint64_t linear, unsigned size,
                                                    bool told) const {
    const bool updates = !store && insn.updates_plainly();
    const bool may = store ? insn.accesses_unseen() : insn.loads_unseen() || updates;
    if (!may || !in_one_long_line(linear, size) || !seen_.cpu.segments.allow(insn.segments()))
      return nullptr;
    // A walk since the recorder was told last may have put another page in place of this code's.
    if (!told &&
        !(insn.is_plain() && insn.in_first_page() && quick_.walks == seen_.cpu.walker.walks()))
      return nullptr;
    if (!store && quick_.insn == insn.insn() && quick_.first_read == linear) return nullptr;
    if (told) {
      const Flight& flight = seen_.flight;
      if (flight.insn != insn.insn() || flight.attempt.repeats() ||
          (!store && flight.attempt.may_begin_anew(linear)))
        return nullptr;
    }
    const HeldPage* const page = seen_.cpu.walker.surely_held(
        linear, store, store ? insn.sure_for_store() : insn.sure_for_load());
    // A store has nothing to do with code or tables of pages.
    return page != nullptr && store && seen_.cpu.memory.uses_of(page->in_ram.live) != 0 ? nullptr
                                                                                        : page;
  }
  /// Takes one of which nothing is seen. False, with nothing done, where its line is not held.
  [[gnu::always_inline]] bool access_quickly(TaggedInsn insn, const HeldPage& page, bool store,
                                             std::uint64_t linear, unsigned size) {
    const PhysicalAddress address = page.frame | (linear & 0xfff);
    if (!(store ? seen_.cpu.bus.write_apart(page.in_ram, address, size)
                : seen_.cpu.bus.read_apart(page.in_ram, address)))
      return false;
    note_quickly(insn, store, linear);
    return true;
  }
  /// Takes one whose line is brought in. The recorder has been told of all that began.
  bool fill_quickly(TaggedInsn insn, const HeldPage& page, bool store, std::uint64_t linear,
                    unsigned size) {
    seen_.recording.set_position();
    if (!seen_.cpu.bus.fill_apart(page.in_ram, store, page.frame | (linear & 0xfff), size))
      return false;
    note_quickly(insn, store, linear);
    return true;
  }
  /// Where code has no cache of its own: takes one that the bus shows, or of which nothing is seen.
  /// The recorder has been told of all that began. False, with nothing done, where there is more to
  /// it.
  [[gnu::always_inline]] bool access_in_order(TaggedInsn insn, const HeldPage& page, bool store,
                                              std::uint64_t linear, unsigned size) {
    BusModel& bus = seen_.cpu.bus;
    const PhysicalAddress address = page.frame | (linear & 0xfff);
    const std::span<const std::uint8_t> value(page.in_ram.live + (linear & 0xfff), size);
    if (bus.is_plain(page.in_ram, store, address, value)) {
      seen_.recording.set_position();
      bus.show_plainly(page.in_ram, store, address, value);
    } else if (!(store ? bus.write_unseen(page.in_ram, address, value)
                       : bus.read_unseen(page.in_ram, address, size))) {
      return false;
    }
    note_quickly(insn, store, linear);
    return true;
  }
  bool has_code_cache() const { return seen_.cpu.bus.has_code_cache(); }
  bool shows_all() const { return seen_.cpu.bus.shows_all(); }
  /// Whether there are such accesses now, as far as nothing is looked at that a memory access or
  /// the beginning of a plain instruction may change.
  bool has_quick_accesses() const {
    const ObservedProcessor& cpu = seen_.cpu;
    return !cpu.bus.is_disabled() && !cpu.several && !units_.far_transfer.switches_task() &&
           !cpu.breakpoints.watch_data() && !cpu.walker.keeps_pointers() && !cpu.in_real_mode() &&
           !cpu.log.failed();
  }
  /// Takes notice of quick accesses of the instruction in flight. To be called before anything else
  /// is told of it, or of the next one.
  void settle() {
    if (quick_.insn != nullptr && quick_.insn == seen_.flight.insn)
      seen_.flight.attempt.note_all(quick_.accesses, quick_.first_read, quick_.stores);
    forget_quick_accesses();
  }
  /// The same where the next instruction has begun.
  void forget_quick_accesses() {
    quick_.insn = nullptr;
    quick_.walks = seen_.cpu.walker.walks();
  }

  /// follow_all() where nothing but fetches comes of it. Returns false, and does nothing, where the
  /// instruction before them has to be looked at.
  bool follow_plainly(const Insn* first, const Insn* last) {
    Flight& flight = seen_.flight;
    if (flight.insn == nullptr || !flight.insn->ends_plainly || units_.guard.has_to_learn(*first))
      return false;
    flight.iterations = 0;
    CodeStream& code = seen_.code;
    while (first <= last) {
      ++flight.completed;
      if (!first->continues_line || !code.line_is_known()) fetch_behind(*first);
      const std::ptrdiff_t alike = code.line_is_known() ? first->alike_behind : 0;
      const Insn* const run = first + std::min(alike, last - first);
      flight.completed += static_cast<std::uint64_t>(run - first);
      code.pass(code.linear_of(*run), run->size);
      first = run + 1;
    }
    flight.attempt.begin(false);
    flight.accesses = 0;
    flight.insn = last;
    flight.linear = code.linear_of(*last);
    return true;
  }

  /// It has read or written memory, at an address of the machine.
  void access(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address,
              bool device, std::span<const std::uint8_t> value) {
    accesses_.make(insn, store, linear, address, device, value);
  }
  /// The same for one of up to eight bytes of RAM below 4 GiB of which nothing is seen. False, with
  /// nothing done, where something may be.
  bool load_unseen(const Insn& insn, std::uint64_t linear, std::uint64_t address, unsigned size) {
    Attempt& attempt = seen_.flight.attempt;
    // It may be begun anew, may be refused for the right to write, and may mark tables.
    if (!may_load_unseen(insn) || attempt.may_begin_anew(linear) ||
        !access_is_unseen(insn, linear, size))
      return false;
    const HeldPage* const page = page_of(insn, false, linear, address);
    if (page == nullptr || !seen_.cpu.bus.read_unseen(page->in_ram, address, size)) return false;
    if (!is_sure(*page, insn, false)) seen_.cpu.walker.confirm(linear, insn.user, false);
    attempt.note_load(linear);
    if (insn.what.kind != InsnKind::plain) seen_.flight.iterate(false);
    return true;
  }
  bool store_unseen(const Insn& insn, std::uint64_t linear, std::uint64_t address,
                    std::span<const std::uint8_t> value) {
    if (!insn.accesses_unseen ||
        !access_is_unseen(insn, linear, static_cast<unsigned>(value.size())))
      return false;
    const HeldPage* const page = seen_.cpu.walker.held(linear, true, address);
    if (page == nullptr || !seen_.cpu.bus.write_unseen(page->in_ram, address, value)) return false;
    if (!is_sure(*page, insn, true)) seen_.cpu.walker.confirm(linear, insn.user, true);
    seen_.flight.attempt.note_store();
    if (insn.what.kind != InsnKind::plain) seen_.flight.iterate(true);
    return true;
  }
  /// Without a cache: the same for an access that the bus shows, and of which it shows no more.
  bool access_plainly(const Insn& insn, bool store, std::uint64_t linear, std::uint64_t address,
                      std::span<const std::uint8_t> value) {
    Attempt& attempt = seen_.flight.attempt;
    if (!(store ? insn.accesses_unseen
                : may_load_unseen(insn) && !attempt.may_begin_anew(linear)) ||
        !access_is_unseen(insn, linear, static_cast<unsigned>(value.size())))
      return false;
    const HeldPage* const page = page_of(insn, store, linear, address);
    if (page == nullptr || !seen_.cpu.bus.is_plain(page->in_ram, store, address, value))
      return false;
    if (!is_sure(*page, insn, store)) seen_.cpu.walker.confirm(linear, insn.user, store);
    seen_.recording.set_position();
    seen_.cpu.bus.show_plainly(page->in_ram, store, address, value);
    if (store)
      attempt.note_store();
    else
      attempt.note_load(linear);
    if (insn.what.kind != InsnKind::plain) seen_.flight.iterate(store);
    return true;
  }
  /// Takes a store out of RAM again that was made before the recorder was told of what began until
  /// then. False, with nothing done, where that makes no difference to `first` and what follows it
  /// up to `last`.
  bool take_out(std::uint64_t address, unsigned size, const Insn& first, const Insn& last);
  /// The physical address of a linear one, without a trace.
  std::optional<PhysicalAddress> locate(std::uint64_t linear) const {
    return seen_.cpu.walker.locate(seen_.cpu.walker.reach(linear));
  }
  void put_back(std::uint64_t address, std::span<const std::uint8_t> value) {
    seen_.cpu.memory.put(address, value);
  }

 private:
  void begin_with(std::uint32_t window);
  void fetch_behind(const Insn& insn) {
    const std::uint64_t linear = seen_.code.linear_of(insn);
    if (!shows_all() && seen_.code.fetch_unseen(insn, linear)) return;
    seen_.recording.set_position();
    seen_.code.fetch(insn, linear);
  }
  bool goes_on_where_it_was();
  void take_start();
  const char* problem() const;
  /// Whether anything is to be looked at before the next instruction begins.
  bool something_happened() const {
    const ObservedProcessor& cpu = seen_.cpu;
    return cpu.log.pending() || cpu.log.failed() || cpu.in_real_mode() ||
           cpu.walker.keeps_pointers();
  }
  [[gnu::always_inline]] bool access_is_unseen(const Insn& insn, std::uint64_t linear,
                                               unsigned size) const {
    return seen_.flight.insn == &insn && !seen_.flight.attempt.repeats() &&
           !units_.far_transfer.switches_task() && seen_.cpu.segments.allow(insn.segments) &&
           !seen_.cpu.breakpoints.watch_data() && !seen_.cpu.walker.keeps_pointers() &&
           size <= left_in_page(linear);
  }

  bool is_sure(const HeldPage& page, const Insn& insn, bool may_store) const {
    const unsigned sure =
        HeldPage::sure_bit(insn.user, false) | HeldPage::sure_bit(insn.user, may_store);
    return (page.sure_for & sure) == sure && page.sure_at == seen_.cpu.memory.table_stores();
  }
  static bool may_load_unseen(const Insn& insn) {
    return insn.loads_unseen || insn.updates_plainly();
  }
  /// The page of an access, held for it; nullptr where a load may be refused for the right to
  /// write.
  const HeldPage* page_of(const Insn& insn, bool store, std::uint64_t linear,
                          PhysicalAddress address) {
    const bool updates = !store && !insn.loads_unseen;
    const HeldPage* const page = seen_.cpu.walker.held(linear, store || updates, address);
    return page != nullptr && updates && !is_sure(*page, insn, true) ? nullptr : page;
  }
  void note_quickly(TaggedInsn insn, bool store, std::uint64_t linear) {
    if (!insn.is_plain()) {
      Attempt& attempt = seen_.flight.attempt;
      if (store)
        attempt.note_store();
      else
        attempt.note_load(linear);
      return seen_.flight.iterate(store);
    }
    if (quick_.insn != insn.insn())
      quick_ = {insn.insn(), store ? Attempt::kNothing : linear, 0, false, quick_.walks};
    ++quick_.accesses;
    if (store) quick_.stores = true, quick_.first_read = Attempt::kNothing;
  }

  Observation seen_;
  Units units_{seen_};
  Accesses accesses_{seen_, units_};
  Execution execution_{seen_, units_};
  Deliveries deliveries_{seen_, units_, accesses_, execution_};
  SystemManagement management_{seen_, units_, execution_};
  Resets resets_{seen_, units_, execution_, deliveries_};
  EventLog events_{seen_, deliveries_, management_, resets_};
  FirstState first_state_{seen_, units_};
  std::uint64_t arrived_at_ = 0;  ///< linear address of what arrive() was told of
  bool waits_ = false;            ///< for a SIPI
  /// Accesses of an instruction of which nothing was seen, and which the attempt does not know of.
  struct QuickAccesses {
    const Insn* insn = nullptr;
    std::uint64_t first_read = 0;
    unsigned accesses = 0;
    bool stores = false;
    std::uint64_t walks = 0;  ///< of pages until the recorder was told last of what began
  } quick_;
};

}  // namespace citcat::monitor
