#pragma once
// Procedures by number, for tools that follow calls.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/guest/call_stacks.h"
#include "tools/host/names.h"

namespace citcat::tools {

/// With symbols, what has a name is a procedure. What has none begins where it is called, where the
/// processor enters the kernel, or where the first code of a stack is met, and is called by its
/// address. Parts of a procedure that a compiler moved away ("schedule.cold") belong to it.
class ProcedureTable {
 public:
  /// The number for code in no known procedure.
  static constexpr ProcedureNumber kUnknown = 0;

  explicit ProcedureTable(const NameSource* names) : names_(names) {
    entry({"", "(unknown)"}, std::nullopt);
  }

  /// What lies at the address in the process that runs.
  struct Place {
    ProcedureNumber procedure = kUnknown;
    bool named = false;   ///< has a name, and so its code is known by its address
    bool begins = false;  ///< the address is the first of the procedure
  };
  Place at(LinearAddr address, const Context& context);
  /// The procedure that a call goes to.
  ProcedureNumber called(LinearAddr address, const Context& context);

  const NameSource* names() const { return names_; }
  const std::string& module(ProcedureNumber number) const { return all_[number].module; }
  const std::string& name(ProcedureNumber number) const { return all_[number].name; }
  /// Where it began when it was first met; nullopt of what lies in no procedure that is known.
  std::optional<LinearAddr> begin(ProcedureNumber number) const { return begins_[number]; }
  std::size_t size() const { return all_.size(); }

 private:
  struct Entry {
    std::string module, name;
    auto operator<=>(const Entry&) const = default;
  };
  ProcedureNumber entry(Entry entry, std::optional<LinearAddr> begin);

  const NameSource* names_;  ///< may be null
  std::vector<Entry> all_;
  std::vector<std::optional<LinearAddr>> begins_;  ///< by number
  std::map<Entry, ProcedureNumber> numbers_;
};

}  // namespace citcat::tools
