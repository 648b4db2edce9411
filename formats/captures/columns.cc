#include "formats/captures/columns.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "formats/captures/sample_buffer.h"
#include "formats/captures/table_text.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

using Description = nlohmann::json;

constexpr unsigned kMostColumnBits = 64;

/// Members of a description, each of the kind that it must be.
class DescriptionReader {
 public:
  explicit DescriptionReader(const std::string& name) : name_(name) {}

  [[noreturn]] void fail(const std::string& message, std::uint64_t at = 0) const {
    throw FormatError(name_, at, message);
  }
  void allow(const Description& object, std::initializer_list<const char*> members) const {
    if (!object.is_object()) fail("expected an object in braces");
    for (const auto& [key, ignored] : object.items())
      if (std::none_of(members.begin(), members.end(),
                       [&, &key = key](const char* member) { return key == member; }))
        fail("unknown member '" + shown(key) + "'");
  }
  std::string text(const Description& object, const char* member,
                   const std::string& otherwise) const {
    if (!object.contains(member)) return otherwise;
    if (!object.at(member).is_string()) fail("expected '" + std::string(member) + "' to be text");
    return object.at(member).get<std::string>();
  }
  std::uint64_t number(const Description& object, const char* member, std::uint64_t otherwise,
                       std::uint64_t most) const {
    if (!object.contains(member)) return otherwise;
    if (!object.at(member).is_number_unsigned() || object.at(member).get<std::uint64_t>() > most)
      fail("expected '" + std::string(member) + "' to be a number up to " + std::to_string(most));
    return object.at(member).get<std::uint64_t>();
  }
  bool flag(const Description& object, const char* member) const {
    if (!object.contains(member)) return false;
    if (!object.at(member).is_boolean())
      fail("expected '" + std::string(member) + "' to be true or false");
    return object.at(member).get<bool>();
  }

 private:
  const std::string& name_;
};

TextColumn read_column(const DescriptionReader& reader, const Description& object) {
  reader.allow(object, {"name", "bits", "first_bit", "radix", "prefix", "high", "skip"});
  TextColumn column;
  column.skipped = reader.flag(object, "skip");
  column.name = reader.text(object, "name", "");
  if (column.name.empty() && !column.skipped) reader.fail("expected a column to have a 'name'");
  column.prefix = reader.text(object, "prefix", "");
  column.high = reader.text(object, "high", "");
  column.bits = static_cast<unsigned>(reader.number(object, "bits", 1, kMostColumnBits));
  column.first_bit = static_cast<unsigned>(reader.number(object, "first_bit", 0, kMaxChannels));
  column.radix =
      static_cast<unsigned>(reader.number(object, "radix", column.bits == 1 ? 2 : 16, 16));
  if (column.bits == 0) reader.fail("expected 'bits' to be more than 0");
  if (column.radix != 2 && column.radix != 8 && column.radix != 10 && column.radix != 16)
    reader.fail("expected 'radix' to be 2, 8, 10 or 16");
  if (!column.high.empty() && column.bits != 1)
    reader.fail("expected 'high' with a column of one bit only");
  return column;
}

/// A number in some radix, with or without 0x and h where it is 16; false for anything else.
bool parse_in_radix(std::string_view text, unsigned radix, std::uint64_t& value) {
  if (radix == 16) return parse_hexadecimal(text, value);
  if (radix == 10) return parse_decimal(text, value);
  if (text.empty() || text.size() > (radix == 2 ? 64u : 21u)) return false;
  value = 0;
  for (const char c : text) {
    if (c < '0' || c >= static_cast<char>('0' + radix)) return false;
    value = value * radix + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

class ColumnsSource final : public SampleSource {
 public:
  ColumnsSource(std::unique_ptr<InputStream> input, TextColumns columns)
      : lines_(std::move(input)), columns_(std::move(columns)) {
    info_.name = lines_.name();
    info_.sample_rate_hz = columns_.sample_rate_hz;
    for (const TextColumn& column : columns_.columns) {
      first_channel_.push_back(info_.channels.size());
      if (column.skipped) continue;
      for (unsigned bit = 0; bit < column.bits; ++bit)
        info_.channels.push_back(
            column.bits == 1 ? column.name : column.name + std::to_string(column.first_bit + bit));
    }
    if (info_.channels.empty() || info_.channels.size() > kMaxChannels)
      throw FormatError(info_.name, 0, "expected columns with 1 to 4096 bits in all");
    info_.unit_bytes = (info_.channels.size() + 7) / 8;
    sample_.resize(info_.unit_bytes);
    buffer_ = SampleBuffer(info_.unit_bytes, false);
  }

  const SampleInfo& info() const override { return info_; }

  bool next(SampleBlock& out) override {
    buffer_.clear();
    for (std::string_view line; !buffer_.full() && lines_.next(line);) {
      if (lines_.number() > columns_.skip_lines && !is_passed_over(line)) read_line(line);
    }
    if (buffer_.empty()) return false;
    out = buffer_.take();
    return true;
  }

 private:
  bool is_passed_over(std::string_view line) const {
    line = trimmed(line);
    return line.empty() || std::any_of(columns_.comments.begin(), columns_.comments.end(),
                                       [&](const std::string& c) { return line.starts_with(c); });
  }

  void read_line(std::string_view line) {
    const auto fields = split_row(line, columns_.separator);
    const std::size_t count = columns_.columns.size();
    if (fields.size() < count || (fields.size() > count && !columns_.more_columns))
      lines_.fail("expected " + std::to_string(count) + " columns, found " +
                  std::to_string(fields.size()));
    for (std::size_t i = 0; i < count; ++i)
      if (!columns_.columns[i].skipped) read_field(i, fields[i]);
    buffer_.add(sample_);
  }

  void read_field(std::size_t i, std::string_view field) {
    const TextColumn& column = columns_.columns[i];
    const bool prefixed = field.starts_with(column.prefix);
    const std::string_view digits = prefixed ? field.substr(column.prefix.size()) : field;
    std::uint64_t value = 0;
    bool good = prefixed;
    if (!column.high.empty()) {
      value = digits == column.high ? 1 : 0;
    } else {
      good = good && parse_in_radix(digits, column.radix, value) &&
             (column.bits == kMostColumnBits || value >> column.bits == 0);
    }
    if (!good)
      lines_.fail("expected a value of " + std::to_string(column.bits) + " bits in column " +
                  std::to_string(i + 1) + " ('" + shown(column.name) + "'), found '" +
                  shown(field) + "'");
    for (unsigned bit = 0; bit < column.bits; ++bit)
      set_level(sample_, first_channel_[i] + bit, (value >> bit & 1) != 0);
  }

  LineReader lines_;
  TextColumns columns_;
  SampleInfo info_;
  std::vector<std::size_t> first_channel_;
  std::vector<std::uint8_t> sample_;
  SampleBuffer buffer_{1, false};
};

}  // namespace

TextColumns parse_text_columns(const std::string& text, const std::string& name) {
  const DescriptionReader reader(name);
  Description object;
  try {
    object = Description::parse(text);
  } catch (const Description::parse_error& error) {
    reader.fail("expected JSON, found something else", error.byte);
  }
  reader.allow(object, {"comment", "columns", "comments", "skip_lines", "separator", "sample_rate",
                        "more_columns"});
  TextColumns found;
  if (!object.contains("columns") || !object.at("columns").is_array())
    reader.fail("expected 'columns' to be a list");
  for (const Description& column : object.at("columns"))
    found.columns.push_back(read_column(reader, column));
  if (found.columns.size() > kMaxChannels) reader.fail("expected fewer columns");
  if (object.contains("comments")) {
    if (!object.at("comments").is_array()) reader.fail("expected 'comments' to be a list");
    for (const Description& begin : object.at("comments")) {
      if (!begin.is_string() || begin.get_ref<const std::string&>().empty())
        reader.fail("expected 'comments' to list texts");
      found.comments.push_back(begin.get<std::string>());
    }
  }
  found.skip_lines = reader.number(object, "skip_lines", 0, ~std::uint64_t{0});
  const std::string separator = reader.text(object, "separator", " ");
  if (separator.size() != 1) reader.fail("expected 'separator' to be one character");
  found.separator = separator[0];
  found.sample_rate_hz = parse_sample_rate(reader.text(object, "sample_rate", "0"));
  found.more_columns = reader.flag(object, "more_columns");
  return found;
}

std::unique_ptr<SampleSource> open_text_columns(std::unique_ptr<InputStream> input,
                                                TextColumns columns) {
  return std::make_unique<ColumnsSource>(std::move(input), std::move(columns));
}

}  // namespace citcat
