#include "tools/plugin/report_codec.h"

#include <bit>
#include <type_traits>
#include <utility>

namespace citcat::tools {

namespace {

enum class EntryCode : std::uint8_t { end, value, table, group };
enum class CellCode : std::uint8_t { number, fraction, text };

constexpr std::uint64_t kLongestText = std::uint64_t{1} << 24;
constexpr std::uint64_t kMostColumns = 4096;
constexpr int kDeepest = 32;  ///< groups within groups

void write_cell(const Cell& cell, ByteWriter& out) {
  out.u8(static_cast<std::uint8_t>(cell.index()));
  if (const auto* number = std::get_if<std::uint64_t>(&cell)) out.varint(*number);
  if (const auto* fraction = std::get_if<double>(&cell))
    out.u64(std::bit_cast<std::uint64_t>(*fraction));
  if (const auto* text = std::get_if<std::string>(&cell)) out.string(*text);
}
static_assert(std::is_same_v<std::variant_alternative_t<0, Cell>, std::uint64_t>);
static_assert(std::is_same_v<std::variant_alternative_t<1, Cell>, double>);

Cell read_cell(ByteReader& in) {
  switch (static_cast<CellCode>(in.u8("kind of cell"))) {
    case CellCode::number:
      return in.varint("number");
    case CellCode::fraction:
      return std::bit_cast<double>(in.u64("fraction"));
    case CellCode::text:
      return in.string("text", kLongestText);
  }
  in.fail("expected a kind of cell, 0 to 2");
}

void write_table(const Table& table, ByteWriter& out) {
  out.string(table.key);
  out.string(table.title);
  out.varint(table.columns.size());
  for (const Column& c : table.columns) {
    out.string(c.key);
    out.string(c.title);
    out.string(c.unit);
  }
  out.varint(table.rows.size());
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) write_cell(cell, out);
  }
}

void read_table(ByteReader& in, Report& report) {
  std::string key = in.string("key of a table", kLongestText);
  std::string title = in.string("title of a table", kLongestText);
  std::vector<Column> columns(in.count("columns", kMostColumns));
  for (Column& c : columns) {
    c.key = in.string("key of a column", kLongestText);
    c.title = in.string("title of a column", kLongestText);
    c.unit = in.string("unit of a column", kLongestText);
  }
  const std::size_t width = columns.size();
  // A cell takes two bytes at least.
  const std::size_t rows = in.count("rows", width == 0 ? 0 : in.remaining() / (2 * width) + 1);
  Table& table = report.table(std::move(key), std::move(title), std::move(columns));
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<Cell> row;
    for (std::size_t c = 0; c < width; ++c) row.push_back(read_cell(in));
    table.row(std::move(row));
  }
}

void read_entries(ByteReader& in, Report& report, int depth) {
  if (depth > kDeepest) in.fail("expected groups at most 32 deep");
  for (;;) {
    switch (static_cast<EntryCode>(in.u8("kind of entry"))) {
      case EntryCode::end:
        return;
      case EntryCode::value: {
        std::string key = in.string("key", kLongestText);
        std::string title = in.string("title", kLongestText);
        std::string unit = in.string("unit", kLongestText);
        report.value(std::move(key), std::move(title), read_cell(in), std::move(unit));
        break;
      }
      case EntryCode::table:
        read_table(in, report);
        break;
      case EntryCode::group: {
        std::string key = in.string("key of a group", kLongestText);
        std::string title = in.string("title of a group", kLongestText);
        read_entries(in, report.group(std::move(key), std::move(title)), depth + 1);
        break;
      }
      default:
        in.fail("expected a kind of entry, 0 to 3");
    }
  }
}

}  // namespace

void write_report(const Report& report, ByteWriter& out) {
  for (const Report::Entry& entry : report.entries()) {
    if (const auto* value = std::get_if<Report::Value>(&entry)) {
      out.u8(static_cast<std::uint8_t>(EntryCode::value));
      out.string(value->key);
      out.string(value->title);
      out.string(value->unit);
      write_cell(value->cell, out);
    } else if (const auto* table = std::get_if<Table>(&entry)) {
      out.u8(static_cast<std::uint8_t>(EntryCode::table));
      write_table(*table, out);
    } else if (const auto* group = std::get_if<Report::Group>(&entry)) {
      out.u8(static_cast<std::uint8_t>(EntryCode::group));
      out.string(group->key);
      out.string(group->title);
      write_report(*group->report, out);
    }
  }
  out.u8(static_cast<std::uint8_t>(EntryCode::end));
}

Report read_report(ByteReader& in) {
  Report report;
  read_entries(in, report, 0);
  return report;
}

}  // namespace citcat::tools
