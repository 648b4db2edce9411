#include "tools/processors/call_contexts.h"

namespace citcat::tools {

void CallContexts::called(std::uint8_t processor, LinearAddr from) {
  // Whoever calls deeper than that has left procedures differently from by returning.
  constexpr std::uint32_t kDeepest = 256;
  Context& now = now_[processor];
  if (ways_[now].depth == kDeepest) now = 0;
  const auto [known, is_new] =
      known_.emplace(std::pair(now, from), static_cast<Context>(ways_.size()));
  if (is_new) ways_.push_back({now, ways_[now].depth + 1, from});
  now = known->second;
}

void CallContexts::returned(std::uint8_t processor) {
  now_[processor] = ways_[now_[processor]].outer;
}

std::vector<LinearAddr> CallContexts::calls(Context context, std::size_t most) const {
  std::vector<LinearAddr> calls;
  for (; context != 0 && calls.size() < most; context = ways_[context].outer)
    calls.push_back(ways_[context].from);
  return calls;
}

}  // namespace citcat::tools
