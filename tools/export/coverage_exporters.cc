// drcov and lcov: which code ran, and how often. Formats and sources: docs/export/drcov.md,
// docs/export/lcov.md.

#include <fmt/format.h>

#include <deque>
#include <map>
#include <string>

#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/text/printable_text.h"
#include "replay/trace/kt_sink.h"
#include "tools/export/export_file.h"
#include "tools/host/own_side_file.h"
#include "tools/host/tool_output.h"
#include "x86/disassembler.h"

namespace citcat::tools {
namespace {

/// A piece of code of its own bytes: programs have different code at one address.
struct CodeKey {
  std::uint64_t address = 0;
  std::uint8_t bits = 32;
  std::string bytes;
  auto operator<=>(const CodeKey&) const = default;
};

constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 26;

/// How often each instruction ran. What is put together is a sum, so that parts of a run merge.
class CoveredCodeTool : public Tool {
 public:
  explicit CoveredCodeTool(ExportFile file) : file_(std::move(file)) {}

  Wants wants() const override { return {.counts = true}; }
  void* code(const StaticBlock& block) override {
    Block& known = blocks_.emplace_back();
    for (const StaticInstruction& i : block.instructions()) {
      const auto* const bytes = reinterpret_cast<const char*>(i.info.bytes.data());
      CodeKey key{i.linear.value, code_bits(i.info), std::string(bytes, i.info.length)};
      known.counts.push_back(&counts_[std::move(key)]);
    }
    return &known;
  }
  void run(void* mine, const Execution& execution, const Context&) override {
    if (execution.first().iteration == 0) counted(mine, 1);
  }
  void counted(void* mine, std::uint64_t executions) override {
    for (std::uint64_t* const count : static_cast<Block*>(mine)->counts) *count += executions;
  }
  void iterated(void* mine, std::uint64_t begun, std::uint64_t) override { counted(mine, begun); }

  void follow(Tool&& later) override {
    for (const auto& [key, count] : static_cast<CoveredCodeTool&>(later).counts_)
      counts_[key] += count;
  }
  void save(ByteWriter& out) const override {
    out.varint(counts_.size());
    for (const auto& [key, count] : counts_) {
      out.varint(key.address);
      out.u8(key.bits);
      out.string(key.bytes);
      out.varint(count);
    }
  }
  void load(ByteReader& in) override {
    const std::size_t size = in.count("pieces of code", kMaxKeys);
    for (std::size_t i = 0; i < size; ++i) {
      CodeKey key;
      key.address = in.varint("address");
      key.bits = in.u8("bits");
      key.bytes = in.string("bytes", 15);
      const std::uint64_t count = in.varint("executions");
      counts_[std::move(key)] += count;
    }
  }
  void report(Report& out) const override {
    std::uint64_t executed = 0, distinct = 0;
    for (const auto& [key, count] : counts_) {
      executed += count;
      if (count != 0) ++distinct;
    }
    auto& self = const_cast<CoveredCodeTool&>(*this);
    if (!written_) self.write(self.file_);
    self.written_ = true;
    out.value("fetched", "instructions fetched", executed);
    out.value("distinct", "distinct instructions", distinct);
  }

 protected:
  using Counts = std::map<CodeKey, std::uint64_t>;
  const Counts& counts() const { return counts_; }
  const ExportFile& file() const { return file_; }
  /// The whole file, and finishes it.
  virtual void write(ExportFile& file) = 0;

 private:
  struct Block {
    std::vector<std::uint64_t*> counts;
  };

  ExportFile file_;
  Counts counts_;
  std::deque<Block> blocks_;
  bool written_ = false;
};

/// Version 2 of the format, with a module for each 4 GiB of the linear address space in which code
/// ran: an entry says where it lies in its module with 32 bits.
class DrcovTool final : public CoveredCodeTool {
 public:
  using CoveredCodeTool::CoveredCodeTool;
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<DrcovTool>(ExportFile(file().path()));
  }

 private:
  struct Run {
    std::uint64_t begin = 0;
    std::uint32_t size = 0;
  };

  /// Stretches of code that ran, none of them longer than an entry can say.
  std::vector<Run> runs() const {
    std::vector<Run> found;
    for (const auto& [key, count] : counts()) {
      if (count == 0) continue;
      const auto size = static_cast<std::uint32_t>(key.bytes.size());
      const bool same = !found.empty() && found.back().begin == key.address;
      const bool joins = !found.empty() && found.back().begin + found.back().size == key.address &&
                         found.back().size + size <= 0xffff;
      if (joins) {
        found.back().size += size;
      } else if (same) {
        found.back().size = std::max(found.back().size, size);
      } else {
        found.push_back({key.address, size});
      }
    }
    return found;
  }

  void write(ExportFile& out) override {
    const std::vector<Run> blocks = runs();
    std::map<std::uint64_t, std::uint16_t> modules{{0, 0}};  // numbers, by upper half
    for (const Run& run : blocks) modules.try_emplace(run.begin >> 32);
    std::string table;
    std::uint16_t number = 0;
    for (auto& [upper, module] : modules) {
      module = number++;
      const std::uint64_t base = upper << 32;
      table += fmt::format("  {}, {:#010x}, {:#010x}, 0x00000000, memory\n", module, base,
                           base + 0xffffffff);
    }
    out.write(
        fmt::format("DRCOV VERSION: 2\nDRCOV FLAVOR: citcat\n"
                    "Module Table: version 2, count {}\n"
                    "Columns: id, base, end, entry, path\n"
                    "{}BB Table: {} bbs\n",
                    modules.size(), table, blocks.size()));
    ByteWriter entries;
    for (const Run& run : blocks) {
      entries.u32(static_cast<std::uint32_t>(run.begin));
      entries.u16(static_cast<std::uint16_t>(run.size));
      entries.u16(modules.at(run.begin >> 32));
    }
    out.write(entries.view());
    out.finish();
  }
};

/// There is no source, so a listing is made beside the file, a line for each instruction that ran.
class LcovTool final : public CoveredCodeTool {
 public:
  explicit LcovTool(ExportFile file) : CoveredCodeTool(std::move(file)) {
    require_place_beside(this->file().path(), "lcov");
    require_own_side_file(this->file().path(), listing_path());
    // The file names the listing in a line.
    if (this->file().path().find_first_of("\r\n") != std::string::npos) {
      throw UsageError("lcov: expected a name without a line end, found '" +
                       printable_text(this->file().path()) + "'");
    }
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<LcovTool>(ExportFile(file().path()));
  }

 private:
  std::string listing_path() const { return file().path() + ".asm"; }
  void write(ExportFile& out) override {
    ExportFile listing(listing_path());
    out.write(fmt::format("TN:\nSF:{}\n", listing_path()));
    std::uint64_t line = 0, hit = 0;
    for (const auto& [key, count] : counts()) {
      ++line;
      if (count != 0) ++hit;
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(key.bytes.data());
      const std::string text = Disassembler(key.bits).text({bytes, key.bytes.size()}, key.address);
      listing.write(fmt::format("{:08x}  {}\n", key.address, text));
      out.write(fmt::format("DA:{},{}\n", line, count));
    }
    out.write(fmt::format("LF:{}\nLH:{}\nend_of_record\n", line, hit));
    // First what the other names.
    listing.finish();
    out.finish();
  }
};

template <class T>
std::unique_ptr<Tool> make_coverage_exporter(ToolOptions& options, const Setup& setup) {
  return std::make_unique<T>(ExportFile(options, setup));
}

}  // namespace

extern const ToolRow kDrcovTool{"drcov",
                                "Write which code ran, for DynamoRIO's drcov readers",
                                "to=FILE  output file",
                                "citcat replay boot.citcat -o boot.drcov",
                                ToolRow::Merging::exact,
                                make_coverage_exporter<DrcovTool>};

extern const ToolRow kLcovTool{"lcov",
                               "Write how often each instruction ran, for genhtml",
                               "to=FILE  output file; a listing goes to FILE.asm",
                               "citcat replay boot.citcat -o boot.info",
                               ToolRow::Merging::exact,
                               make_coverage_exporter<LcovTool>};

}  // namespace citcat::tools
