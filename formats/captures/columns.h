#pragma once
// Text of home-made sniffers, a line for each sample, read by a small description of its columns.
// See docs/formats/columns.md.

#include <memory>
#include <string>
#include <vector>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// What a column holds.
struct TextColumn {
  std::string name;         ///< of the channel, or the stem of its channels: A, for A0, A1, ...
  std::string prefix = {};  ///< text before the value that is left out: "A="
  std::string high = {};    ///< of a single level: the word that stands for high, where it is not 1
  unsigned bits = 1;
  unsigned first_bit = 0;  ///< number of the lowest channel
  unsigned radix = 2;      ///< 2, 8, 10 or 16
  bool skipped = false;
};

struct TextColumns {
  std::vector<TextColumn> columns;
  std::vector<std::string> comments;  ///< lines that begin with these are passed over
  std::uint64_t skip_lines = 0;       ///< at the beginning
  char separator = ' ';               ///< a blank: any number of blanks
  double sample_rate_hz = 0;
  bool more_columns = false;  ///< what is after the last column is passed over
};

/// Reads a description, JSON. FormatError naming `name` if it is not a description.
TextColumns parse_text_columns(const std::string& text, const std::string& name);

std::unique_ptr<SampleSource> open_text_columns(std::unique_ptr<InputStream> input,
                                                TextColumns columns);

}  // namespace citcat
