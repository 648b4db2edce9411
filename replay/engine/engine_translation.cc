// How the engine asks its client about code that is about to be translated (docs/engine.md, "What
// the library never sees").

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "formats/io/error.h"
#include "replay/engine/engine.h"
#include "replay/engine/process_memory.h"
#include "replay/engine/unicorn_internal.h"

// The library's uc_ctl macros convert out-of-range numbers to an enumeration.
#pragma GCC diagnostic ignored "-Wconversion"

namespace citcat {

namespace {

/// The library's GTree, as its glib_compat declares it.
struct Tree {
  std::uintptr_t root, compare, free_key, free_value, user;
  std::uint32_t nodes;
  std::int32_t references;
};

struct FoundTree {
  std::size_t offset = 0;  ///< of the pointer to it in the library's state
  std::uintptr_t at = 0;
  Tree tree{};
};

/// Offset of the pointer to the tree of end addresses, once an engine has found it: it is the same
/// in all.
constexpr std::size_t kUnknown = ~std::size_t{0};
std::atomic<std::size_t> known_offset = kUnknown;

/// The tree that `state` refers to at `offset`, if it may be one without nodes.
std::optional<FoundTree> empty_tree_at(std::span<const char> state, std::size_t offset) {
  std::uintptr_t pointer = 0;
  std::memcpy(&pointer, &state[offset], sizeof pointer);
  if (pointer % alignof(Tree) != 0) return std::nullopt;
  const auto tree = copy_of<Tree>(pointer);
  if (!tree || tree->root != 0 || tree->nodes != 0 || tree->references != 1 || tree->compare == 0)
    return std::nullopt;
  return FoundTree{offset, pointer, *tree};
}

/// What `state` refers to that may be a tree without nodes.
std::vector<FoundTree> find_empty_trees(std::span<const char> state) {
  const std::size_t known = known_offset;
  if (known <= state.size() - sizeof(std::uintptr_t)) {
    if (const auto tree = empty_tree_at(state, known)) return {*tree};
  }
  const std::vector<HostMapping> maps = host_mappings(kLibraryData);
  std::vector<FoundTree> found;
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= state.size();
       at += sizeof(std::uintptr_t)) {
    std::uintptr_t pointer = 0;
    std::memcpy(&pointer, &state[at], sizeof pointer);
    if (!lies_in(maps, pointer, sizeof(Tree))) continue;
    if (const auto tree = empty_tree_at(state, at)) found.push_back(*tree);
  }
  return found;
}

/// The only one of `trees` that has got a node since; null where that is none, or several.
char* find_filled(const std::vector<FoundTree>& trees) {
  char* filled = nullptr;
  std::size_t offset = kUnknown;
  for (const FoundTree& before : trees) {
    const auto tree = copy_of<Tree>(before.at);
    if (!tree || tree->root == 0 || tree->nodes != 1 || tree->compare != before.tree.compare) {
      continue;
    }
    if (filled != nullptr) return nullptr;
    filled = reinterpret_cast<char*>(before.at);
    offset = before.offset;
  }
  if (filled != nullptr) known_offset = offset;
  return filled;
}

}  // namespace

// Before a block is translated, and again before each of its instructions, the library looks
// whether a run is to end at that address: in a tree, by a function that compares two addresses
// (translator_loop() and disas_insn(); GTree of its glib_compat). With another function there, and
// one address that is none in the tree, we are asked each time.
void Engine::watch_translations() {
  const std::vector<FoundTree> empty = find_empty_trees(library_state());
  std::uint64_t no_address = ~std::uint64_t{0};
  check(uc_ctl_set_exits(uc_, &no_address, 1), "set an end address");
  char* const tree = find_filled(empty);
  if (tree == nullptr) {
    throw InternalError("engine: Unicorn " + version() +
                        " does not keep its end addresses as version 2.1.1 does");
  }
  int (*const compare)(const void*, const void*, void*) = &Engine::compare_exits;
  const Engine* const self = this;
  std::memcpy(tree + offsetof(Tree, compare), &compare, sizeof compare);
  std::memcpy(tree + offsetof(Tree, user), &self, sizeof self);
  exits_ = tree + offsetof(Tree, root);
  std::memcpy(&exit_, exits_, sizeof exit_);
}

/// In place of the comparison of addresses: none is equal.
int Engine::compare_exits(const void* address, const void*, void* user) {
  std::uint64_t linear = 0;
  std::memcpy(&linear, address, sizeof linear);
  Engine& engine = *static_cast<Engine*>(user);
  engine.watch_translation(engine.reported(linear, true));
  return 1;
}

/// Whether watch_translation() is called. At the end of a run the tree has to be empty: code at the
/// addresses in it would be forgotten. What is translated after that all the same is reported.
void Engine::watch(bool on) {
  const std::uintptr_t root = on ? exit_ : 0;
  std::memcpy(exits_, &root, sizeof root);
}

/// Until the library has read the instruction: when it is asked about the next one, or has begun to
/// execute, it has.
void Engine::hide(LinearAddr linear) {
  guarded([&] {
    for (const PhysAddr at : client_.hides(linear)) {
      std::uint8_t* const page = host_page(at.page());
      if (page != nullptr && page[at.offset_in_page()] == kLock) {
        hidden_.push_back(page + at.offset_in_page());
      }
    }
  });
  put_in_hidden(kHarmless);
}

void Engine::show() {
  put_in_hidden(kLock);
  hidden_.clear();
}

/// `linear` is where the next block or instruction to be translated begins. Each block is asked
/// about once more than it has instructions; one that turns out too long for the library is begun
/// anew.
void Engine::watch_translation(LinearAddr linear) {
  const bool first = translating_ == Translating::beginning && linear == translating_at_;
  const std::uint32_t distance = linear.minus32(translating_at_);
  const bool further = translating_ == Translating::inside && distance != 0 && distance < 16;
  translating_at_ = linear;
  show();
  if (first || further) {
    translating_ = Translating::inside;
    hide(linear);
    return;
  }
  translating_ = Translating::beginning;
  guarded([&] { client_.on_translation(linear); });
}

}  // namespace citcat
