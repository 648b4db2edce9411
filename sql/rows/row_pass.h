#pragma once
// One replay, observed by a collector of rows or counts.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "replay/run/replay_session.h"
#include "sql/rows/row_collector.h"
#include "tools/guest/guest_names.h"
#include "tools/host/analysis.h"
#include "tools/host/tool_host.h"

namespace citcat::sql {

struct CountNeeds;

class RowPass {
 public:
  /// `symbols`, `contexts` and `file` must outlive the pass.
  /// `isolated_tables`: HostOptions::isolated_tables.
  RowPass(const Symbols& symbols, ContextTable& contexts, RowFilter filter, bool isolated_tables)
      : names_(symbols),
        contexts_(contexts),
        filter_(std::move(filter)),
        isolated_tables_(isolated_tables) {}

  /// Makes the observer of the next replay: a collector of these rows, or of these counts, of the
  /// instructions [begin, end).
  Observer* collect(const RowNeeds& needs, std::uint64_t begin, std::uint64_t end);
  Observer* collect(const CountNeeds& needs, std::uint64_t begin, std::uint64_t end);

  ReplaySession& start(const RecordingFile& file, SessionOptions options) {
    return session_.emplace(file, host_.get(), std::move(options));
  }
  ReplaySession& session() { return *session_; }
  const RowFilter& filter() const { return filter_; }
  /// After the replay.
  void finish() { host_->finish(); }
  /// The replay is of no use any more, what it gave is.
  void drop_session() {
    host_.reset();
    session_.reset();
  }
  const tools::Tool& tool() const { return *analysis_->only_tool(); }
  const tools::ProcedureTable* procedures() const {
    return static_cast<const RowCollector&>(tool()).procedures();
  }

  RunRows rows;
  std::uint64_t from = 0, to = 0;  ///< what it is of
  bool ended = false;              ///< nothing follows what it received

 private:
  Observer* tell(std::unique_ptr<tools::Tool> tool, std::uint64_t begin, std::uint64_t end);

  tools::GuestNames names_;
  ContextTable& contexts_;
  const RowFilter filter_;
  const bool isolated_tables_;
  std::unique_ptr<tools::Analysis> analysis_;
  std::unique_ptr<tools::ToolHost> host_;
  std::optional<ReplaySession> session_;
};

}  // namespace citcat::sql
