// Reports of tools in processes of their own on any bytes. What is read is written again as the
// same report, and can be shown in every form.

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"
#include "tools/host/report_renderers.h"
#include "tools/plugin/report_codec.h"

namespace {

std::vector<std::uint8_t> bytes_of(const citcat::tools::Report& report) {
  citcat::ByteWriter out;
  write_report(report, out);
  return {out.view().begin(), out.view().end()};
}

}  // namespace

CITCAT_FUZZ_TARGET(plugin_report) {
  using namespace citcat;
  try {
    ByteReader in({data, size}, "report");
    const tools::Report report = tools::read_report(in);
    const std::vector<std::uint8_t> written = bytes_of(report);
    ByteReader again(written, "report");
    CITCAT_ASSERT(bytes_of(tools::read_report(again)) == written);
    CITCAT_ASSERT(again.remaining() == 0);
    tools::report_json(report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    tools::report_text(report);
    tools::report_csv(report, "tool");
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
  return 0;
}
