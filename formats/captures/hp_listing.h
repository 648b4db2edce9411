#pragma once
// ASCII listings of the HP/Agilent 16500, 1660 and 1670 analysers: a directory with one text file
// for each label, the label's name in the first line and one value a line after it (HP 1670A user's
// guide, "Saving listings in ASCII format").

#include <memory>
#include <string>
#include <vector>

#include "formats/captures/samples.h"
#include "formats/io/input.h"

namespace citcat {

/// One label's file.
struct HpLabel {
  std::unique_ptr<InputStream> input;
};

/// Zips the files line by line. Every line is a sample; a label LABEL of values with n hexadecimal
/// digits becomes channels LABEL0, LABEL1, ... of 4n bits, a label of 0 and 1 one channel of its
/// name. FormatError with file and line for values that are not hexadecimal and for files that end
/// before the others.
std::unique_ptr<SampleSource> open_hp_listing(std::vector<HpLabel> labels);

/// Whether a file name in such a directory is that of a label rather than of line numbers or times.
bool is_hp_label_file(const std::string& name);

}  // namespace citcat
