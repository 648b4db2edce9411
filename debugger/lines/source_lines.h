#pragma once
// Lines of source text: which line an instruction came from, and where the code of a line lies.
// They come from the DWARF in programs and kernels; without elfutils' libdw there are no lines.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/machine/address.h"

namespace citcat {

struct SourcePlace {
  std::string file;  ///< the path, as the compiler was given it
  int line = 0;      ///< from 1 on
  LinearAddr begin;  ///< of the row of the table of lines
  bool operator==(const SourcePlace&) const = default;
};

class SourceLines {
 public:
  SourceLines();
  ~SourceLines();
  SourceLines(SourceLines&&) noexcept;
  SourceLines& operator=(SourceLines&&) noexcept;

  /// Whether this build can read any.
  static bool are_built();
  /// Those of an ELF file. `base`: where its first page lay, for what was not linked to a fixed
  /// place, or was moved. False where the file holds none. Throws IoError for a file that cannot be
  /// read.
  bool add(const std::string& path, std::optional<LinearAddr> base);
  bool empty() const { return files_.empty(); }

  std::optional<SourcePlace> find(LinearAddr at) const;
  /// Where statements begin of the first line from `line` on, up to kReach further, of which there
  /// is code, in files that end like `file`: the whole path, or at least its name.
  static constexpr int kReach = 20;
  std::vector<SourcePlace> at_line(const std::string& file, int line) const;

 private:
  class File;
  std::vector<std::unique_ptr<File>> files_;
};

/// How many whole names at the end of two paths are the same; 0 where the last ones differ.
unsigned common_names(const std::string& path, const std::string& other);

}  // namespace citcat
