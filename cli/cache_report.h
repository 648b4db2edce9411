#pragma once
// Prints the result of `verify --cache`.

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "replay/session/replayer.h"
#include "replay/verify/cache_check.h"

namespace citcat {

/// A comparison with the model of one cache.
struct CacheVerdict {
  std::string model;  ///< its name
  CacheTotals totals;
};

/// The names of all models.
std::vector<std::string> cache_names();
/// The model with this name; for an empty name, the model of the cache that `bus` declares. Null if
/// `bus` declares none, or one without a model. Throws UsageError for an unknown name.
const CacheDescriptor* choose_cache(const BusModel& bus, const std::string& name);

nlohmann::ordered_json cache_json(const std::optional<CacheVerdict>& verdict);
std::vector<std::string> cache_lines(const CacheVerdict& verdict);
/// The first disagreement as a divergence.
std::optional<Divergence> cache_divergence(const CacheVerdict& verdict);
/// `all` with what another recording's comparison says.
void add_to(std::optional<CacheVerdict>& all, const std::optional<CacheVerdict>& one);

}  // namespace citcat
