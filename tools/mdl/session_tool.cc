#include "tools/mdl/session_tool.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"

namespace citcat::mdl {

namespace {

using tools::MachineEvent;

class SessionTool final : public tools::Tool {
 public:
  explicit SessionTool(SessionMetrics& metrics) : metrics_(metrics) {}

  /// All that some metric may ask for: those that are going to come are not known.
  tools::Wants wants() const override {
    return {.executions = true, .references = true, .walks = true, .events = true};
  }
  void* code(const tools::StaticBlock& block) override { return metrics_.code(block); }
  void run(void* mine, const tools::Execution& execution, const tools::Context& context) override {
    metrics_.run(mine, execution, context);
  }
  void accesses(std::span<const tools::OtherAccess> all, const tools::Context& context) override {
    metrics_.accesses(all, context);
  }
  void event(const MachineEvent& event, const tools::Context& context) override {
    metrics_.event(event, context);
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<SessionTool>(metrics_); }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(tools::Report&) const override {}

 private:
  SessionMetrics& metrics_;
};

}  // namespace

void SessionMetrics::add(const MetricRequest& request, std::uint64_t position) {
  for (const Entry& e : entries_) {
    if (e.counts() && e.request.text == request.text) {
      throw UsageError(request.text + " counts already");
    }
  }
  auto run = std::make_unique<MdlRun>(library_, std::vector{request}, names_);
  if (run->wants().registers) {
    throw UsageError(request.text +
                     " reads memory, which is not possible in a session; use `analyze`");
  }
  entries_.push_back({request, position, ~std::uint64_t{0}, std::move(run), {}});
}

void SessionMetrics::remove(const std::string& request, std::uint64_t position) {
  bool removed = false;
  for (Entry& e : entries_) {
    if (!e.counts() || (e.request.text != request && e.request.metric != request)) continue;
    e.to = position;
    e.run->end();
    removed = true;
  }
  if (!removed) throw UsageError("no metric " + request + " counts");
  for (Piece& piece : pieces_) {
    std::erase_if(piece.mine, [](const auto& mine) { return !mine.first->counts(); });
  }
}

void SessionMetrics::report(tools::Report& report, std::uint64_t position) const {
  tools::Table& table = report.table("metrics", "Metrics", metric_columns());
  table.columns.push_back({"from", "from", ""});
  table.columns.push_back({"to", "to", ""});
  for (const Entry& e : entries_) {
    const std::size_t first = table.rows.size();
    e.run->report(table);
    for (std::size_t i = first; i < table.rows.size(); ++i) {
      auto& row = table.rows[i];
      row.resize(row.size() + 2);
      row[row.size() - 2] = e.from;
      row.back() = std::min(e.to, position);
    }
  }
}

void* SessionMetrics::code(const tools::StaticBlock& block) {
  Piece& piece = pieces_.emplace_back();
  piece.block = &block;
  return &piece;
}

void* SessionMetrics::piece_of(Piece& piece, Entry& entry) {
  const auto known = std::find_if(piece.mine.begin(), piece.mine.end(),
                                  [&](const auto& mine) { return mine.first == &entry; });
  if (known != piece.mine.end()) return known->second;
  return piece.mine.emplace_back(&entry, entry.run->code(*piece.block)).second;
}

void SessionMetrics::run(void* mine, const tools::Execution& execution,
                         const tools::Context& context) {
  for (Entry& e : entries_) {
    if (e.counts()) e.run->run(piece_of(*static_cast<Piece*>(mine), e), execution, context);
  }
}

void SessionMetrics::accesses(std::span<const tools::OtherAccess> all,
                              const tools::Context& context) {
  for (Entry& e : entries_) {
    if (e.counts()) e.run->accesses(all, context);
  }
}

void SessionMetrics::go_to(std::uint64_t to) {
  for (Held& held : std::exchange(held_, {})) {
    if (held.call) held.event.call = &*held.call;
    tell(held.event, held.context);
  }
  stop_ = to;
}

void SessionMetrics::event(const MachineEvent& event, const tools::Context& context) {
  if (event.position.instruction < stop_) return tell(event, context);
  held_.push_back({event, std::nullopt, context});
  if (event.call != nullptr) held_.back().call = *event.call;
}

void SessionMetrics::tell(const MachineEvent& event, const tools::Context& context) {
  for (Entry& e : entries_) {
    if (!e.counts()) continue;
    if (event.kind == MachineEvent::Kind::call_began) e.open_calls.insert(event.number);
    const bool ends = event.kind == MachineEvent::Kind::call_ended;
    if (ends && e.open_calls.erase(event.number) == 0) continue;
    const bool interrupts = event.kind == MachineEvent::Kind::delivered;
    if (interrupts && event.position.iteration != 0) e.run->unfinished(event.position);
    e.run->event(event, context);
  }
}

std::unique_ptr<tools::Tool> make_session_tool(SessionMetrics& metrics) {
  return std::make_unique<SessionTool>(metrics);
}

}  // namespace citcat::mdl
