// din and lackey: references as text, a line each. Formats and sources: docs/export/din.md,
// docs/export/lackey.md.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {
namespace {

/// The eight hexadecimal digits of a number, as they lie in memory: all at once, because most of
/// what is written are addresses.
std::uint64_t eight_digits(std::uint32_t number) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t x = number;
  x = (x | x << 16) & 0x0000ffff0000ffff;
  x = (x | x << 8) & 0x00ff00ff00ff00ff;
  x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
  const std::uint64_t letters = (x + 6 * kEach) >> 4 & kEach;
  x += '0' * kEach + letters * ('a' - '0' - 10);
  return std::endian::native == std::endian::little ? __builtin_bswap64(x) : x;
}

/// One line, composed at `to`. Up to eight bytes after it are overwritten too.
class LineText {
 public:
  /// A label, two numbers of 64 bits, what is between them, and what is overwritten.
  static constexpr std::size_t kLongest = 48;

  explicit LineText(std::uint8_t* to) : begin_(reinterpret_cast<char*>(to)), end_(begin_) {}
  /// Text of a literal.
  template <std::size_t kSize>
  void add(const char (&text)[kSize]) {
    std::memcpy(end_, text, kSize - 1);
    end_ += kSize - 1;
  }
  void add_number(std::uint64_t number) {
    if (number < 10) {
      *end_++ = static_cast<char>('0' + number);
    } else {
      end_ = std::to_chars(end_, end_ + 20, number).ptr;
    }
  }
  /// In hexadecimal, with so many digits at least. `low`: those of its lower half.
  void add_address(LinearAddr address, unsigned least, std::uint64_t low) {
    const auto high = static_cast<std::uint32_t>(address.value >> 32);
    if (high != 0) [[unlikely]] {
      add_half(high, 1, eight_digits(high));
      least = 8;
    }
    add_half(address.low32(), least, low);
  }
  std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

 private:
  void add_half(std::uint32_t half, unsigned least, std::uint64_t text) {
    const auto digits = std::max(least, (static_cast<unsigned>(std::bit_width(half)) + 3) / 4);
    text = std::endian::native == std::endian::little ? text >> 8 * (8 - digits)
                                                      : text << 8 * (8 - digits);
    std::memcpy(end_, &text, sizeof text);
    end_ += digits;
  }

  char* begin_;
  char* end_;
};

/// Writes lines: one of each instruction that is fetched, then those of its accesses.
template <class Form>
class LineTool final : public StepTool {
 public:
  using StepTool::StepTool;
  std::unique_ptr<Tool> part() const override { return std::make_unique<LineTool>(file().anew()); }

 private:
  static std::uint8_t* add_fetch(const StepCode& code, std::uint8_t* to) {
    LineText text(to);
    Form::fetch(code, text);
    return to + text.size();
  }
  template <class Accesses>
  static std::uint8_t* add_accesses(const Accesses& accesses, std::uint8_t* to) {
    for (std::size_t i = 0; i < accesses.size();) {
      LineText text(to);
      i += Form::access(accesses, i, text);
      to += text.size();
    }
    return to;
  }

  std::uint64_t know(const StaticInstruction& code) override {
    return eight_digits(code.linear.low32());
  }
  void step(const Step& step) override {
    std::uint8_t* const begin = file().room((1 + step.accesses.size()) * LineText::kLongest);
    std::uint8_t* to = begin;
    if (!step.further) to = add_fetch(*step.code, to);
    to = add_accesses(step.accesses, to);
    file().wrote(static_cast<std::size_t>(to - begin));
  }
  void steps(const StepRun& run) override {
    std::uint8_t* const begin =
        file().room((run.code.size() + run.access_count) * LineText::kLongest);
    std::uint8_t* to = begin;
    run.for_each([&](const StepCode& code, const RunAccesses& accesses) {
      to = add_accesses(accesses, add_fetch(code, to));
    });
    file().wrote(static_cast<std::size_t>(to - begin));
  }
  bool needs_next() const override { return false; }
  bool stands_alone() const override { return true; }
  void end() override { file().finish(); }
};

/// Dinero's traditional input: 0 read, 1 write, 2 instruction fetch, and the address.
struct DinForm {
  [[gnu::always_inline]] static void line(const char (&label)[3], LinearAddr address,
                                          std::uint64_t low, LineText& out) {
    out.add(label);
    out.add_address(address, 1, low);
    out.add("\n");
  }
  static void fetch(const StepCode& code, LineText& out) {
    line("2 ", code.linear, code.known, out);
  }
  /// The line of access number `i`; returns of how many it is.
  template <class Accesses>
  static std::size_t access(const Accesses& accesses, std::size_t i, LineText& out) {
    const StepAccess a = accesses[i];
    line(a.write ? "1 " : "0 ", a.linear, eight_digits(a.linear.low32()), out);
    return 1;
  }
};

/// Valgrind's lackey --trace-mem=yes: `I  ADDR,SIZE`, ` L `, ` S `, ` M ` for what is read and
/// written. An iteration of REP is an instruction of its own to Valgrind, too.
struct LackeyForm {
  /// A read of what the next access writes.
  static bool modifies(const StepAccess& a, const StepAccess& next) {
    return !a.write && next.write && a.linear == next.linear && a.size == next.size;
  }
  [[gnu::always_inline]] static void line(const char (&label)[4], LinearAddr address,
                                          std::uint64_t low, std::uint32_t size, LineText& out) {
    out.add(label);
    out.add_address(address, 8, low);
    out.add(",");
    out.add_number(size);
    out.add("\n");
  }
  static void fetch(const StepCode& code, LineText& out) {
    line("I  ", code.linear, code.known, code.length, out);
  }
  template <class Accesses>
  static std::size_t access(const Accesses& accesses, std::size_t i, LineText& out) {
    const StepAccess a = accesses[i];
    const bool both = i + 1 < accesses.size() && modifies(a, accesses[i + 1]);
    line(both      ? " M "
         : a.write ? " S "
                   : " L ",
         a.linear, eight_digits(a.linear.low32()), a.size, out);
    return both ? 2 : 1;
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
                              make_din<LineTool<DinForm>>};

extern const ToolRow kLackeyTool{"lackey",
                                 "Write references in the form of Valgrind's lackey",
                                 "to=FILE  output file",
                                 "citcat replay boot.citcat -o boot.lackey",
                                 ToolRow::Merging::exact,
                                 make_din<LineTool<LackeyForm>>};

}  // namespace citcat::tools
