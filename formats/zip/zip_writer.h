#pragma once
// Writes a ZIP file, one member after the other.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace citcat {

/// The file is open only while something is written to it, so that any number of them can be
/// written side by side. It is whole when finish() returns.
class ZipWriter {
 public:
  /// Makes the file, or empties it. Throws IoError, as all that write do.
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();
  ZipWriter(ZipWriter&&) noexcept;

  /// A new member, after the one that was written until now.
  void begin(const std::string& member);
  /// Appends to the member.
  void write(std::span<const std::uint8_t> bytes);
  /// Ends the last member, and writes the directory.
  void finish();

 private:
  struct State;
  void end_member();

  std::unique_ptr<State> state_;
};

}  // namespace citcat
