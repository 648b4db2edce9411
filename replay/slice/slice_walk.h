#pragma once
// Goes backwards through a log, and finds what made the values that matter.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "events/processors/foreign_reads.h"
#include "events/recording.h"
#include "replay/slice/access_stream.h"
#include "replay/slice/live_values.h"
#include "replay/slice/slice.h"
#include "replay/slice/slice_log.h"

namespace citcat {

class SliceWalk {
 public:
  /// All must outlive the walk; what it finds goes into `slice`.
  SliceWalk(const SliceQuery& query, const Recording& recording, Slice& slice,
            ForeignReads* foreign)
      : query_(query),
        recording_(recording),
        slice_(slice),
        foreign_(foreign),
        foreign_before_(query.at) {}

  LiveValues& live() { return live_; }
  const LiveValues& live() const { return live_; }
  /// Wants it, unless it is the stack pointer and only an address.
  void want(PlaceRange range, SliceWay way, std::uint8_t bits = 0xff);
  /// Goes back through all of the log. False where the slice has got as many steps as it may have.
  bool go_back(const SliceLog& log);
  /// Goes back over what others had stored and the processor read at or after `to`: bytes that are
  /// looked for come from there. Nothing that the processor itself stores may lie between.
  void pass_foreign(Position to);
  /// Nothing is looked for any more.
  bool done() const;

 private:
  friend class SliceDelivery;
  /// One execution of an instruction, or of an iteration.
  struct Execution {
    const LoggedCode* code = nullptr;
    const ValueFlow* flow = nullptr;
    Position position;
    std::span<const LoggedPortRead> ports;
  };
  /// What is wanted of the state before.
  struct Demand {
    template <class What>
    struct Byte {
      What what;
      SliceWay way = SliceWay::value;
      std::uint8_t bits = 0xff;
    };
    std::vector<Byte<std::uint16_t>> places;
    std::vector<Byte<SliceMemory>> memory;
    bool input = false;
    SliceWay input_way = SliceWay::value;
    void clear();
  };
  /// What of it mattered before.
  struct Met {
    std::vector<std::uint16_t> places;
    std::vector<SliceMemory> memory;
    std::vector<std::uint8_t> place_bits, memory_bits;  ///< the bits that mattered of each
    SliceWay nearest = SliceWay::control;
    bool any() const { return !places.empty() || !memory.empty(); }
    void clear();
    void add_place(unsigned number, SliceWay way, std::uint8_t bits);
    void add_memory(const SliceMemory& byte, SliceWay way, std::uint8_t bits);
    std::uint8_t bits_of(PhysAddr byte) const;
  };

  void code(const SliceLog& log, const LogEntry& entry);
  void iterations(const SliceLog& log, const LogEntry& entry);
  void external(const SliceLog& log, const LogEntry& entry);
  void unfinished(const SliceLog& log, const LogEntry& entry);
  void pass_foreign_behind(Position at) { pass_foreign({at.instruction, at.iteration + 1}); }
  /// The same, and what the instruction at the position read.
  void pass_foreign_of(Position at);
  /// The same, and what the bus showed there by this transaction or later.
  void pass_foreign_since(Position at, std::uint64_t transaction);
  template <class Passes>
  void pass_foreign_while(Position to, Passes passes);
  void take_foreign(const ForeignRead& read);
  std::optional<SliceInput> take_live(PhysAddr address, std::uint32_t size);

  bool touches_live(const ValueFlow& flow, std::span<const LoggedAccess> accesses,
                    std::uint32_t by) const;
  bool is_full() const { return query_.limit != 0 && slice_.steps.size() >= query_.limit; }
  void execution(const Execution& e);
  void effect(const ValueEffect& effect);
  bool meet_uncovered_stores();
  void lanes(const ValueEffect& effect);
  void demand_span(const ValueSpan& span, SliceWay way, std::uint8_t bits = 0xff);
  void demand_byte(const ValueSpan& span, std::uint32_t i, SliceWay way, std::uint8_t bits);
  void forget_met();
  std::uint32_t length(const ValueSpan& span) const;
  void settle(const Execution& e);
  void decision(const Execution& e);
  void add_code_input(const LoggedCode& code, SliceWay way);
  void add_port_input(const Execution& e, SliceWay way);
  void apply_demand(SliceStep& step);
  SliceStep& add_step(SliceWay way, Position position);
  static void merge(std::vector<SliceMemory>& pieces);

  // Which branches decided about steps, for `control`.
  void enter_callee() { wants_branch_.push_back(false); }
  void leave_to_caller();
  bool wants_branch() const { return query_.control && wants_branch_.back(); }
  void follow_calls(InstructionClass kind);

  const SliceQuery& query_;
  const Recording& recording_;
  Slice& slice_;
  ForeignReads* foreign_;
  std::optional<ForeignReads::Window> window_;  ///< once it was asked for
  std::size_t foreign_left_ = 0;                ///< reads of the window that are not passed
  Position foreign_before_;                     ///< no window: those from there on are passed
  LiveValues live_;
  AccessStream loads_, stores_;
  Demand demand_;
  Met met_;
  std::vector<Demand::Byte<std::uint32_t>> hits_;  ///< bytes of `to` that matter in an effect
  bool touched_memory_ = false;
  /// In the number of the register stack: fixed, as MMX has them, or from the top.
  bool fixed_numbers_ = false;
  std::unordered_set<std::uint64_t> coded_;  ///< instructions that are inputs already
  std::vector<bool> wants_branch_{false};  ///< of the procedure that runs, and those that it called
};

}  // namespace citcat
