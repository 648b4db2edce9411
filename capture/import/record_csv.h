#pragma once
// Bus records as CSV, for people and for monitors written as scripts
// (docs/formats/capture.md).

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/bus_record.h"
#include "capture/import/record_capture.h"

namespace citcat {

/// One file of such records.
std::unique_ptr<RecordFile> make_csv_record_file(std::unique_ptr<InputStream> input);

int detect_record_csv(const CaptureProbe& probe);
/// Each path is a segment.
std::unique_ptr<CaptureReader> open_record_csv(const std::vector<std::string>& paths,
                                               const CaptureOptions& options);

/// The beginning of the optional line before the header, which declares properties as " key=value".
inline constexpr std::string_view kRecordCsvDeclaration = "#citcat-capture 1";
/// Its declaration that rows have no data.
inline constexpr std::string_view kRecordCsvWithoutData = " data=none";
/// The header line of the CSV form, without its end.
std::string_view record_csv_header();
/// A transaction as a line of the CSV form, without its end; as two lines where it has more data
/// than a record holds. `line_bytes` of the machine's cache, 0 for none, says which part of a line
/// a burst is. Of a capture without data that column is empty; its declaration must say so.
std::string record_csv_lines(const BusTransaction& transaction, std::uint32_t line_bytes,
                             bool has_data = true);
/// Says how far the processor has come by the end; `index` follows that of the last transaction.
std::string record_csv_reached_line(std::uint64_t index, const Position& position);
/// The last line of a capture that was interrupted; `index` follows that of the last transaction.
std::string record_csv_cut_line(std::uint64_t index, Ending ending);

}  // namespace citcat
