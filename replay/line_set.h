#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <unordered_map>

namespace citcat {

/// Numbers of 16-byte lines of memory: cheap to ask and to add to, where lines are near others.
class LineSet {
 public:
  static constexpr std::uint32_t kLineBytes = 16;
  static std::uint32_t line_of(std::uint32_t address) { return address / kLineBytes; }

  LineSet() = default;
  LineSet(const LineSet& other) : pages_(other.pages_) {}
  LineSet& operator=(const LineSet& other) {
    pages_ = other.pages_;
    recent_ = {};
    return *this;
  }

  void insert(std::uint32_t line) { page_of(line).set(line % kLines); }
  void erase(std::uint32_t line) {
    if (contains(line)) page_of(line).reset(line % kLines);
  }
  bool contains(std::uint32_t line) const {
    const Recent& recent = recent_[line / kLines % kRecent];
    if (recent.lines != nullptr && recent.page == line / kLines)
      return recent.lines->test(line % kLines);
    const auto page = pages_.find(line / kLines);
    return page != pages_.end() && page->second.test(line % kLines);
  }

 private:
  static constexpr std::uint32_t kLines = 4096 / kLineBytes, kRecent = 64;
  using Lines = std::bitset<kLines>;
  struct Recent {
    std::uint32_t page = 0;
    Lines* lines = nullptr;
  };

  Lines& page_of(std::uint32_t line) {
    Recent& recent = recent_[line / kLines % kRecent];
    if (recent.lines == nullptr || recent.page != line / kLines) {
      recent = {line / kLines, &pages_[line / kLines]};  // elements of a map stay where they are
    }
    return *recent.lines;
  }

  std::unordered_map<std::uint32_t, Lines> pages_;
  std::array<Recent, kRecent> recent_{};
};

}  // namespace citcat
