#pragma once
// Binary exports of Saleae Logic 2, versions 0 and 1: one file for each channel, with the times at
// which it changed ("Binary Export Format - Logic 2", support.saleae.com).

#include <memory>
#include <string>
#include <vector>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// One channel's file. `name` becomes the channel's.
struct SaleaeChannel {
  std::string name;
  std::unique_ptr<InputStream> input;
};

/// Merges the files of all channels. Sample numbers are samples where the files give the rate
/// (version 1), else nanoseconds; they count from the earliest beginning. FormatError with file and
/// offset for analog files, times that fall, and files that end early.
std::unique_ptr<SampleSource> open_saleae(std::vector<SaleaeChannel> channels);

/// Whether these are the first bytes of such a file.
bool is_saleae(std::span<const std::uint8_t> prefix);

}  // namespace citcat
