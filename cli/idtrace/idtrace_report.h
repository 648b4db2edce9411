#pragma once
// The contents of IDtrace's files as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/idtrace/idtrace_arguments.h"

namespace citcat {

/// For `count`: {"instructions","executions","iterations","mix","blocks"} of a profile or an
/// execution trace, with the `top` blocks; {"kind","entries",...} of other traces.
nlohmann::ordered_json idtrace_count_json(const std::string& path, const IdtraceArguments& files,
                                          std::size_t top);
/// For `rep`: {"repeats"}.
nlohmann::ordered_json idtrace_repeats_json(const std::string& path, const IdtraceArguments& files);
/// For `info`: the contents of a trace, a `.blk` or a `.cnt`.
nlohmann::ordered_json idtrace_trace_info(const std::string& path);
nlohmann::ordered_json idtrace_blocks_info(const std::string& path);
nlohmann::ordered_json idtrace_counts_info(const std::string& path);

}  // namespace citcat
