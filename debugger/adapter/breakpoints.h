#pragma once
// The breakpoints of a session, on source lines, procedures, instructions and data; a client
// replaces each of these four sets as a whole.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "debugger/adapter/debuggee.h"
#include "debugger/dap/request.h"

namespace citcat::dap {

class Breakpoints {
 public:
  /// Most of a set: an editor shows a few.
  static constexpr std::size_t kMost = 1000;

  /// The answers to requests of the same names, as the protocol has them: an array with what became
  /// of each. Names and lines are those of `debuggee`.
  Json set_lines(const Arguments& arguments, const Debuggee& debuggee);
  Json set_functions(const Arguments& arguments, const Debuggee& debuggee);
  Json set_instructions(const Arguments& arguments);
  /// `is_mapped`: something lies at the address just now, and can be watched.
  Json set_data(const Arguments& arguments,
                const std::function<bool(LinearAddr, std::uint32_t)>& is_mapped);

  /// Puts those that there are into a target, in place of those that were there.
  void put_into(DebugTarget& target) const;
  /// The numbers of those that a move met.
  std::vector<int> met(const MoveEnd& end, LinearAddr pc) const;
  /// As a stop says why, by the kinds of those: "breakpoint", "function breakpoint", ...
  std::string reason(const MoveEnd& end, LinearAddr pc) const;

  void clear() { sets_.clear(); }

 private:
  struct Stop {
    StopKind kind = StopKind::hardware_breakpoint;
    LinearAddr at;
    std::uint32_t size = 1;
    int number = 0;
  };
  struct Set {
    std::string reason;
    std::vector<Stop> stops;
  };
  Set& begin_set(const std::string& key, const char* reason);
  /// What `answer` says of each breakpoint that is wanted, with its number; a wrong one is refused
  /// by itself.
  Json answer_each(const Arguments& arguments,
                   const std::function<Json(const Arguments&, int)>& answer);
  static Stop data_stop(const Arguments& wanted, int number);
  template <class F>
  void each_met(const MoveEnd& end, LinearAddr pc, F&& f) const;

  std::map<std::string, Set> sets_;  ///< by kind, and the path of a source
  int last_ = 0;
};

/// An address and bytes, as `dataId` of the protocol names them.
std::string data_name(LinearAddr at, std::uint32_t bytes);

}  // namespace citcat::dap
