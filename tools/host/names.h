#pragma once
// The names of things in a run. The host asks here; a source that knows more overrides it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "tools/host/context.h"

namespace citcat::tools {

/// Addresses from `begin` up to before `end`.
struct LinearRange {
  LinearAddr begin, end;
  bool has(LinearAddr a) const { return begin <= a && a < end; }
};

struct MachineEvent;
struct SystemCall;

/// Is notified of system calls. Numbers distinguish calls that are open at the same time.
class SystemCallWatcher {
 public:
  virtual ~SystemCallWatcher() = default;
  virtual void call_began(std::uint64_t number, const SystemCall& call) = 0;
  virtual void call_ended(std::uint64_t number, const SystemCall& call) = 0;
};

/// Code with a name.
struct NamedCode {
  std::string module, procedure;
  LinearAddr begin;  ///< first byte of the procedure
};

/// By itself it knows processes by CR3 ("01234000"), and code by its addresses.
class NameSource {
 public:
  virtual ~NameSource() = default;
  /// Told everything that happens, whatever the scope: names may depend on it.
  virtual void event(const MachineEvent& /*event*/, const Context& /*context*/) {}
  /// From within event(); null: nobody.
  virtual void set_watcher(SystemCallWatcher* /*watcher*/) {}
  /// What a process is called depends on what happened since the run began.
  virtual bool names_processes() const { return false; }
  /// What lies there while the process that runs does; nullopt where that has no name.
  virtual std::optional<NamedCode> procedure(LinearAddr /*at*/, const Context& /*context*/) const {
    return std::nullopt;
  }
  /// Where the thing of that name lies, code or data; nullopt where no such name is known.
  virtual std::optional<LinearAddr> symbol(const std::string& /*name*/) const {
    return std::nullopt;
  }
  /// What the process with these page tables (CR3) is called, for tables.
  virtual std::string process_of(AddressSpaceId address_space) const;
  /// The process that runs.
  std::string process(const Context& context) const { return process_of(context.address_space()); }
  /// `pattern`, of --where process=, is the process that runs.
  virtual bool is_process(const std::string& pattern, const Context& context) const;
  /// What `pattern`, of --where code=, stands for. Throws UsageError where it is nothing known.
  virtual std::vector<LinearRange> code(const std::string& pattern) const;
};

/// "c0100000-c01fffff" or one address, hexadecimal, the last one included. Throws UsageError naming
/// `what` for anything else.
LinearRange parse_linear_range(const std::string& text, const std::string& what);

}  // namespace citcat::tools
