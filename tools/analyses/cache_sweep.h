#pragma once
// Caches of many shapes in one pass.

#include <memory>
#include <string>

#include "replay/verify/cache_model.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// The tool for `cache:sweep=WHAT`. `what`: of "bytes", "ways" and "line", with + between: what is
/// varied; of the rest all caches are as `base`. `most`: the largest size, in bytes. `walks`: those
/// that they hear. Throws UsageError for anything else.
std::unique_ptr<Tool> make_cache_sweep(const std::string& what, std::uint32_t most,
                                       const CacheDescriptor& base, std::optional<WalkPolicy> walks,
                                       std::uint64_t flush_every, const MachineFacts& machine);

}  // namespace citcat::tools
