#pragma once
// The process and the level in which something happened, and the names of processes, each kept
// once.

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tools/host/context.h"

namespace citcat::sql {

/// Numbers of a table of contexts.
using ContextNumber = std::uint32_t;

/// All contexts of a run. What it hands out stays valid as long as it lives.
class ContextTable {
 public:
  struct Entry {
    const std::string* process = nullptr;
    std::uint32_t level = 0;  ///< as tools::Context tells it
    /// A handler has been entered, and none of its instructions has completed yet.
    bool knows_level() const { return level <= tools::Context::kUserLevel; }
  };

  ContextNumber number(const std::string& process, std::uint32_t level) {
    const std::string* const name = &*names_.insert(process).first;
    const auto [at, is_new] = numbers_.try_emplace({name, level}, 0);
    if (is_new) {
      at->second = static_cast<ContextNumber>(entries_.size());
      entries_.push_back({name, level});
    }
    return at->second;
  }
  /// A name that stays where it is: the same for the same process.
  const std::string* name(const std::string& process) { return &*names_.insert(process).first; }
  const Entry& operator[](ContextNumber number) const { return entries_[number]; }
  std::size_t size() const { return entries_.size(); }

 private:
  std::set<std::string> names_;
  std::map<std::pair<const std::string*, std::uint32_t>, ContextNumber> numbers_;
  std::deque<Entry> entries_;
};

}  // namespace citcat::sql
