#pragma once
// A slice as text and as JSON.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "events/names/symbols.h"
#include "events/recording.h"
#include "replay/slice/slice.h"

namespace citcat {

class SliceReport {
 public:
  /// All must outlive the report.
  SliceReport(const SliceQuery& query, const Slice& slice, const Recording& recording,
              const Symbols& symbols);

  nlohmann::ordered_json json() const;
  std::vector<std::string> lines() const;

 private:
  nlohmann::ordered_json step_json(const SliceStep& step) const;
  nlohmann::ordered_json input_json(const SliceInput& input) const;
  std::string step_text(const SliceStep& step) const;
  std::string memory_text(const SliceMemory& memory) const;
  std::vector<std::string> names(const PlaceSet& places,
                                 const std::vector<SliceMemory>& memory) const;
  std::string input_text(const SliceInput& input) const;
  std::vector<std::string> remarks() const;
  std::string undefined_flags() const;
  std::string unknown_writers() const;
  std::string digits(std::uint64_t number) const;
  std::string symbol_text(LinearAddr at) const;
  std::uint64_t shown_number(PhysAddr a) const { return a.value; }

  const SliceQuery& query_;
  const Slice& slice_;
  const Recording& recording_;
  const Symbols& symbols_;
  int address_digits_ = 8;
  NameWidth width_ = NameWidth::bits32;
};

}  // namespace citcat
