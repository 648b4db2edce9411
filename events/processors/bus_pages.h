#pragma once
// Pages of memory that a pass over a bus keeps something of.

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace citcat {

/// By their numbers. Transactions that follow each other are mostly of few pages: the last one is
/// found at once.
template <typename Page>
class BusPages {
 public:
  /// Null where it has not been made.
  Page* find(std::uint32_t number) const {
    if (number == number_ && page_ != nullptr) return page_;
    const auto its = pages_.find(number);
    if (its == pages_.end()) return nullptr;
    number_ = number;
    return page_ = its->second.get();
  }

  /// `fill` is called with one that has been made.
  template <typename Fill>
  Page& find_or_make(std::uint32_t number, Fill fill) {
    if (Page* const its = find(number)) return *its;
    std::unique_ptr<Page>& its = pages_[number];
    its = std::make_unique<Page>();
    fill(*its);
    number_ = number;
    return *(page_ = its.get());
  }
  Page& find_or_make(std::uint32_t number) {
    return find_or_make(number, [](Page&) {});
  }

 private:
  std::unordered_map<std::uint32_t, std::unique_ptr<Page>> pages_;
  mutable std::uint32_t number_ = 0;
  mutable Page* page_ = nullptr;  ///< the one found last
};

}  // namespace citcat
