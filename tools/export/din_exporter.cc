// din and lackey: references as text, a line each. Formats and sources: docs/export/din.md,
// docs/export/lackey.md.

#include <charconv>
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
  void add(std::string_view text) { text_ += text; }
  void add_number(std::uint64_t number) { add_digits(number, 10, 1); }
  /// In hexadecimal, with so many digits at least.
  void add_address(LinearAddr address, std::size_t digits) {
    add_digits(address.value, 16, digits);
  }
  /// All lines of the step were added.
  void write() {
    if (text_.empty()) return;
    file().write(text_);
    text_.clear();
  }

 private:
  bool stands_alone() const override { return true; }
  void end() override { file().finish(); }

  void add_digits(std::uint64_t number, int base, std::size_t least) {
    char digits[20];
    const char* const end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
    const auto count = static_cast<std::size_t>(end - digits);
    if (count < least) text_.append(least - count, '0');
    text_.append(digits, count);
  }

  std::string text_;
};

/// Dinero's traditional input: 0 read, 1 write, 2 instruction fetch, and the address.
class DinTool final : public LineTool {
 public:
  using LineTool::LineTool;
  std::unique_ptr<Tool> part() const override { return std::make_unique<DinTool>(file().anew()); }

 private:
  void step(const Step& step) override {
    const auto line = [this](std::string_view label, LinearAddr address) {
      add(label);
      add_address(address, 1);
      add("\n");
    };
    if (!step.further) line("2 ", step.code->linear);
    for (const StepAccess& a : step.accesses) line(a.write ? "1 " : "0 ", a.linear);
    write();
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
    const auto line = [this](std::string_view label, LinearAddr address, std::uint32_t size) {
      add(label);
      add_address(address, 8);
      add(",");
      add_number(size);
      add("\n");
    };
    if (!step.further) line("I  ", step.code->linear, step.code->info.length);
    for (std::size_t i = 0; i < step.accesses.size(); ++i) {
      const StepAccess& a = step.accesses[i];
      const bool both = modifies(step.accesses, i);
      line(both ? " M " : a.write ? " S " : " L ", a.linear, a.size);
      if (both) ++i;
    }
    write();
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
