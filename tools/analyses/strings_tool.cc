// strings: what REP does: how often, how many iterations, how many bytes. Formula and facts:
// docs/tools/strings.md.

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <string>

#include "tools/analyses/instruction_table.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// Counts for one kind of repeated instruction.
struct Repeats {
  std::uint64_t executions = 0, iterations = 0, bytes = 0, nothing = 0;
  std::array<std::uint64_t, 33> lengths{};  ///< executions, by bits of their iterations

  Repeats& operator+=(const Repeats& o) {
    executions += o.executions;
    iterations += o.iterations;
    bytes += o.bytes;
    nothing += o.nothing;
    for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] += o.lengths[i];
    return *this;
  }
};

class StringsTool final : public Tool {
 public:
  Wants wants() const override { return {.executions = true}; }

  void* code(const StaticBlock& block) override {
    const DecodedInstruction& info = block.front().info;
    if (!info.is_repeated()) return nullptr;
    const std::string text = InstructionKey::of(block.front()).text();
    std::string name = info.repeat == RepeatPrefix::repne ? "repne " : "rep ";
    if (info.is(Operation::cmps) || info.is(Operation::scas)) {
      name = info.repeat == RepeatPrefix::repne ? "repne " : "repe ";
    }
    pieces_.push_back({&kinds_[name + mnemonic_of(text)], info.operand_bytes});
    return &pieces_.back();
  }

  void run(void* mine, const Execution& execution, const Context&) override {
    if (mine == nullptr) return;
    auto& piece = *static_cast<Piece*>(mine);
    if (execution.first().iteration == 0) {
      close();
      open_ = piece.kind;
      ++open_->executions;
      if (execution.does_nothing()) {
        ++open_->nothing;
        open_length_ = 0;
        return;
      }
      open_length_ = 0;
    }
    const std::uint32_t n = execution.iterations();
    open_length_ += n;
    piece.kind->iterations += n;
    piece.kind->bytes += std::uint64_t{n} * piece.element;
  }

  std::unique_ptr<Tool> part() const override { return std::make_unique<StringsTool>(); }
  void follow(Tool&& later) override {
    // A part begins between instructions, and so between strings.
    close();
    for (const auto& [name, theirs] : static_cast<StringsTool&>(later).kinds()) {
      kinds_[name] += theirs;
    }
  }
  void save(ByteWriter& out) const override {
    const auto all = kinds();
    out.varint(all.size());
    for (const auto& [name, k] : all) {
      out.string(name);
      for (const std::uint64_t n : {k.executions, k.iterations, k.bytes, k.nothing}) {
        out.varint(n);
      }
      for (const std::uint64_t n : k.lengths) out.varint(n);
    }
  }
  void load(ByteReader& in) override {
    const std::uint64_t count = in.varint("kinds of strings");
    for (std::uint64_t i = 0; i < count; ++i) {
      Repeats& k = kinds_[in.string("name", 64)];
      for (std::uint64_t* n : {&k.executions, &k.iterations, &k.bytes, &k.nothing}) {
        *n = in.varint("count of a kind");
      }
      for (std::uint64_t& n : k.lengths) n = in.varint("count of a length");
    }
  }
  void report(Report& out) const override {
    const auto all = kinds();
    Repeats sum;
    Table& table = out.table("kinds", "by instruction",
                             {{"instruction", "instruction", ""},
                              {"executions", "executions", ""},
                              {"iterations", "iterations", ""},
                              {"bytes", "bytes of elements", ""},
                              {"nothing", "with a count of 0", ""}});
    for (const auto& [name, k] : all) {
      if (k.executions == 0) continue;
      sum += k;
      table.row({name, k.executions, k.iterations, k.bytes, k.nothing});
    }
    Table& lengths =
        out.table("lengths", "executions by their iterations",
                  {{"below", "below", "iterations"}, {"executions", "executions", ""}});
    for (std::size_t i = 0; i < sum.lengths.size(); ++i) {
      if (sum.lengths[i] != 0) lengths.row({std::uint64_t{1} << i, sum.lengths[i]});
    }
    out.value("executions", "executions", sum.executions);
    out.value("iterations", "iterations", sum.iterations);
    out.value("bytes", "bytes", sum.bytes, "bytes");
  }

 private:
  struct Piece {
    Repeats* kind;
    std::uint32_t element;
  };
  /// The string told last is over: how long it was is known.
  void close() {
    if (open_ == nullptr) return;
    ++open_->lengths[static_cast<std::size_t>(std::bit_width(open_length_))];
    open_ = nullptr;
  }
  std::map<std::string, Repeats> kinds() const {
    std::map<std::string, Repeats> all = kinds_;
    if (open_ == nullptr) return all;
    for (auto& [name, k] : all) {
      if (&kinds_.at(name) != open_) continue;
      ++k.lengths[static_cast<std::size_t>(std::bit_width(open_length_))];
    }
    return all;
  }

  std::map<std::string, Repeats> kinds_;
  std::deque<Piece> pieces_;
  Repeats* open_ = nullptr;  ///< of the string told last
  std::uint32_t open_length_ = 0;
};

std::unique_ptr<Tool> make_strings(ToolOptions&, const Setup&) {
  return std::make_unique<StringsTool>();
}

}  // namespace

extern const ToolRow kStringsTool{"strings",
                                  "Count what REP does: executions, iterations, bytes",
                                  "",
                                  "citcat analyze boot.citcat --tool strings",
                                  ToolRow::Merging::exact,
                                  make_strings};

}  // namespace citcat::tools
