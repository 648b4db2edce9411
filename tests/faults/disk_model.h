#pragma once
// What a disk may hold after the power was cut: of what was written and not flushed, anything.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace citcat::testing {

/// One line of what the shim wrote down (tests/tools/fault_shim.cc).
struct DiskStep {
  enum class Kind : std::uint8_t { write, truncate, flush, rename, flush_folder } kind{};
  std::string name, to;  ///< absolute; `to` of a rename
  std::uint64_t at = 0;  ///< of a write; the size of a truncate
  std::string bytes;
};

/// Reads a log. Names that are not absolute are below `folder`.
std::vector<DiskStep> read_disk_log(const std::string& log, const std::string& folder);

/// A disk on which steps are made, up to a moment at which the power goes.
///
/// Flushing a file makes its bytes safe, flushing the folder its name. Of everything else any part
/// may be there: writes in any order, each whole or the first half of it; names as they were after
/// any of the changes made so far (file systems keep those in order).
class DiskModel {
 public:
  /// A file that was there, and safe, before.
  void add(const std::string& name, const std::string& bytes);
  void make(const DiskStep& step);

  /// What the file of that name holds when the power goes now; nothing when there is none. What is
  /// there of what is not safe is drawn from `random`: `luck` of 100 changes.
  std::optional<std::string> after_cut(const std::string& name, std::mt19937& random,
                                       unsigned luck) const;

 private:
  struct File {
    std::string safe;
    std::vector<DiskStep> unsafe;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;
  static void apply(std::string& bytes, const DiskStep& step, bool half);
  std::shared_ptr<File>& file(const std::string& name);

  Names names_;
  std::vector<Names> possible_{
      {}};  ///< names that may be found: the safe ones, and after each change
};

}  // namespace citcat::testing
