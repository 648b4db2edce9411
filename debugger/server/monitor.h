#pragma once
// The commands behind gdb's `monitor`, for everything that gdb itself has no command for.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "debugger/target/debug_target.h"
#include "events/bus_transaction.h"

namespace citcat {

class Monitor {
 public:
  using Interrupt = DebugTarget::Interrupt;
  using TransactionText = std::function<std::string(const BusTransaction&)>;
  /// `target` must outlive the object. `transaction_text`: a transaction as one line.
  Monitor(DebugTarget& target, TransactionText transaction_text)
      : target_(target), transaction_text_(std::move(transaction_text)) {}

  /// What the command answers, in whole lines. Throws UsageError for none that there is.
  std::string run(const std::string& command, const Interrupt& interrupt);
  /// "where" as words of the command line and of `seek`: N, N+K, begin, end or divergence. Throws
  /// UsageError. Goes there, and says where it came to: kEndsBefore and the end, if that is before.
  static constexpr std::string_view kEndsBefore = "the run ends before: ";
  std::string seek(const std::string& where, const Interrupt& interrupt = {});
  /// Where and why the run diverges from its evidence; empty as long as no divergence is known.
  std::string divergence_text() const;

 private:
  using Words = std::vector<std::string>;
  struct Command {
    const char* name;
    const char* arguments;
    const char* summary;
    std::string (Monitor::*run)(const Words& words, const Interrupt& interrupt);
  };
  static const std::vector<Command>& commands();

  std::string help(const Words&, const Interrupt&);
  std::string where(const Words&, const Interrupt& interrupt);
  std::string seek_to(const Words& words, const Interrupt&);
  std::string processes(const Words&, const Interrupt& interrupt);
  std::string bus(const Words& words, const Interrupt& interrupt);
  std::string events(const Words& words, const Interrupt& interrupt);
  std::string last_write(const Words& words, const Interrupt& interrupt);
  std::string symbols(const Words&, const Interrupt&);
  std::string fork(const Words& words, const Interrupt&);

  std::string place() const;
  std::string next_instruction_text() const;
  std::string nest(const Interrupt& interrupt);

  DebugTarget& target_;
  TransactionText transaction_text_;
};

}  // namespace citcat
