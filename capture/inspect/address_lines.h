#pragma once
// Finds the channels of a processor's address and data lines: they count in code fetches, agree
// with the byte enables, show status above A15, and agree with where jumps and far pointers lead.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "capture/inspect/byte_enables.h"
#include "capture/inspect/channel_activity.h"
#include "capture/inspect/code_trace.h"
#include "capture/inspect/counting_lines.h"
#include "capture/inspect/unnamed_cycle.h"

namespace citcat {

/// What the lines of a bus are like.
struct LineShape {
  unsigned data_lines = 8;
  unsigned first = 0;        ///< the lowest address line that counts in fetches
  unsigned end = 20;         ///< behind the highest address line
  bool shares_data = true;   ///< the lowest address lines are the data lines
  bool has_status = true;    ///< A16-A19 show S3-S6 after the address
  bool has_low_line = true;  ///< A0; on a 386SX, BLE# is in its place

  bool is_wide() const { return data_lines == 16; }
};

struct FoundLine {
  std::size_t channel = 0;
  std::string reason;
};

struct AddressMatch {
  std::vector<std::optional<FoundLine>> lines;  ///< A0 and up; with shared lines, data as well
  std::vector<std::optional<FoundLine>> data;   ///< D0 and up, of lines of their own
  std::optional<FoundLine> low_enable, high_enable;
  std::size_t in_order = 0;           ///< so many of the lowest were seen counting
  std::vector<std::size_t> by_order;  ///< bits whose lines nothing distinguishes
  std::vector<std::string> doubts;
  std::string problem;  ///< what was not found; "" if nothing that is needed
};

/// `channels` are those that may be address or data lines.
AddressMatch find_address_lines(const ChannelActivity& activity,
                                const std::vector<UnnamedCycle>& cycles,
                                const std::vector<std::size_t>& channels, const LineShape& shape);

}  // namespace citcat
