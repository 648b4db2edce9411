#pragma once
// --where: which instructions and events the tools receive. An expression of terms with & | ! and
// brackets:
//
//   process=NAME   processor=N   level=N   interrupt   interrupt=VECTOR   syscall   syscall=N
//   code=PLACE     data=FIRST-LAST
//
// interrupt: within one from outside, NMI or SMI. syscall: within a call by INT 80h or SYSENTER;
// its number is the value of EAX. code: where the instruction lies. data: where it reads or writes.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::tools {

class Scope {
 public:
  /// Everything.
  Scope();
  /// Throws UsageError where the text is no expression, or names a processor that the machine
  /// lacks. `names` must outlive the scope. `processor`: whose run the text is about, one of
  /// `processors` numbers from 0 on.
  Scope(const std::string& text, const NameSource& names, std::size_t processor,
        std::size_t processors);
  Scope(Scope&&) noexcept;
  Scope& operator=(Scope&&) noexcept;
  ~Scope();

  /// Numbers of terms are bits of a mask. Those that change only with the context, ...
  std::uint64_t context_terms(const Context& context) const;
  /// ... those that the place of an instruction decides, ...
  std::uint64_t code_terms(const StaticInstruction& instruction) const;
  /// ... and those that its references decide, iterations of a REP among them.
  std::uint64_t data_terms(const Execution& execution) const;
  /// Whether the expression is true where just these terms are.
  bool holds(std::uint64_t terms) const;

  bool has_data_terms() const { return has_data_; }
  /// Some term is the name of a process.
  bool names_processes() const { return names_processes_; }
  /// Who needs to know which interrupts and system calls are open.
  bool needs_history() const { return needs_history_; }

 private:
  struct Term;
  struct Node;
  class Parser;

  std::vector<Term> terms_;
  std::unique_ptr<Node> root_;
  bool has_data_ = false, needs_history_ = false, names_processes_ = false;
};

}  // namespace citcat::tools
