#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "formats/idtrace/trace_entry.h"
#include "formats/io/input.h"

namespace citcat {

/// Reads a `.trc` file, compressed or not, entry by entry. The first entry gives the kind of file.
class IdtraceReader {
 public:
  /// Throws FormatError where the file does not begin with an entry that one of the kinds begins
  /// with. An empty file is an execution trace in which nothing ran.
  explicit IdtraceReader(const std::string& path)
      : IdtraceReader(std::make_unique<InputStream>(path)) {}
  explicit IdtraceReader(std::unique_ptr<InputStream> input);

  IdtraceKind kind() const { return kind_; }
  /// False at the clean end. Throws FormatError for a tag that files of this kind do not have, a
  /// size that there is none of, a block's start that carries one, and an end within an entry.
  bool next(IdtraceEntry& out);
  /// The offset of the entry that next() reads next.
  std::uint64_t offset() const { return input_->offset(); }
  const std::string& name() const { return input_->name(); }
  /// The stream below.
  const InputStream& input() const { return *input_; }
  /// Throws FormatError at the place of the entry that next() gave last.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::unique_ptr<InputStream> input_;
  IdtraceKind kind_ = IdtraceKind::execution;
  std::uint64_t last_ = 0;  ///< offset of the last entry
};

/// The kind of trace that `prefix` begins, where all of it is whole entries of that kind that can
/// follow one another; nothing where it is something else. The last entry may be cut unless
/// `whole_file`.
std::optional<IdtraceKind> idtrace_kind_of(std::span<const std::uint8_t> prefix, bool whole_file);

}  // namespace citcat
