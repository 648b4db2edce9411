#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "cli/console.h"
#include "cli/file_kind.h"
#include "cli/idtrace/idtrace_arguments.h"
#include "cli/kt_text.h"

namespace citcat {

/// What to print of an IDtrace file: entries of a `.trc`, blocks of a `.blk`, counts of a `.cnt`.
struct IdtraceView {
  std::string file;
  IdtraceArguments idtrace;
  std::uint64_t from = 0, to = std::numeric_limits<std::uint64_t>::max();  ///< [from, to) of these
  TextForm form = TextForm::text;

  bool wants(std::uint64_t number) const { return number >= from && number < to; }
};

/// Prints them. Throws UsageError where `from` lies after the last, FormatError where `kind` is
/// none of the three or the file is not what it says.
void print_idtrace_file(const IdtraceView& view, FileKind kind, const Console& console);

}  // namespace citcat
