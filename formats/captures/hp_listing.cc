#include "formats/captures/hp_listing.h"

#include <algorithm>

#include "formats/captures/sample_buffer.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

/// A label's values.
struct Column {
  std::unique_ptr<LineReader> lines;
  std::string label;
  std::size_t first_channel = 0;
  std::size_t bits = 0;
  std::string pending;  ///< the first value, read to learn the width
};

class HpListingSource final : public SampleSource {
 public:
  explicit HpListingSource(std::vector<HpLabel> labels) {
    if (labels.empty()) throw UsageError("expected at least one label file");
    for (HpLabel& label : labels) open_label(std::move(label));
    info_.name = columns_[0].lines->name();
    info_.unit_bytes = (info_.channels.size() + 7) / 8;
    sample_.resize(info_.unit_bytes);
    buffer_ = SampleBuffer(info_.unit_bytes, false);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    while (!buffer_.full() && read_state()) buffer_.add(sample_);
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

 private:
  static bool next_value(LineReader& lines, std::string_view& value) {
    while (lines.next(value)) {
      value = trimmed(value);
      if (!value.empty()) return true;
    }
    return false;
  }

  void open_label(HpLabel label) {
    Column column;
    column.lines = std::make_unique<LineReader>(std::move(label.input));
    std::string_view line;
    if (!next_value(*column.lines, line))
      column.lines->fail("expected the name of a label, found an empty file");
    column.label = std::string(line);
    if (!next_value(*column.lines, line))
      column.lines->fail("expected a value after the name of the label, found none");
    column.pending = std::string(line);
    column.first_channel = info_.channels.size();
    column.bits = line == "0" || line == "1" ? 1 : 4 * line.size();
    if (column.bits > 64) column.lines->fail("expected values of up to 64 bits, found more");
    for (std::size_t bit = 0; bit < column.bits; ++bit)
      info_.channels.push_back(column.bits == 1 ? column.label
                                                : column.label + std::to_string(bit));
    if (info_.channels.size() > kMaxChannels) column.lines->fail("expected fewer channels");
    columns_.push_back(std::move(column));
  }

  /// One line of every file; false when all have ended.
  bool read_state() {
    std::size_t ended = 0;
    for (Column& column : columns_) {
      std::string_view line = column.pending;
      if (column.pending.empty() && !next_value(*column.lines, line)) {
        ++ended;
        continue;
      }
      std::uint64_t value = 0;
      if (!parse_hexadecimal(line, value) || (column.bits < 64 && (value >> column.bits) != 0))
        column.lines->fail("expected a hexadecimal value of " + std::to_string(column.bits) +
                           " bits, found '" + shown(line) + "'");
      for (std::size_t bit = 0; bit < column.bits; ++bit)
        set_level(sample_, column.first_channel + bit, ((value >> bit) & 1) != 0);
      column.pending.clear();
    }
    if (ended != 0 && ended != columns_.size())
      for (const Column& column : columns_) {
        std::string_view rest;
        if (!next_value(*column.lines, rest))
          column.lines->fail("expected as many values as the other labels have, found the end");
      }
    return ended == 0;
  }

  SampleInfo info_;
  std::vector<Column> columns_;
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, false};
};

}  // namespace

bool is_hp_label_file(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  static constexpr const char* kOthers[] = {"1st_line.txt",  "line_num.txt", "time_abs.txt",
                                            "state_abs.txt", "time_rel.txt", "state_rel.txt"};
  if (!lower.ends_with(".txt")) return false;
  return std::none_of(std::begin(kOthers), std::end(kOthers),
                      [&](const char* other) { return lower == other; });
}

std::unique_ptr<SampleSource> open_hp_listing(std::vector<HpLabel> labels) {
  return std::make_unique<HpListingSource>(std::move(labels));
}

}  // namespace citcat
