#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "formats/io/zeroed_array.h"
#include "replay/machine/block_template.h"

namespace citcat {

/// The templates of all code that was translated to run unreported since the engine last forgot all
/// code, and how often reported blocks were met. Translations refer to their templates, so that one
/// whose code has changed stays until then.
class BlockTable {
 public:
  /// The template made last for `key`, or null.
  BlockTemplate* find(const BlockKey& key) const {
    const auto it = templates_.find(key);
    return it == templates_.end() ? nullptr : it->second.get();
  }

  /// Counts a meeting; true at number `hot`, and again later at ever longer intervals, so that code
  /// that cannot stay quiet is not translated for ever.
  bool heat(std::uint32_t linear, std::uint16_t hot) {
    Heat& h = heat_[(linear ^ linear >> 17) & (kSlots - 1)];
    if (h.linear != linear) h = {linear, 0, 0};
    if (++h.met < std::uint32_t{hot} << h.tries) return false;
    h.met = 0;
    if (h.tries < kMaxTries) ++h.tries;
    return true;
  }

  BlockTemplate* insert(BlockTemplate block) {
    for (BlockTemplate* b = &block; b != nullptr; b = b->next.get()) b->comes_again = true;
    auto& held = templates_[block.key];
    if (held) replaced_.push_back(std::move(held));
    held = std::make_unique<BlockTemplate>(std::move(block));
    return held.get();
  }
  /// So many that the engine's code should be dropped with all of them.
  bool full() const { return templates_.size() + replaced_.size() >= kMaxTemplates; }
  /// The engine must have forgotten all code.
  void clear() {
    templates_.clear();
    replaced_.clear();
  }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 15;
  static constexpr std::size_t kMaxTemplates = std::size_t{1} << 17;
  static constexpr std::uint8_t kMaxTries = 14;
  struct Heat {
    std::uint32_t linear = 0;
    std::uint32_t met = 0;
    std::uint8_t tries = 0;
  };
  struct Hash {
    std::size_t operator()(const BlockKey& k) const {
      return std::hash<std::uint64_t>{}((std::uint64_t{k.linear} << 32 | k.frame) ^
                                        k.mode * 0x9e3779b97f4a7c15u);
    }
  };

  std::unordered_map<BlockKey, std::unique_ptr<BlockTemplate>, Hash> templates_;
  std::vector<std::unique_ptr<BlockTemplate>> replaced_;
  ZeroedArray<Heat> heat_{kSlots};
};

}  // namespace citcat
