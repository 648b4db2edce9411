#pragma once
// Members of a ZIP file, read from beginning to end. Several analysers' session files are ZIP
// files.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace citcat {

class ZipReader {
 public:
  struct Entry {
    std::string name;
    std::uint64_t bytes = 0;  ///< uncompressed size as the directory claims: a hint, not a promise
  };

  /// Opens the file. IoError when it cannot be opened, FormatError when it is no ZIP file or its
  /// directory is damaged or cut off.
  explicit ZipReader(const std::string& path);
  /// Reads a ZIP file in memory. `bytes` must outlive the reader; `name` is for messages.
  ZipReader(std::string name, std::span<const std::uint8_t> bytes);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::string& name() const { return name_; }
  const std::vector<Entry>& entries() const { return entries_; }
  /// Position in entries() of the member with this name, or -1.
  int find(const std::string& member) const;

  /// Whole small member as text. FormatError when it is missing or longer than `max_bytes`.
  std::string read_text(const std::string& member, std::size_t max_bytes) const;

  /// One member being read from its beginning. Must not outlive the ZipReader.
  class Member {
   public:
    Member(const ZipReader& zip, std::size_t entry);
    ~Member();
    Member(Member&&) noexcept;
    Member& operator=(Member&&) noexcept;
    /// Fills `out` as far as the member goes; less than asked means its end. FormatError for
    /// damaged data, including a wrong checksum at its end.
    std::size_t read(std::span<std::uint8_t> out);
    /// The same without a copy where the member is in memory: as many bytes as `room` would hold,
    /// which may be there instead. Valid until the next call.
    std::span<const std::uint8_t> read_some(std::span<std::uint8_t> room);
    /// File and member, for messages.
    const std::string& name() const;
    std::uint64_t offset() const;  ///< bytes read so far

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  friend class Member;
  struct Archive;
  void load_directory();

  std::string name_;
  std::unique_ptr<Archive> archive_;
  std::vector<Entry> entries_;
};

}  // namespace citcat
