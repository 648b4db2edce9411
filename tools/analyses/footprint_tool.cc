// footprint: how much memory the run touches, byte by byte: code, bytes read, bytes written.
// Formula and facts: docs/tools/footprint.md.

#include <array>
#include <deque>

#include "tools/analyses/frame_marks.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

constexpr const char* kFootprintKinds[] = {"code", "read", "written", "tables"};
enum : std::size_t { kCodeTouched, kReadTouched, kWrittenTouched, kTablesTouched, kKindCount };

class FootprintTool final : public Tool {
 public:
  Wants wants() const override { return {.references = true, .walks = true}; }

  void* code(const StaticBlock& block) override { return &pieces_.emplace_back(Piece{&block}); }
  void run(void* mine, const Execution& execution, const Context&) override {
    auto& piece = *static_cast<Piece*>(mine);
    if (!piece.marked) mark_code(piece);
    for_each_access(execution, [&](const Reference& r) { mark(r); });
  }
  void accesses(std::span<const OtherAccess> accesses, const Context&) override {
    for (const OtherAccess& a : accesses) {
      if (a.code) {
        marks_[kCodeTouched].mark(a.physical, a.size);
      } else {
        mark(a);
      }
    }
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<FootprintTool>(); }
  void follow(Tool&& tool) override {
    const auto& later = static_cast<const FootprintTool&>(tool);
    for (std::size_t k = 0; k < kKindCount; ++k) marks_[k].add(later.marks_[k]);
  }
  void save(ByteWriter& out) const override {
    for (const FrameMarks& m : marks_) m.save(out);
  }
  void load(ByteReader& in) override {
    for (FrameMarks& m : marks_) m.load(in);
  }
  void report(Report& out) const override {
    constexpr std::uint32_t kBlocks[] = {1, 16, 32, 64, kPageSize};
    Table& table = out.table("touched", "different blocks of physical memory",
                             {{"what", "what", ""},
                              {"bytes", "bytes", ""},
                              {"lines_16", "of 16 bytes", ""},
                              {"lines_32", "of 32 bytes", ""},
                              {"lines_64", "of 64 bytes", ""},
                              {"pages", "of 4 KiB", ""}});
    const auto row = [&](const char* name, const FrameMarks& marks) {
      std::vector<Cell> cells{std::string(name)};
      for (const std::uint32_t bytes : kBlocks) cells.push_back(marks.count(bytes));
      table.row(std::move(cells));
    };
    FrameMarks data, all;
    for (std::size_t k = 0; k < kKindCount; ++k) {
      row(kFootprintKinds[k], marks_[k]);
      if (k == kReadTouched || k == kWrittenTouched) data.add(marks_[k]);
      all.add(marks_[k]);
    }
    row("data", data);
    row("all", all);
  }

 private:
  struct Piece {
    const StaticBlock* block;
    bool marked = false;
  };
  void mark_code(Piece& piece) {
    piece.marked = true;
    for (const StaticInstruction& i : piece.block->instructions()) {
      const std::uint32_t here = i.bytes_in_first_page();
      marks_[kCodeTouched].mark(i.physical, here);
      if (here < i.info.length) marks_[kCodeTouched].mark(i.physical_rest, i.info.length - here);
    }
  }
  void mark(const Reference& r) {
    const std::size_t kind = r.kind != AccessKind::data ? kTablesTouched
                             : r.write                  ? kWrittenTouched
                                                        : kReadTouched;
    marks_[kind].mark(r.physical, r.size);
  }

  std::array<FrameMarks, kKindCount> marks_;
  std::deque<Piece> pieces_;
};

std::unique_ptr<Tool> make_footprint(ToolOptions&, const Setup&) {
  return std::make_unique<FootprintTool>();
}

}  // namespace

extern const ToolRow kFootprintTool{"footprint",
                                    "Count the bytes, lines and pages that are touched",
                                    "",
                                    "citcat analyze boot.citcat --tool footprint --where level=3",
                                    ToolRow::Merging::exact,
                                    make_footprint};

}  // namespace citcat::tools
