#pragma once
// Messages of the debug adapter protocol out of a stream of bytes: a header that gives the length,
// and JSON (microsoft.github.io/debug-adapter-protocol/overview, "Base Protocol").

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace citcat::dap {

class MessageReader {
 public:
  /// Longer headers and bodies are refused: no client sends them.
  static constexpr std::size_t kLongestHeader = 1024, kLongestBody = std::size_t{4} << 20;

  void add(std::string_view bytes) { buffer_ += bytes; }
  /// The body of the next message; nullopt where it has not come whole yet. Throws FormatError for
  /// anything that is not a message; no message can be found after that.
  std::optional<std::string> take();
  /// Bytes that wait, all of no message that take() gave.
  bool empty() const { return buffer_.empty(); }

 private:
  [[noreturn]] void refuse(const std::string& found) const;
  std::size_t length_in(std::string_view header) const;

  std::string buffer_;
  std::uint64_t taken_ = 0;  ///< bytes, of messages that were
};

}  // namespace citcat::dap
