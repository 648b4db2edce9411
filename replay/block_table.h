#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "replay/block_template.h"
#include "replay/zeroed_array.h"

namespace citcat {

/// The templates of all blocks that run unreported, and how often other blocks were met.
class BlockTable {
 public:
  /// A slot to look at before find(): the template met last at one of the addresses that share it.
  BlockTemplate*& recent(std::uint32_t linear) { return recent_[slot(linear)]; }

  BlockTemplate* find(const BlockKey& key) {
    if (!present_[slot(key.linear)]) return nullptr;
    const auto it = templates_.find(key);
    return it == templates_.end() ? nullptr : it->second.get();
  }

  /// Counts a meeting; true at number `hot`, and again later at ever longer intervals, so that code
  /// that cannot stay quiet is not translated for ever.
  bool heat(std::uint32_t linear, std::uint16_t hot) {
    Heat& h = heat_[slot(linear)];
    if (h.linear != linear) h = {linear, 0, 0};
    if (++h.met < std::uint32_t{hot} << h.tries) return false;
    h.met = 0;
    if (h.tries < kMaxTries) ++h.tries;
    return true;
  }

  /// The engine lost the translation of `block` when code inside it was translated again, and for
  /// no other reason: at its next meeting it is hot, and this meeting does not count as a try.
  void keep_hot(const BlockTemplate& block, std::uint16_t hot) {
    const auto is_newer = [&](std::uint32_t linear) {
      const BlockTemplate* const inside = recent(linear);
      return inside != nullptr && inside->key.linear == linear && inside->number > block.number;
    };
    bool lost = false;
    for (const BlockTemplate* part = &block; part != nullptr; part = part->next.get()) {
      for (const BlockTemplate::Instruction& instruction : part->instructions) {
        lost = lost || is_newer(part->key.linear + instruction.offset);
      }
    }
    Heat& h = heat_[slot(block.key.linear)];
    if (!lost || h.linear != block.key.linear || h.tries == 0) return;
    h.met = (std::uint32_t{hot} << --h.tries) - 1;
  }

  void insert(BlockTemplate block) {
    auto& held = templates_[block.key];
    if (held) forget(*held);
    for (BlockTemplate* b = &block; b != nullptr; b = b->next.get()) give_number(*b);
    held = std::make_unique<BlockTemplate>(std::move(block));
    present_[slot(held->key.linear)] = true;
  }
  void erase(const BlockKey& key) {
    const auto it = templates_.find(key);
    if (it == templates_.end()) return;
    forget(*it->second);
    templates_.erase(it);
  }
  /// Changes whenever a template may have ceased to exist.
  std::uint64_t gone() const { return gone_; }
  /// So many that the engine's code should be dropped with all of them.
  bool full() const { return templates_.size() >= kMaxTemplates; }
  void clear() {
    ++gone_;
    templates_.clear();
    free_places_.clear();
    places_ = 0;
    recent_.clear();
    present_.assign(present_.size(), false);
  }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 17;
  static constexpr std::size_t kMaxTemplates = std::size_t{1} << 16;
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
  static std::size_t slot(std::uint32_t linear) { return (linear ^ linear >> 17) & (kSlots - 1); }
  void give_number(BlockTemplate& block) {
    block.number = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (free_places_.empty()) {
      block.place = places_++;
      return;
    }
    block.place = free_places_.back();
    free_places_.pop_back();
  }
  void forget(const BlockTemplate& block) {
    ++gone_;
    for (const BlockTemplate* b = &block; b != nullptr; b = b->next.get()) {
      free_places_.push_back(b->place);
    }
    BlockTemplate*& r = recent(block.key.linear);
    if (r == &block) r = nullptr;
  }

  std::unordered_map<BlockKey, std::unique_ptr<BlockTemplate>, Hash> templates_;
  ZeroedArray<BlockTemplate*> recent_{kSlots};
  std::vector<bool> present_ = std::vector<bool>(kSlots);  ///< there was one since clear()
  ZeroedArray<Heat> heat_{kSlots};
  /// Of all tables: a sink may be told of the blocks of one machine after another's.
  static inline std::atomic<std::uint64_t> last_number_ = 0;
  std::vector<std::uint32_t> free_places_;  ///< of those below places_
  std::uint32_t places_ = 0;
  std::uint64_t gone_ = 0;
};

}  // namespace citcat
