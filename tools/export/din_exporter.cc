// din and lackey: references as text, a line each. Formats and sources: docs/export/din.md,
// docs/export/lackey.md.

#include <fmt/format.h>

#include <iterator>
#include <string>

#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {
namespace {

/// Writes lines, each of a step alone.
class LineTool : public StepTool {
 public:
  using StepTool::StepTool;

 protected:
  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    text_.clear();
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    file().write(text_);
  }

 private:
  bool stands_alone() const override { return true; }
  void end() override { file().finish(); }

  std::string text_;
};

/// Dinero's traditional input: 0 read, 1 write, 2 instruction fetch, and the address.
class DinTool final : public LineTool {
 public:
  using LineTool::LineTool;
  std::unique_ptr<Tool> part() const override { return std::make_unique<DinTool>(file().anew()); }

 private:
  void step(const Step& step) override {
    if (!step.further) line("2 {:x}\n", step.code->linear.value);
    for (const StepAccess& a : step.accesses) {
      line("{} {:x}\n", a.write ? 1 : 0, a.linear.value);
    }
  }
};

/// Valgrind's lackey --trace-mem=yes: `I  ADDR,SIZE`, ` L `, ` S `, ` M ` for what is read and
/// written. An iteration of REP is an instruction of its own to Valgrind, too.
class LackeyTool final : public LineTool {
 public:
  using LineTool::LineTool;
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<LackeyTool>(file().anew());
  }

 private:
  /// A read of what the next access writes.
  static bool modifies(std::span<const StepAccess> accesses, std::size_t i) {
    return i + 1 < accesses.size() && !accesses[i].write && accesses[i + 1].write &&
           accesses[i].linear == accesses[i + 1].linear && accesses[i].size == accesses[i + 1].size;
  }

  void step(const Step& step) override {
    if (!step.further) {
      line("I  {:08x},{}\n", step.code->linear.value, +step.code->info.length);
    }
    for (std::size_t i = 0; i < step.accesses.size(); ++i) {
      const StepAccess& a = step.accesses[i];
      const bool both = modifies(step.accesses, i);
      line(" {} {:08x},{}\n", both ? 'M' : a.write ? 'S' : 'L', a.linear.value, a.size);
      if (both) ++i;
    }
  }
};

template <class T>
std::unique_ptr<Tool> make_din(ToolOptions& options, const Setup& setup) {
  return std::make_unique<T>(ExportFile(options, setup));
}

}  // namespace

extern const ToolRow kDinTool{"din",
                              "Write references for Dinero: read, write, fetch, and the address",
                              "to=FILE  output file",
                              "citcat replay boot.citcat -o boot.din",
                              ToolRow::Merging::exact,
                              make_din<DinTool>};

extern const ToolRow kLackeyTool{"lackey",
                                 "Write references in the form of Valgrind's lackey",
                                 "to=FILE  output file",
                                 "citcat replay boot.citcat -o boot.lackey",
                                 ToolRow::Merging::exact,
                                 make_din<LackeyTool>};

}  // namespace citcat::tools
