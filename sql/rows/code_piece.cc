#include "sql/rows/code_piece.h"

#include "tools/analyses/instruction_table.h"

namespace citcat::sql {

const CodeText& CodePiece::text(std::uint32_t instruction) const {
  if (texts_.empty()) texts_.resize(count());
  std::unique_ptr<CodeText>& kept = texts_[instruction];
  if (kept == nullptr) {
    const auto key = tools::InstructionKey::of((*block_)[instruction]);
    kept = std::make_unique<CodeText>();
    kept->bytes = key.bytes_text();
    kept->text = key.text();
    kept->mnemonic = tools::mnemonic_of(kept->text);
  }
  return *kept;
}

}  // namespace citcat::sql
