#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat::tools {

/// A folder with files that are written side by side, any number of them, because none is held
/// open. The folder has its name when finish() returns; an unfinished one stays as `NAME.partial`.
class TraceFolder {
 public:
  /// `inner`: the folder within it that has the files. Throws IoError where something has the name,
  /// or that of the unfinished one.
  TraceFolder(std::string path, const std::string& inner);

  /// A new file, by the number that write() takes.
  std::size_t add(const std::string& name);
  /// The folder that has the files, for who writes one otherwise.
  const std::string& inner() const { return inner_; }
  /// Appends. Each call opens the file: for large pieces.
  void write(std::size_t file, std::span<const std::uint8_t> bytes) const;
  void finish() const;

 private:
  std::string path_, unfinished_, inner_;
  std::vector<std::string> files_;
};

}  // namespace citcat::tools
