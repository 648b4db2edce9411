#include "tools/plugin/plugin_instance.h"

#include <list>

#include "formats/io/error.h"
#include "tools/plugin/report_builder.h"

namespace citcat::tools {

namespace {

/// What no command line can have as a value.
const std::string kNotGiven(1, '\0');

/// The structure given to make(), and what it needs.
struct SetupCalls {
  citcat_tool_setup c{};
  ToolOptions* options = nullptr;
  std::list<std::string> values;  ///< handed out
  std::string refusal;            ///< of an option, or by fail()

  static SetupCalls& of(const citcat_tool_setup* c) {
    return *reinterpret_cast<SetupCalls*>(const_cast<citcat_tool_setup*>(c));
  }
};

const char* option(const citcat_tool_setup* c, const char* key) {
  SetupCalls& s = SetupCalls::of(c);
  if (key == nullptr) return nullptr;
  std::string value = s.options->text(key, kNotGiven);
  if (value == kNotGiven) return nullptr;
  return s.values.emplace_back(std::move(value)).c_str();
}

void fail(const citcat_tool_setup* c, const char* message) {
  SetupCalls::of(c).refusal = message ? message : "";
}

/// The structure given to save().
struct StateCalls {
  citcat_state c{};
  std::vector<std::uint8_t> bytes;
};

}  // namespace

PluginInstance::PluginInstance(std::shared_ptr<const PluginLibrary> library, ToolOptions& options,
                               const PluginSetup& setup)
    : library_(std::move(library)) {
  SetupCalls s;
  s.c.size = sizeof s.c;
  s.c.begins = setup.begins;
  s.c.from = setup.from;
  s.c.ram_bytes = setup.ram_bytes;
  s.c.option = option;
  s.c.fail = fail;
  s.options = &options;
  tool_ = calls().make(&s.c);
  const std::string where = "--tool " + library_->path() + ": ";
  if (tool_ == nullptr) {
    throw UsageError(where +
                     (s.refusal.empty() ? "the tool refuses, without a reason" : s.refusal));
  }
  try {
    options.finish();
  } catch (...) {
    calls().destroy(tool_);
    throw;
  }
}

PluginInstance::~PluginInstance() { calls().destroy(tool_); }

std::vector<std::uint8_t> PluginInstance::save() const {
  StateCalls s;
  s.c.size = sizeof s.c;
  s.c.write = [](citcat_state* c, const void* bytes, std::size_t count) {
    auto& into = reinterpret_cast<StateCalls*>(c)->bytes;
    const auto* const from = static_cast<const std::uint8_t*>(bytes);
    into.insert(into.end(), from, from + count);
  };
  calls().save(tool_, &s.c);
  return std::move(s.bytes);
}

void PluginInstance::load(std::span<const std::uint8_t> state) {
  if (calls().load(tool_, state.data(), state.size()) != 0) {
    throw FormatError(library_->path(), 0,
                      "expected a state that the tool saved, found " +
                          std::to_string(state.size()) + " bytes it refuses");
  }
}

Report PluginInstance::report() const {
  Report report;
  ReportBuilder builder(report);
  calls().report(tool_, builder.structure());
  if (const std::string mistake = builder.mistake(); !mistake.empty()) {
    throw Error("--tool " + library_->path() + ": its report: " + mistake);
  }
  return report;
}

}  // namespace citcat::tools
