// kt: the trace of the part of the run that a scope or windows select. The replay itself writes a
// trace of the whole run, which is faster. Format: docs/formats/kt.md.

#include <memory>
#include <string>

#include "formats/io/error.h"
#include "formats/kt/kt.h"
#include "formats/kt/trace_sink.h"
#include "replay/machine/machine.h"
#include "replay/trace/kt_sink.h"
#include "tools/host/tool.h"
#include "tools/host/tool_output.h"

namespace citcat::tools {
namespace {

/// An instruction of an execution as observers of a replay are told it.
ExecutedInstruction executed(const Execution& execution, std::uint32_t i) {
  const StaticInstruction& code = execution.block()[i];
  ExecutedInstruction e;
  e.info = &code.info;
  e.linear = code.linear;
  e.offset = code.offset;
  e.physical = code.physical;
  e.ea_count = execution.does_nothing() ? std::uint8_t{0} : code.info.ea_count;
  for (unsigned n = 0; n < e.ea_count; ++n) e.ea[n] = execution.address(i, n);
  return e;
}

class KtTool final : public Tool {
 public:
  KtTool(std::string path, const KtOptions& options, KtForm form)
      : path_(std::move(path)), options_(options), form_(form) {}

  Wants wants() const override {
    // Where pages lie is told to whoever wants each instruction alone.
    return {.executions = true, .registers = options_.process_records, .events = true};
  }
  void run(void*, const Execution& execution, const Context& context) override {
    const Position first = execution.first();
    KtSink& sink = sink_at(first, context);
    if (execution.block().front().info.is_repeated() && !execution.does_nothing()) {
      sink.iterations(executed(execution, 0), execution.iterations(), execution.step(), first);
      expected_ = {first.instruction, first.iteration + execution.iterations()};
      return;
    }
    for (std::uint32_t i = 0; i < execution.block().count(); ++i) {
      sink.instruction(executed(execution, i),
                       {first.instruction + i, i == 0 ? first.iteration : 0});
    }
    expected_ = {first.instruction + execution.block().count(), 0};
  }
  void event(const MachineEvent& event, const Context& context) override {
    switch (event.kind) {
      case MachineEvent::Kind::delivered:
        return sink_at(event.position, context).delivered(event.delivery, event.position);
      case MachineEvent::Kind::port_read:
        return sink_at(event.position, context)
            .io_read(event.port, event.size, static_cast<std::uint32_t>(event.value),
                     event.position);
      case MachineEvent::Kind::port_write:
        return sink_at(event.position, context)
            .io_write(event.port, event.size, static_cast<std::uint32_t>(event.value),
                      event.position);
      case MachineEvent::Kind::halted:
        return sink_at(event.position, context).halted(event.position);
      case MachineEvent::Kind::shutdown:
        return sink_at(event.position, context).shutdown(event.position);
      case MachineEvent::Kind::address_space:
        return sink_at(event.position, context).address_space(event.value, event.position);
      case MachineEvent::Kind::external_write:
        return sink_at(event.position, context)
            .external_write(event.physical, event.size, event.position);
      case MachineEvent::Kind::translation_dropped:
        return sink_at(event.position, context).translation_dropped(event.linear, event.position);
      case MachineEvent::Kind::mapping:
        return sink_at(event.position, context)
            .mapping(event.linear, event.physical, event.position);
      default:
        return;
    }
  }

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<KtTool>(path_, options_, form_);
  }
  bool merges() const override { return false; }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(Report& out) const override {
    // What is written is no part of what the tool holds, and is written once.
    auto& self = const_cast<KtTool&>(*this);
    self.open();
    self.writer_->flush();
    self.output_->finish();
    out.value("records", "records", writer_->instructions());
    out.value("bytes", "bytes of KT", writer_->size(), "bytes");
  }

 private:
  void open() {
    if (output_) return;
    if (path_.empty()) throw UsageError("kt needs to=FILE, or `replay -o FILE`");
    output_ = open_trace_sink(path_);
    writer_ = std::make_unique<KtWriter>(*output_, form_);
    sink_ = std::make_unique<KtSink>(*writer_, options_);
  }
  /// The sink, which knows where what is told is: after what was told last, or elsewhere.
  KtSink& sink_at(Position now, const Context& context) {
    open();
    const bool begins = expected_ == kNowhere;
    if (begins) sink_->watch(context.machine());
    // After an iteration of a REP the next one follows, or the next instruction.
    const bool follows = now == expected_ || (!begins && expected_.iteration != 0 &&
                                              now == Position{expected_.instruction + 1, 0});
    if (!follows) sink_->set_range(now, kEnd, begins && options_.begins_trace);
    expected_ = now;
    return *sink_;
  }

  static constexpr Position kNowhere{~std::uint64_t{0}, ~std::uint32_t{0}};
  static constexpr Position kEnd{~std::uint64_t{0}, 0};

  std::string path_;
  KtOptions options_;
  KtForm form_;
  std::unique_ptr<ByteSink> output_;
  std::unique_ptr<KtWriter> writer_;
  std::unique_ptr<KtSink> sink_;
  Position expected_ = kNowhere;  ///< of what is told next, if nothing is left out
};

std::unique_ptr<Tool> make_kt(ToolOptions& options, const Setup& setup) {
  KtOptions kt;
  kt.offsets = options.one_of("addresses", "linear", {"linear", "offset"}) == "offset";
  kt.process_records = options.flag("processes");
  return std::make_unique<KtTool>(tool_output(options, setup), kt, kt_form(setup.machine.model));
}

}  // namespace

extern const ToolRow kKtTool{"kt",
                             "Write KT, citcat's own trace format",
                             "to=FILE  output file\n"
                             "addresses=linear|offset  addresses of instructions (linear)\n"
                             "processes  write records of address spaces, too\n",
                             "citcat replay boot.citcat -o user.kt.zst --where level=3",
                             ToolRow::Merging::serial,
                             make_kt};

}  // namespace citcat::tools
