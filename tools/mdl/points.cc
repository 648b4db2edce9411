#include "tools/mdl/points.h"

#include <algorithm>

#include "formats/io/error.h"

namespace citcat::mdl {

namespace {

using enum PointKind;

constexpr PointRow kPointRows[] = {
    {"func", "entry", procedure_entry, "its arguments", false, "procedures"},
    {"func", "return", procedure_return, "", true, "procedures"},
    {"func", "calls", procedure_call, "arguments of what is called", false, "calls of procedures"},
    {"func", "calls", call_returned, "", true, "calls of procedures"},
    {"$start", "entry", run_begins, "", false, "once for each thread"},
    {"$exit", "entry", run_ends, "", false, "once for each thread"},
    {"$block", "entry", block, "", false, "every block"},
    {"$instruction", "any", instruction, "", false, "every instruction"},
    {"$instruction", "branch", branch, "", false, "every conditional branch"},
    {"$instruction", "jump", jump, "", false, "every jump"},
    {"$instruction", "call", call, "", false, "every call"},
    {"$instruction", "return", return_, "", false, "every return"},
    {"$instruction", "string", string, "", false, "every string instruction"},
    {"$reference", "any", reference, "address, bytes", false, "every access to data"},
    {"$reference", "read", read, "address, bytes", false, "every read of data"},
    {"$reference", "write", write, "address, bytes", false, "every write of data"},
    {"$walk", "any", walk, "physical address, bytes", false, "every access of a page walk"},
    {"$interrupt", "entry", interrupt_entry, "vector", false, "every interrupt"},
    {"$interrupt", "return", interrupt_return, "vector", false, "every interrupt"},
    {"$exception", "entry", exception_entry, "vector, error code", false, "every exception"},
    {"$exception", "return", exception_return, "vector", false, "every exception"},
    {"$syscall", "entry", system_call_entry, "its arguments", false, "every system call"},
    {"$syscall", "return", system_call_return, "its arguments", true, "every system call"},
    {"$port", "read", port_read, "port, bytes, value", false, "every port access"},
    {"$port", "write", port_write, "port, bytes, value", false, "every port access"},
    {"$dma", "write", dma, "physical address, bytes", false, "every write of another bus master"},
    {"$switch", "entry", switch_, "CR3", false, "every load of CR3"},
    {"$halt", "entry", halt, "", false, "every halt"},
};

}  // namespace

const PointRow& point_row(PointKind kind) {
  const auto row = std::find_if(std::begin(kPointRows), std::end(kPointRows),
                                [&](const PointRow& r) { return r.kind == kind; });
  CITCAT_ASSERT(row != std::end(kPointRows));
  return *row;
}

const PointRow* find_point(const std::string& object, const std::string& field) {
  const auto row =
      std::find_if(std::begin(kPointRows), std::end(kPointRows),
                   [&](const PointRow& r) { return object == r.object && field == r.field; });
  return row != std::end(kPointRows) ? row : nullptr;
}

std::string point_fields(const std::string& object) {
  std::string fields;
  for (const PointRow& row : kPointRows) {
    if (object != row.object) continue;
    const std::string field = row.field;
    if (fields.ends_with(field)) continue;
    fields += (fields.empty() ? "" : ", ") + field;
  }
  return fields;
}

}  // namespace citcat::mdl
