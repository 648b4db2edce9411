// power: how many address and data lines change: the switching activity that a bus would have
// without caches. Formula and facts: docs/tools/power.md.

#include <bit>
#include <optional>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

/// One set of lines: how many changed with each value put on them.
class Lines {
 public:
  void put(std::uint64_t value) {
    if (!first_) first_ = value;
    if (last_) toggles_ += static_cast<std::uint64_t>(std::popcount(*last_ ^ value));
    last_ = value;
    ++values_;
  }
  void follow(const Lines& later) {
    if (!later.first_) return;
    if (last_) toggles_ += static_cast<std::uint64_t>(std::popcount(*last_ ^ *later.first_));
    if (!first_) first_ = later.first_;
    last_ = later.last_;
    values_ += later.values_;
    toggles_ += later.toggles_;
  }
  void save(ByteWriter& out) const {
    out.varint(values_);
    out.varint(toggles_);
    out.u64(first_.value_or(0));
    out.u64(last_.value_or(0));
  }
  void load(ByteReader& in) {
    values_ = in.varint("values");
    toggles_ = in.varint("changes");
    const std::uint64_t first = in.u64("first value"), last = in.u64("last value");
    if (values_ == 0) return;
    first_ = first;
    last_ = last;
  }
  std::uint64_t values() const { return values_; }
  std::uint64_t toggles() const { return toggles_; }

 private:
  std::optional<std::uint64_t> first_, last_;
  std::uint64_t values_ = 0, toggles_ = 0;
};

/// The code that differs in one bit from one number to the next.
std::uint64_t gray(std::uint64_t n) { return n ^ n >> 1; }

enum : std::size_t {
  kCodeAddress,
  kCodeGray,
  kCodeLines,
  kDataAddress,
  kDataGray,
  kDataLines,
  kLineSets
};
constexpr const char* kKeys[kLineSets] = {"code_address", "code_address_gray", "code",
                                          "data_address", "data_address_gray", "data"};
constexpr const char* kTitles[kLineSets] = {"addresses of code", "the same in Gray code", "code",
                                            "addresses of data", "the same in Gray code", "data"};

class PowerTool final : public Tool {
 public:
  Wants wants() const override { return {.references = true, .values = true}; }
  void run(void*, const Execution& execution, const Context&) override {
    std::size_t r = 0;
    const std::span<const Reference> references = execution.references();
    for (std::uint32_t i = 0; i < execution.block().count(); ++i) {
      if (execution.first().iteration == 0) fetch(execution.block()[i]);
      for (; r < references.size() && references[r].instruction == i; ++r) access(references[r]);
    }
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<PowerTool>(); }
  void follow(Tool&& tool) override {
    for (std::size_t s = 0; s < kLineSets; ++s) {
      sets_[s].follow(static_cast<const PowerTool&>(tool).sets_[s]);
    }
  }
  void save(ByteWriter& out) const override {
    for (const Lines& l : sets_) l.save(out);
  }
  void load(ByteReader& in) override {
    for (Lines& l : sets_) l.load(in);
  }
  void report(Report& out) const override {
    Table& table = out.table("lines", "lines that change",
                             {{"lines", "lines", ""},
                              {"what", "what", ""},
                              {"values", "values", ""},
                              {"changes", "changes", ""},
                              {"each", "of each value", ""}});
    for (std::size_t s = 0; s < kLineSets; ++s) {
      const Lines& l = sets_[s];
      const double each = l.values() != 0
                              ? static_cast<double>(l.toggles()) / static_cast<double>(l.values())
                              : 0.0;
      table.row({std::string(kKeys[s]), std::string(kTitles[s]), l.values(), l.toggles(), each});
    }
  }

 private:
  /// Its bytes, four at a time.
  void fetch(const StaticInstruction& i) {
    const std::uint32_t here = i.bytes_in_first_page();
    for (std::uint32_t b = 0; b < i.info.length; b += 4) {
      const std::uint64_t at = b < here ? i.physical.value + b : i.physical_rest.value + (b - here);
      std::uint64_t word = 0;
      for (std::uint32_t n = 0; n < 4 && b + n < i.info.length; ++n) {
        word |= std::uint64_t{i.info.bytes[b + n]} << 8 * n;
      }
      put_address(kCodeAddress, kCodeGray, at);
      sets_[kCodeLines].put(word);
    }
  }
  /// Values longer than 8 bytes are not given (Reference::value).
  void access(const Reference& r) {
    if (r.kind != AccessKind::data) return;
    put_address(kDataAddress, kDataGray, r.physical.value);
    if (r.size <= 8) sets_[kDataLines].put(r.value);
  }
  void put_address(std::size_t address, std::size_t in_gray, std::uint64_t at) {
    sets_[address].put(at);
    sets_[in_gray].put(gray(at));
  }

  std::array<Lines, kLineSets> sets_;
};

std::unique_ptr<Tool> make_power(ToolOptions&, const Setup&) {
  return std::make_unique<PowerTool>();
}

}  // namespace

extern const ToolRow kPowerTool{"power",
                                "Count the address and data lines that change",
                                "",
                                "citcat analyze boot.citcat --tool power",
                                ToolRow::Merging::exact,
                                make_power};

}  // namespace citcat::tools
