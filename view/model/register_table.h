#pragma once
// The registers that a recorded processor has, as a table for people and programs: under the names
// of its manual, each of the width that it has there. It has only registers that the processor has.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/cpu_state.h"

namespace citcat::view {

/// Up to 128 bits.
struct RegisterValue {
  std::uint64_t low = 0, high = 0;
  bool operator==(const RegisterValue&) const = default;
};

class RegisterTable {
 public:
  explicit RegisterTable(const CpuState& initial);

  enum class Group : std::uint8_t { general, flags, segment, control, debug, x87, sse };
  static const char* group_name(Group group);

  std::size_t count() const { return rows_.size(); }
  /// "eax", "ax" where the processor has 16 bits, "cs.base", "st0".
  const std::string& name(std::size_t i) const { return rows_[i].name; }
  Group group(std::size_t i) const { return rows_[i].group; }
  /// Hexadecimal digits.
  unsigned digits(std::size_t i) const { return rows_[i].digits; }
  RegisterValue value(std::size_t i, const CpuState& state) const;
  /// No dump has it, and the run has not shown it since.
  bool unknown(std::size_t i, const CpuState& state) const {
    return is_unknown(state, rows_[i].state_name);
  }
  std::string text(std::size_t i, const RegisterValue& value) const;
  std::optional<std::size_t> find(const std::string& name) const;
  /// Calls visit(i) for each whose value differs in the two states.
  template <class F>
  void for_each_change(const CpuState& before, const CpuState& after, F&& visit) const {
    const bool same_fx = before.fx == after.fx, same_system = has_same_system(before, after);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Group group = rows_[i].group;
      if (group >= Group::x87 ? same_fx : group >= Group::segment && same_system) continue;
      if (value(i, before) != value(i, after)) visit(i);
    }
  }

 private:
  /// All segment, control and debug registers are the same.
  static bool has_same_system(const CpuState& a, const CpuState& b);
  enum class Source : std::uint8_t {
    gpr,
    extended,
    ip,
    flags,
    selector,
    base,
    limit,
    attributes,
    table_base,
    table_limit,
    cr,
    cr8,
    efer,
    xcr0,
    dr,
    a20,
    smbase,
    tsc,
    st,
    x87_word,
    xmm,
    mxcsr,
  };
  struct Row {
    std::string name, state_name;  ///< the latter as register_names() has it
    Group group = Group::general;
    Source source = Source::gpr;
    std::uint8_t index = 0;
    unsigned digits = 8;
  };
  void add(const std::string& state_name);
  void add_floating_point(const CpuState& initial);
  std::string shown_name(const std::string& state_name) const;

  bool sixteen_bit_ = false, wide_ = false, has_limits_ = true;
  std::vector<Row> rows_;
};

}  // namespace citcat::view
