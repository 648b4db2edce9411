#pragma once
// Compares executed code with files that contain it. A wrongly captured bit of a code read may
// change nothing that the bus shows; a file that contains the code reveals it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/machine/known_code.h"
#include "replay/machine/observer.h"

namespace citcat {

/// A byte of an executed instruction that the file has otherwise, in one bit, while everything
/// around it is as the file has it.
struct CodeDoubt {
  LinearAddr linear;
  std::uint8_t executed = 0, known = 0;
  std::string file;
  std::uint64_t offset = 0;  ///< in it
};

struct CodeComparison {
  std::uint64_t bytes = 0;  ///< that were executed, each address once
  std::uint64_t equal = 0;
  std::uint64_t changed = 0;      ///< other ones, as what a kernel patches when it starts
  std::vector<CodeDoubt> doubts;  ///< by address
};

/// Compares each instruction that completes. Where an address holds several instructions one after
/// another, of several processes or patched, the first counts.
class CodeCheck final : public Observer {
 public:
  explicit CodeCheck(std::vector<KnownCode> known);

  Interest interest() const override { return {.code = Detail::counts}; }
  void instruction(const ExecutedInstruction& e, Position) override;
  void ran(std::span<const ExecutedBlock> blocks, Position, std::uint32_t) override;
  void counted(const ExecutedBlock& block, std::uint64_t) override { take(block); }

  CodeComparison result() const;

 private:
  struct Stretch {
    KnownCode code;
    std::vector<std::uint16_t> executed;  ///< each byte, or kUnseen
  };
  static constexpr std::uint16_t kUnseen = 0x100;

  void take(const ExecutedBlock& block);
  void note(LinearAddr linear, std::span<const std::uint8_t> bytes);
  Stretch* find(LinearAddr linear);
  static bool is_alone(const Stretch& stretch, std::size_t at);

  std::vector<Stretch> stretches_;  ///< by address
  Stretch* last_ = nullptr;
};

}  // namespace citcat
