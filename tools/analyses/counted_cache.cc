#include "tools/analyses/counted_cache.h"

#include <string>

namespace citcat::tools {

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole != 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

namespace {

void report_sides(Report& out, const CachePart& part, const CacheFills& fills) {
  Report& code = out.group("code", "code");
  code.value("references", "references", part.code.references);
  code.value("fills", "lines filled", fills.code);
  code.value("percent", "fills of references", percent(fills.code, part.code.references), "%");
  Report& data = out.group("data", "data");
  data.value("references", "references", part.data.references);
  data.value("reads", "reads", part.data.reads);
  data.value("writes", "writes", part.data.writes);
  data.value("fills", "lines filled", fills.data);
  data.value("percent", "fills of references", percent(fills.data, part.data.references), "%");
}

}  // namespace

void CountedCache::report(Report& out, const CacheParts& parts, std::uint64_t flush_every) const {
  out.value("model", "model", std::string(descriptor().name));
  out.value("bytes", "size", std::uint64_t{descriptor().bytes}, "bytes");
  out.value("ways", "ways", std::uint64_t{descriptor().ways});
  out.value("line", "line", std::uint64_t{descriptor().line_bytes}, "bytes");
  if (flush_every != 0) out.value("flush", "emptied every", flush_every, "instructions");
  report_sides(out, parts[kRest] + parts[kPrograms], fills_[kRest] + fills_[kPrograms]);
  out.value("write_backs", "lines written back", write_backs_);
  out.value("snoop_write_backs", "written back for others", snoop_write_backs_);
  Report& user = out.group("user", "at level 3");
  user.value("instructions", "instructions", parts[kPrograms].instructions);
  report_sides(user, parts[kPrograms], fills_[kPrograms]);
}

}  // namespace citcat::tools
