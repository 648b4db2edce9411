#include "sql/rows/count_collector.h"

#include <algorithm>

namespace citcat::sql {

namespace {

constexpr std::uint32_t kSmallSizes = 17, kClasses = 3, kDirections = 2;

std::size_t small_index(std::uint16_t size, AccessClass kind, bool write) {
  return (size * kClasses + static_cast<std::size_t>(kind)) * kDirections + (write ? 1 : 0);
}

}  // namespace

CountCollector::CountCollector(const CountNeeds& needs, const RowFilter& filter,
                               const tools::NameSource& names, ContextTable& contexts)
    : needs_(needs),
      filter_(filter),
      names_(names),
      contexts_(contexts),
      small_(std::size_t{kSmallSizes} * kClasses * kDirections) {}

std::unique_ptr<tools::Tool> CountCollector::part() const {
  return std::make_unique<CountCollector>(needs_, filter_, names_, contexts_);
}

tools::Wants CountCollector::wants() const {
  tools::Wants wants;
  if (!needs_.instructions) {
    wants.references = wants.events = true;
  } else if (counts_plainly()) {
    wants.counts = true;
  } else {
    wants.executions = wants.events = true;
    wants.passes = !needs_.code;
  }
  return wants;
}

void* CountCollector::code(const tools::StaticBlock& block) { return &pieces_.emplace_back(block); }

void CountCollector::look_at(const tools::Context& context) {
  if (!is_stale_ && context.level() == level_) [[likely]]
    return;
  // Small accesses are those of one context.
  for (std::uint16_t size = 0; size < kSmallSizes; ++size) {
    for (const bool write : {false, true}) {
      for (const auto kind : {AccessClass::data, AccessClass::system, AccessClass::delivery}) {
        std::uint64_t& count = small_[small_index(size, kind, write)];
        if (count != 0) accesses_[{context_, size, kind, write}] += count;
        count = 0;
      }
    }
  }
  is_stale_ = false;
  level_ = context.level();
  context_ = contexts_.number(names_.process(context), level_);
  is_wanted_ = filter_.has(contexts_[context_]);
  if (by_context_.size() <= context_) by_context_.resize(context_ + 1);
}

void CountCollector::add(std::uint64_t instructions) { by_context_[context_] += instructions; }

void CountCollector::run(void* mine, const tools::Execution& execution,
                         const tools::Context& context) {
  look_at(context);
  CodePiece& code = *static_cast<CodePiece*>(mine);
  if (!needs_.instructions) {
    if (is_wanted_) add_accesses(execution);
    return;
  }
  if (code.repeats()) {
    repeats_ = is_wanted_ ? &code : nullptr;
    repeats_at_ = execution.first().instruction;
    repeats_in_ = context_;
    if (execution.first().iteration != 0) return;
  }
  if (!is_wanted_) return;
  if (!needs_.code) return add(code.count());
  if (code.executions.size() <= context_) code.executions.resize(context_ + 1);
  ++code.executions[context_];
}

void CountCollector::passed(std::uint64_t first, std::uint64_t end, const tools::Context& context) {
  look_at(context);
  if (is_wanted_) add(end - first);
}

void CountCollector::counted(void* mine, std::uint64_t executions) {
  static_cast<CodePiece*>(mine)->counted += executions;
}

void CountCollector::iterated(void* mine, std::uint64_t begun, std::uint64_t /*further*/) {
  static_cast<CodePiece*>(mine)->counted += begun;
}

/// One that was interrupted did not complete.
void CountCollector::interrupted(void* mine, std::uint64_t times) {
  static_cast<CodePiece*>(mine)->counted -= times;
}

void CountCollector::add_access(const tools::Reference& r, AccessClass kind, std::uint32_t times) {
  if (r.size < kSmallSizes) {
    small_[small_index(r.size, kind, r.write)] += times;
  } else {
    accesses_[{context_, r.size, kind, r.write}] += times;
  }
}

void CountCollector::add_accesses(const tools::Execution& execution) {
  const auto class_of = [](const tools::Reference& r) {
    return r.kind == AccessKind::data ? AccessClass::data : AccessClass::system;
  };
  if (filter_.narrows_addresses()) {
    tools::for_each_access(execution, [&](const tools::Reference& r) {
      if (r.kind != AccessKind::walk &&
          filter_.has(r.linear, r.physical, has_linear(r.linear, r.kind))) {
        add_access(r, class_of(r), 1);
      }
    });
    return;
  }
  for (const tools::Reference& r : execution.references()) {
    if (r.kind != AccessKind::walk) add_access(r, class_of(r), execution.iterations());
  }
}

void CountCollector::accesses(std::span<const tools::OtherAccess> accesses,
                              const tools::Context& context) {
  look_at(context);
  if (!is_wanted_) return;
  for (const tools::OtherAccess& a : accesses) {
    if (a.code || a.kind == AccessKind::walk) continue;
    if (!filter_.has(a.linear, a.physical, has_linear(a.linear, a.kind))) continue;
    add_access(a, AccessClass::delivery, 1);
  }
}

void CountCollector::event(const tools::MachineEvent&, const tools::Context&) { is_stale_ = true; }

/// The REP that was told last did not complete.
void CountCollector::unfinished(Position at) {
  if (at.iteration == 0 || repeats_ == nullptr || repeats_at_ != at.instruction) return;
  if (needs_.code) {
    --repeats_->executions[repeats_in_];
  } else {
    --by_context_[repeats_in_];
  }
  repeats_ = nullptr;
}

std::vector<InstructionCount> CountCollector::instruction_counts() const {
  std::vector<InstructionCount> all;
  if (!needs_.code) {
    for (ContextNumber c = 0; c < by_context_.size(); ++c) {
      if (by_context_[c] != 0) all.push_back({nullptr, c, by_context_[c]});
    }
    return all;
  }
  for (const CodePiece& piece : pieces_) {
    if (piece.counted != 0) all.push_back({&piece, 0, piece.counted});
    for (ContextNumber c = 0; c < piece.executions.size(); ++c) {
      if (piece.executions[c] != 0) all.push_back({&piece, c, piece.executions[c]});
    }
  }
  return all;
}

std::vector<AccessCount> CountCollector::access_counts() const {
  std::map<AccessKey, std::uint64_t> all = accesses_;
  for (std::uint16_t size = 0; size < kSmallSizes; ++size) {
    for (const bool write : {false, true}) {
      for (const auto kind : {AccessClass::data, AccessClass::system, AccessClass::delivery}) {
        const std::uint64_t count = small_[small_index(size, kind, write)];
        if (count != 0) all[{context_, size, kind, write}] += count;
      }
    }
  }
  std::vector<AccessCount> rows;
  for (const auto& [key, count] : all) {
    const auto& [context, size, kind, write] = key;
    rows.push_back({context, size, kind, write, count});
  }
  return rows;
}

}  // namespace citcat::sql
