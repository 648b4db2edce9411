#pragma once
// Follows calls and returns from what a tool receives: which procedure runs, who called it, how
// many instructions each call took.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "tools/analyses/procedure_table.h"
#include "tools/guest/call_stacks.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// Is notified of every call, of the end of every call (CallListener), and of the instructions in
/// between.
class CallFollowerListener : public CallListener {
 public:
  virtual void called(ProcedureNumber caller, ProcedureNumber procedure) = 0;
  /// The procedure goes on as another one without a name: it jumped there, which is no call.
  virtual void went_on(ProcedureNumber /*procedure*/) {}
  virtual void executed(ProcedureNumber procedure, std::uint64_t instructions) = 0;
  /// The same for the procedure that executed last, and nothing else was reported since.
  virtual void executed_further(ProcedureNumber procedure, std::uint64_t instructions) {
    executed(procedure, instructions);
  }
  /// The last instruction that was executed did not complete: it is going to be begun again.
  virtual void taken_back(ProcedureNumber procedure) = 0;
};

class CallFollower {
 public:
  /// Both must outlive the follower.
  CallFollower(ProcedureTable& procedures, CallFollowerListener& listener)
      : procedures_(procedures), listener_(listener), stacks_(listener) {}

  static Wants wants() { return {.executions = true, .events = true}; }
  // A tool passes these on.
  void* code(const StaticBlock& block);
  void run(void* mine, const Execution& execution, const Context& context);
  void event(const MachineEvent& event, const Context& context);
  /// The run is within a REP that was reported, and does not complete it.
  void unfinished(Position at);
  /// What is reported is followed, but no instructions are counted.
  void set_warming(bool warming) { warming_ = warming; }
  /// What comes next is not what ran next.
  void gap();
  /// The same, and it is in the procedure that ran last, or in the one that a return is told to.
  void left_scope(const Context& context);
  /// All calls that are open end.
  void end() { stacks_.end(); }
  const CallStacks& stacks() const { return stacks_; }
  /// Which instructions of what is told run just now: a piece of code may lie in several
  /// procedures, and is followed, and listeners are notified, procedure by procedure.
  struct Part {
    std::uint32_t first = 0, end = 0;
    bool has(std::uint32_t i) const { return i >= first && i < end; }
  };
  const Part& part() const { return part_; }

 private:
  /// A piece of code, or a part of it that lies in one procedure.
  struct Code {
    std::span<const StaticInstruction> all;  ///< of the piece
    Part here;
    std::vector<Code*> parts;   ///< empty: it lies in one procedure
    std::uint64_t cut_for = 0;  ///< how much of `called_` it was cut by, and 1; 0: not yet
    std::vector<ProcedureTable::Place> places;  ///< of each instruction
    const DecodedInstruction* last = nullptr;
    LinearAddr begin;
    bool is_mark = false;      ///< what indirect branches may go to, and nothing else
    bool loads_stack = false;  ///< some instruction takes the stack pointer from memory
    bool stays = false;        ///< after it the same calls are open as before
    bool jumps_on = false;     ///< it is nothing but a jump: what a call of it goes to is elsewhere
    bool enters = false;       ///< it ends with a software interrupt
    ProcedureTable::Place place;
    /// That it ran as last, where it has no name.
    ProcedureNumber ran_as = ProcedureTable::kUnknown;
    std::optional<ProcedureNumber>
        called;  ///< that a call of its beginning goes to, where it has no name
  };
  /// How the code that runs now was reached.
  enum class Arrival : std::uint8_t {
    other,
    call,
    back,  ///< by a return
    on,    ///< by what a call went to and was nothing but a jump
    entry  ///< the processor entered the kernel
  };

  Code& make_part(std::span<const StaticInstruction> all, Part here);
  void cut(Code& code, const Context& context);
  bool may_lie_in_other_parts(const Code& code) const;
  bool begins_part(const Code& code, std::uint32_t i) const;
  void settle(Code& part, const std::vector<ProcedureTable::Place>& places);
  void becomes_called(Code& code, const Context& context);
  void follow(Code& code, const Execution& execution, const Context& context);
  bool goes_on(const Code& code) const;
  void enter(const KernelEntry& entry);
  void find_again(const Code& code);
  void make_call(const DeliveredEvent& before, const Context& context);
  ProcedureNumber arrive(Code& code, const Context& context);
  ProcedureNumber arrive_by_call(Code& code, const Context& context);
  ProcedureNumber procedure_met(const Code& code, bool is_lost, const Context& context);
  void depart(const Code& code, const Execution& execution, const Context& context,
              ProcedureNumber procedure, bool is_called);

  ProcedureTable& procedures_;
  CallFollowerListener& listener_;
  CallStacks stacks_;
  std::deque<Code> code_;
  /// Targets of calls that have no name, by linear and physical address and bytes. Code that is
  /// reached there in another way belongs to the same procedure, however a run is cut into blocks.
  using Place = std::tuple<LinearAddr, PhysAddr, decltype(DecodedInstruction::bytes)>;
  static Place place_of(const StaticInstruction& i) { return {i.linear, i.physical, i.info.bytes}; }
  std::map<Place, ProcedureNumber> called_;
  std::vector<LinearAddr> called_at_;  ///< the same, in the order in which they became known
  Part part_;
  bool after_mark_ = false;  ///< what ran last was a mark that a call went to
  Arrival arrival_ = Arrival::other;
  LinearAddr slot_;   ///< of the call that was made last
  LinearAddr frame_;  ///< of the IRET that was made last
  AddressSpaceId slot_space_ = 0;
  ProcedureNumber caller_ = ProcedureTable::kUnknown;
  ProcedureNumber running_ = ProcedureTable::kUnknown;
  bool stays_ = false;  ///< since executed() nothing happened that opens or ends calls
  ProcedureNumber innermost_ = ProcedureTable::kUnknown;  ///< of the innermost call then
  bool warming_ = false;
  bool lost_ = false;  ///< calls that are open may not be known, nor whether those known still are
  bool enters_ = false;  ///< a software interrupt was delivered: its instruction is told after that
  std::uint64_t last_instruction_ = 0;  ///< position of what was reported last
};

}  // namespace citcat::tools
