// ilp: how many instructions could run at once if nothing but data held them up. Formula and facts:
// docs/tools/ilp.md.

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <unordered_map>
#include <vector>

#include "formats/io/error.h"
#include "tools/analyses/instruction_table.h"
#include "tools/host/tool.h"
#include "x86/register_use.h"

namespace citcat::tools {
namespace {

class IlpTool final : public Tool {
 public:
  IlpTool(bool branches, std::uint64_t window) : branches_(branches), window_(window) {
    if (window_ != 0) ends_.resize(window_);
  }

  Wants wants() const override { return {.references = true}; }
  void* code(const StaticBlock& block) override {
    Piece& piece = pieces_.emplace_back();
    for (const StaticInstruction& i : block.instructions()) {
      piece.uses.push_back(
          register_use({i.info.bytes.data(), i.info.length}, segment_bits(i.info)));
      piece.conditional.push_back(i.info.kind == InstructionClass::jcc ||
                                  i.info.kind == InstructionClass::loop);
    }
    return &piece;
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    const auto& piece = *static_cast<const Piece*>(mine);
    const std::span<const Reference> references = execution.references();
    std::size_t r = 0;
    for (std::uint32_t i = 0; i < execution.block().count(); ++i) {
      const std::size_t first = r;
      while (r < references.size() && references[r].instruction == i) ++r;
      issue(piece.uses[i], piece.conditional[i], references.subspan(first, r - first), 0);
    }
    for (std::uint32_t n = 1; n < execution.iterations(); ++n) {
      issue(piece.uses[0], false, references, n * execution.step());
    }
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<IlpTool>(branches_, window_);
  }
  void follow(Tool&&) override { throw InternalError("ilp: a part cannot follow another"); }
  void save(ByteWriter&) const override { throw InternalError("ilp: has no parts"); }
  void load(ByteReader&) override { throw InternalError("ilp: has no parts"); }
  void report(Report& out) const override {
    out.value("issued", "instructions and iterations", issued_);
    out.value("cycles", "cycles", longest_);
    out.value("parallelism", "of these in a cycle",
              longest_ != 0 ? static_cast<double>(issued_) / static_cast<double>(longest_) : 0.0);
  }

 private:
  struct Piece {
    std::vector<RegisterUse> uses;
    std::vector<bool> conditional;
  };
  void issue(const RegisterUse& use, bool conditional, std::span<const Reference> references,
             std::uint32_t by) {
    std::uint64_t start = barrier_;
    if (window_ != 0) start = std::max(start, ends_[issued_ % window_]);
    for (std::uint64_t left = use.read; left != 0; left &= left - 1) {
      start = std::max(start, registers_[static_cast<std::size_t>(std::countr_zero(left))]);
    }
    for (const Reference& r : references) {
      if (r.kind != AccessKind::data || r.write) continue;
      each_dword(r, by, [&](std::uint64_t& there) { start = std::max(start, there); });
    }
    const std::uint64_t end = start + 1;
    for (std::uint64_t left = use.written; left != 0; left &= left - 1) {
      registers_[static_cast<std::size_t>(std::countr_zero(left))] = end;
    }
    for (const Reference& r : references) {
      if (r.kind != AccessKind::data || !r.write) continue;
      each_dword(r, by, [&](std::uint64_t& there) { there = end; });
    }
    if (conditional && branches_) barrier_ = std::max(barrier_, end);
    if (window_ != 0) ends_[issued_ % window_] = end;
    longest_ = std::max(longest_, end);
    ++issued_;
  }
  /// Calls f() with the time at which each dword that `r` touches is there.
  template <class F>
  void each_dword(const Reference& r, std::uint32_t by, F&& f) {
    const std::uint64_t begin = r.physical.plus32(by).value;
    for (std::uint64_t d = begin >> 2; d <= (begin + r.size - 1) >> 2; ++d) f(memory_[d]);
  }

  bool branches_;
  std::uint64_t window_;
  std::deque<Piece> pieces_;
  std::array<std::uint64_t, kUsedRegisters> registers_{};    ///< when each is there
  std::unordered_map<std::uint64_t, std::uint64_t> memory_;  ///< the same by dword
  std::vector<std::uint64_t> ends_;                          ///< of the last `window_` instructions
  std::uint64_t barrier_ = 0;                                ///< nothing begins before
  std::uint64_t longest_ = 0, issued_ = 0;
};

std::unique_ptr<Tool> make_ilp(ToolOptions& options, const Setup&) {
  const bool branches = options.flag("branches");
  return std::make_unique<IlpTool>(branches, options.number("window", 0, 0, 1u << 20));
}

}  // namespace

extern const ToolRow kIlpTool{
    "ilp",
    "Measure the parallelism that data dependences leave",
    "branches  begin only after all earlier conditional branches have finished\n"
    "window=N  begin only after the instruction N places before has finished (0: no window)\n",
    "citcat analyze boot.citcat --tool ilp:window=64",
    ToolRow::Merging::serial,
    make_ilp};

}  // namespace citcat::tools
