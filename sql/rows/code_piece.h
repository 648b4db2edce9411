#pragma once
// Keeps facts about a piece of code, so that the text of an instruction is made only once, and only
// if a query needs it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/host/tool.h"

namespace citcat::sql {

/// An instruction as text.
struct CodeText {
  std::string bytes;     ///< hexadecimal, without blanks
  std::string text;      ///< in Intel syntax
  std::string mnemonic;  ///< of that, without prefixes
};

/// Lives as long as the code that it is of.
class CodePiece {
 public:
  explicit CodePiece(const tools::StaticBlock& block) : block_(&block) {}

  const tools::StaticBlock& block() const { return *block_; }
  std::uint32_t count() const { return block_->count(); }
  bool repeats() const { return block_->front().info.is_repeated(); }
  const CodeText& text(std::uint32_t instruction) const;

  /// What the follower of calls keeps with it.
  void* follower = nullptr;
  /// How often it ran in each context, if executions are counted by context.
  std::vector<std::uint64_t> executions;
  std::uint64_t counted = 0;  ///< where they are counted without contexts

 private:
  const tools::StaticBlock* block_;
  mutable std::vector<std::unique_ptr<CodeText>> texts_;
};

}  // namespace citcat::sql
