#pragma once
// The parameters of a request: names and values, checked where they are read.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "events/machine/address.h"

namespace citcat::view {

class Query {
 public:
  using Values = std::map<std::string, std::string>;
  Query() = default;
  explicit Query(Values values) : values_(std::move(values)) {}

  const Values& values() const { return values_; }
  bool has(const std::string& name) const { return values_.contains(name); }
  /// Empty where it is not given.
  std::string text(const std::string& name) const;
  /// Throws UsageError where it is not given.
  std::string required(const std::string& name) const;
  /// Decimal, up to `most`; `usual` where it is not given. Throws UsageError for anything else.
  std::uint64_t number(const std::string& name, std::uint64_t usual, std::uint64_t most) const;
  /// Hexadecimal, with or without 0x. Throws UsageError for anything else, and where it is missing.
  std::uint64_t hexadecimal(const std::string& name) const;

 private:
  Values values_;
};

/// Hexadecimal digits, with or without 0x in front.
std::optional<std::uint64_t> parse_hex(std::string_view text);

}  // namespace citcat::view
