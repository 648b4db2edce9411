#include "tools/plugin/isolated_tool.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"
#include "tools/plugin/plugin_server.h"
#include "tools/plugin/plugin_state.h"
#include "tools/plugin/report_codec.h"

namespace citcat::tools {

namespace {

/// States are sent in pieces, each well within a segment.
constexpr std::size_t kStatePiece = kSegmentBytes / 4;

template <class T>
std::span<const std::uint8_t> bytes_of(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}
template <class T>
std::span<const std::uint8_t> bytes_of(const T* first, std::size_t count) {
  return {reinterpret_cast<const std::uint8_t*>(first), count * sizeof(T)};
}

std::vector<MnemonicText> mnemonic_texts(const citcat_block& block) {
  std::vector<MnemonicText> texts(block.count);
  for (std::uint32_t i = 0; i < block.count; ++i) {
    const std::string_view text = block.instructions[i].mnemonic;
    CITCAT_ASSERT(text.size() < texts[i].size());
    std::copy(text.begin(), text.end(), texts[i].begin());
  }
  return texts;
}

}  // namespace

IsolatedTool::IsolatedTool(ToolOptions options, const PluginSetup& setup,
                           std::chrono::milliseconds limit)
    : options_(std::move(options)), setup_(setup), limit_(limit) {
  process_ =
      std::make_unique<PluginProcess>(options_.tool(), plugin_arguments(options_, setup), limit);
  attempt([&] { about_ = process_->description(); });
  execution_ = PluginExecution(about_.wants);
}

template <class Talk>
void IsolatedTool::attempt(Talk&& talk) const {
  if (!failure_.empty()) return;
  try {
    talk();
  } catch (const PluginFailure& e) {
    failure_ = e.what();
  }
}

void* IsolatedTool::code(const StaticBlock& block) {
  Code& code = *code_.emplace_back(std::make_unique<Code>(block, code_.size()));
  attempt([&] {
    const citcat_block& c = code.block.c();
    const auto mnemonics = mnemonic_texts(c);
    process_->send(PluginMessage::code, {bytes_of(c), bytes_of(c.instructions, c.count),
                                         bytes_of(mnemonics.data(), mnemonics.size())});
  });
  return &code;
}

void IsolatedTool::run(void* mine, const Execution& execution, const Context& context) {
  if (!failure_.empty()) return;
  const Code& code = *static_cast<Code*>(mine);
  citcat_execution c = execution_.make(execution, code.block.c(), context);
  c.block = reinterpret_cast<const citcat_block*>(code.number);
  attempt([&] {
    process_->send(PluginMessage::run, {bytes_of(c), bytes_of(c.addresses, c.address_count),
                                        bytes_of(c.references, c.reference_count)});
  });
}

void IsolatedTool::accesses(std::span<const OtherAccess> accesses, const Context& context) {
  if (!failure_.empty()) return;
  const citcat_accesses* const c = execution_.make(accesses, context);
  if (c == nullptr) return;
  attempt([&] {
    process_->send(PluginMessage::accesses, {bytes_of(*c), bytes_of(c->references, c->count)});
  });
}

void IsolatedTool::send_counts(PluginMessage kind, void* mine, std::uint64_t executions,
                               std::uint64_t further) {
  const CountedMessage m{static_cast<Code*>(mine)->number, executions, further};
  attempt([&] { process_->send(kind, {bytes_of(m)}); });
}

void IsolatedTool::counted(void* mine, std::uint64_t executions) {
  send_counts(PluginMessage::counted, mine, executions);
}

void IsolatedTool::iterated(void* mine, std::uint64_t begun, std::uint64_t further) {
  send_counts(PluginMessage::iterated, mine, begun, further);
}

void IsolatedTool::interrupted(void* mine, std::uint64_t times) {
  send_counts(PluginMessage::interrupted, mine, times);
}

void IsolatedTool::event(const MachineEvent& event, const Context& context) {
  if (!failure_.empty()) return;
  const auto c = plugin_event(event, context);
  if (c) attempt([&] { process_->send(PluginMessage::event, {bytes_of(*c)}); });
}

std::unique_ptr<Tool> IsolatedTool::part() const {
  return std::make_unique<IsolatedTool>(options_, setup_, limit_);
}

void IsolatedTool::send_state(std::span<const std::uint8_t> state, PluginMessage use) {
  attempt([&] {
    while (!state.empty()) {
      const auto piece = state.first(std::min(kStatePiece, state.size()));
      process_->send(PluginMessage::state, {piece});
      state = state.subspan(piece.size());
    }
    process_->send(use, {});
  });
}

void IsolatedTool::follow(Tool&& later) {
  auto& other = static_cast<IsolatedTool&>(later);
  std::vector<std::uint8_t> state;
  other.attempt([&] { state = other.process_->ask(PluginMessage::save, PluginAnswer::state); });
  if (failure_.empty()) failure_ = other.failure_;
  send_state(state, PluginMessage::follow);
}

void IsolatedTool::save(ByteWriter& out) const {
  PluginState state;
  attempt([&] { state.bytes = process_->ask(PluginMessage::save, PluginAnswer::state); });
  state.failure = failure_;
  state.write(out);
}

void IsolatedTool::load(ByteReader& in) {
  const PluginState state = PluginState::read(in);
  if (failure_.empty()) failure_ = state.failure;
  send_state(state.bytes, PluginMessage::load);
}

void IsolatedTool::report(Report& report) const {
  attempt([&] {
    const auto bytes = process_->ask(PluginMessage::report, PluginAnswer::report);
    try {
      ByteReader in(bytes, options_.tool());
      Report whole = read_report(in);
      in.expect_end("report");
      report = std::move(whole);
    } catch (const FormatError& e) {
      throw PluginFailure("--tool " + options_.tool() +
                          ": its process reports wrongly: " + e.what());
    }
    process_->finish();
  });
  if (!failure_.empty()) report.value("error", "Error", failure_);
}

}  // namespace citcat::tools
