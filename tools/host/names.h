#pragma once
// What things of the run are called. The host asks; who knows better than addresses overrides.

#include <string>
#include <vector>

#include "events/address.h"
#include "tools/host/context.h"

namespace citcat::tools {

/// Addresses from `begin` up to before `end`.
struct LinearRange {
  LinearAddr begin, end;
  bool has(LinearAddr a) const { return begin <= a && a < end; }
};

/// By itself it knows processes by CR3 ("01234000"), and code by its addresses.
class NameSource {
 public:
  virtual ~NameSource() = default;
  /// The process that runs, for tables.
  virtual std::string process(const Context& context) const;
  /// `pattern`, of --where process=, is the process that runs.
  virtual bool is_process(const std::string& pattern, const Context& context) const;
  /// What `pattern`, of --where code=, stands for. Throws UsageError where it is nothing known.
  virtual std::vector<LinearRange> code(const std::string& pattern) const;
};

/// "c0100000-c01fffff" or one address, hexadecimal, the last one included. Throws UsageError naming
/// `what` for anything else.
LinearRange parse_linear_range(const std::string& text, const std::string& what);

}  // namespace citcat::tools
