#include <string>
#include <string_view>

#include "debugger/dap/message_reader.h"
#include "debugger/dap/request.h"
#include "formats/io/error.h"
#include "fuzz/fuzz_target.h"

// Bytes from an editor, or from anybody who connects: whole messages, and the body of one.
CITCAT_FUZZ_TARGET(dap) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto look_at = [](std::string_view message) {
    try {
      const citcat::dap::Request request = citcat::dap::parse_request(message);
      const citcat::dap::Arguments arguments(request.arguments);
      arguments.text("expression");
      arguments.flag("linesStartAt1");
      arguments.integer("threadId", 1, 1, 16);
      arguments.texts("symbols", 8);
      arguments.object("source").text("path");
      arguments.each("breakpoints", 8, [](const citcat::dap::Arguments& each) {
        citcat::dap::parse_reference(each.required_text("instructionReference"), "reference");
      });
      citcat::dap::framed(request.arguments);
    } catch (const citcat::Error&) {
    }
  };
  look_at(bytes);
  citcat::dap::MessageReader reader;
  reader.add(bytes);
  try {
    while (const auto message = reader.take()) look_at(*message);
  } catch (const citcat::Error&) {
  }
  return 0;
}
