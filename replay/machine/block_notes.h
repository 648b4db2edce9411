#pragma once
// Notes that observers keep with a block.

#include <cstddef>
#include <memory>
#include <vector>

namespace citcat {

/// Base of what an observer keeps with a block (ExecutedBlock::note()).
class BlockNote {
 public:
  virtual ~BlockNote() = default;
};

/// The notes of one block: a slot for each observer of blocks.
class BlockNotes {
 public:
  BlockNotes() = default;
  /// Notes belong to one block: a copy of it has none.
  BlockNotes(const BlockNotes&) {}
  BlockNotes& operator=(const BlockNotes&) { return *this; }
  BlockNotes(BlockNotes&&) = default;
  BlockNotes& operator=(BlockNotes&&) = default;
  ~BlockNotes() = default;

  /// The note of the observer with that number.
  std::unique_ptr<BlockNote>& of(std::size_t observer) {
    return observer == 0 ? first_ : of_further(observer - 1);
  }
  const BlockNote* first() const { return first_.get(); }

 private:
  std::unique_ptr<BlockNote>& of_further(std::size_t i) {
    if (i >= further_.size()) further_.resize(i + 1);
    return further_[i];
  }

  std::unique_ptr<BlockNote> first_;  ///< nearly always the only one
  std::vector<std::unique_ptr<BlockNote>> further_;
};

}  // namespace citcat
