#pragma once
// Where code of a metric can be put. Procedures have points as in the paper; everything else that
// happens in a machine has points of its own, under variables that begin with a dollar sign.

#include <cstdint>
#include <string>

namespace citcat::mdl {

enum class PointKind : std::uint8_t {
  procedure_entry,   ///< it was called, and its first instruction is going to run
  procedure_return,  ///< it returned, or its call ended in another way
  procedure_call,    ///< it calls another one
  call_returned,     ///< what it called came back
  run_begins,        ///< for each thread, where it is first reported
  run_ends,          ///< for each thread
  block,             ///< first of all, and after each transfer of control and each delivery
  instruction,
  branch,
  jump,
  call,
  return_,
  string,
  reference,
  read,
  write,
  walk,
  interrupt_entry,
  interrupt_return,
  exception_entry,
  exception_return,
  system_call_entry,
  system_call_return,
  port_read,
  port_write,
  dma,
  switch_,
  halt,
};
inline constexpr std::size_t kPointKinds = static_cast<std::size_t>(PointKind::halt) + 1;

struct PointRow {
  const char* object;  ///< "$interrupt"; of procedures "func"
  const char* field;
  PointKind kind;
  const char* arguments;  ///< what $arg[0], $arg[1] ... are; empty where there are none
  bool returns;           ///< $return is known
  const char* where;      ///< how many such points there are, for people
};

const PointRow& point_row(PointKind kind);
/// Null where no variable of that name has points.
const PointRow* find_point(const std::string& object, const std::string& field);
/// "any, branch, call": the fields of `object`; empty where it is none.
std::string point_fields(const std::string& object);

}  // namespace citcat::mdl
