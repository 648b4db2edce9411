#include "tools/plugin/plugin_state.h"

#include <algorithm>

namespace citcat::tools {

namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 32;
constexpr std::uint64_t kLongestFailure = 1 << 16;

}  // namespace

void PluginState::write(ByteWriter& out) const {
  out.string(failure);
  out.varint(bytes.size());
  out.bytes(bytes);
}

PluginState PluginState::read(ByteReader& in) {
  PluginState state;
  state.failure = in.string("failure of a tool", kLongestFailure);
  const std::size_t size =
      in.count("state of a tool", std::min<std::uint64_t>(kLargest, in.remaining()));
  const auto bytes = in.bytes(size, "state of a tool");
  state.bytes.assign(bytes.begin(), bytes.end());
  return state;
}

}  // namespace citcat::tools
