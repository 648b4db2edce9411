#pragma once
// Events that open and close windows of a run: all of a kind, or those with a given vector, number,
// port, procedure, process or address.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/host/names.h"
#include "tools/host/window_words.h"

namespace citcat::tools {

enum class Counted : std::uint8_t {
  instructions,
  branches,  ///< conditional ones
  calls,
  returns,
  interrupts,  ///< from outside, NMI, SMI
  exceptions,
  syscalls,    ///< INT 80h, SYSENTER
  switches,    ///< loads of CR3
  procedures,  ///< their first instruction runs
  writes,      ///< of memory
  ports,       ///< are read or written
  processes,   ///< another one runs, or the same is called otherwise
};

/// Something that happened.
struct Happening {
  Counted what = Counted::instructions;
  /// Vector, number of the call (EAX), port, linear address of the instruction or of what is
  /// written; else without a meaning.
  std::uint64_t value = 0;
  std::uint32_t size = 1;            ///< bytes of a write
  bool is_of_instruction = false;    ///< that has been counted before
  const Context* context = nullptr;  ///< of processes
};

/// Some number of events. Numbers are decimal, or hexadecimal with 0x; addresses hexadecimal.
///
///   instructions branches calls returns switches
///   interrupts[:V] exceptions[:V] syscalls[:N]
///   procedure:NAME process:NAME write:FIRST[-LAST] port:N
class WindowEvent {
 public:
  /// Parses the next word as an event; if it is not one, takes nothing and means instructions.
  /// Names must outlive it. Throws UsageError.
  static WindowEvent parse(WindowWords& words, const NameSource& names);

  bool has(const Happening& h) const;
  Counted what() const { return what_; }
  bool is_instructions() const { return what_ == Counted::instructions; }

 private:
  void take_value(const std::string& word, const std::string& value, const NameSource& names);

  Counted what_ = Counted::instructions;
  std::optional<std::uint32_t> value_;  ///< none: any
  std::vector<LinearRange> places_;     ///< of procedures and writes
  std::string process_;
  const NameSource* names_ = nullptr;
};

}  // namespace citcat::tools
