#pragma once
// Passes a run to models of caches, in the order in which a processor makes its accesses.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "formats/io/error.h"
#include "replay/machine/machine.h"
#include "replay/verify/cache_model.h"
#include "replay/verify/repeated_lines.h"
#include "tools/analyses/code_lines.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// Accesses of one kind.
struct CacheSide {
  std::uint64_t references = 0, reads = 0, writes = 0;
  CacheSide operator+(const CacheSide& o) const {
    return {references + o.references, reads + o.reads, writes + o.writes};
  }
};

/// What programs (level 3) or all else did, with one cache between them.
struct CachePart {
  std::uint64_t instructions = 0;
  CacheSide code, data;
  CachePart operator+(const CachePart& o) const {
    return {instructions + o.instructions, code + o.code, data + o.data};
  }
};
/// Numbers of parts; the last one is of what only warms up a cache.
inline constexpr unsigned kRest = 0, kPrograms = 1, kUncounted = 2;
using CacheParts = std::array<CachePart, 3>;

/// Lines filled.
struct CacheFills {
  std::uint64_t code = 0, data = 0;
  CacheFills operator+(const CacheFills& o) const { return {code + o.code, data + o.data}; }
};

/// `Cache` is one cache or many that hear the same: fetch_line(), fetch(), read(), write(),
/// flush(), snoop_write() and set_disabled() are those of CacheModel; line_of() tells the lines
/// that are fetched as one; enter(part) is called before accesses of that part, and settle(part)
/// after them; has_moved() says whether anything was filled or written back since; where
/// accesses that moved nothing do nothing when they are made again, repeated_line() is the size of
/// the shortest line, else 0; report(out, parts, flush_every) is the tool's.
template <class Cache>
class CacheFeed final : public Tool {
 public:
  struct Plan {
    std::function<Cache()> make;
    std::optional<WalkPolicy> walks = WalkPolicy::all_rights;  ///< nullopt: none are heard
    bool ins_reads_destination = false;                        ///< as in CacheDescriptor
    std::uint64_t flush_every = 0;                             ///< instructions; 0: never
    MachineFacts machine;
  };
  explicit CacheFeed(Plan plan) : plan_(std::move(plan)), cache_(plan_.make()) {}

  Wants wants() const override {
    return {.references = true, .walks = plan_.walks.has_value(), .events = true};
  }
  std::optional<WalkPolicy> walks() const override { return plan_.walks; }
  std::unique_ptr<Tool> part() const override { return std::make_unique<CacheFeed>(plan_); }
  void follow(Tool&&) override { throw InternalError("cache: a part cannot follow another"); }
  void save(ByteWriter&) const override { throw InternalError("cache: has no parts"); }
  void load(ByteReader&) override { throw InternalError("cache: has no parts"); }
  void report(Report& out) const override { cache_.report(out, parts_, plan_.flush_every); }

  bool warms() const override { return true; }
  void set_warming(bool warming) override { warming_ = warming; }
  void* code(const StaticBlock& block) override {
    Code& code = code_.emplace_back();
    code.lines = code_lines_of(
        block, [this](PhysAddr a) { return cache_.line_of(a); }, plan_.machine.address_mask);
    code.count = block.count();
    for (const StaticInstruction& i : block.instructions()) {
      code.has_input = code.has_input || i.info.kind == InstructionClass::ins;
    }
    return &code;
  }
  void run(void* mine, const Execution& execution, const Context& context) override {
    enter(context);
    const Code& code = *static_cast<const Code*>(mine);
    const bool plain = execution.first().iteration == 0 && execution.iterations() == 1;
    if (plain && !code.has_input && plan_.flush_every == 0) [[likely]] {
      hear(code, execution.references());
    } else {
      run_slowly(code, execution);
    }
    settle();
  }

  void accesses(std::span<const OtherAccess> accesses, const Context& context) override {
    enter(context);
    for (const OtherAccess& a : accesses) {
      if (a.code) {
        ++here_->code.references;
        cache_.fetch(captured(a.physical), a.size);
      } else {
        access(a, InstructionClass::plain);
      }
    }
    settle();
  }

  void event(const MachineEvent& event, const Context& context) override {
    switch (event.kind) {
      case MachineEvent::Kind::external_write:
        cache_.snoop_write(event.physical, event.size);
        break;
      case MachineEvent::Kind::cache_flushed:
        cache_.flush();
        break;
      case MachineEvent::Kind::address_space:
        begin(context);
        break;
      default:
        return;
    }
    settle();
  }

 private:
  /// What is kept of a piece of code: all that is looked at when it runs.
  struct Code {
    std::uint32_t count = 0;  ///< instructions
    bool has_input = false;   ///< INS is among them
    CodeLines lines;
  };

  void enter(const Context& context) {
    if (!begun_) [[unlikely]]
      begin(context);
    enter(context.level() == 3 ? kPrograms : kRest);
  }
  void enter(unsigned part) {
    if (warming_) part = kUncounted;
    if (part == part_) return;
    part_ = part;
    here_ = &parts_[part];
    cache_.enter(part);
  }
  void settle() { cache_.settle(part_); }
  PhysAddr captured(PhysAddr a) const { return a.masked32(plan_.machine.address_mask); }
  /// CR0.CD may have changed.
  void begin(const Context& context) {
    constexpr std::uint32_t kCr0Cd = 1u << 30;
    begun_ = true;
    cache_.set_disabled(!plan_.machine.ignores_cd &&
                        (context.machine().engine().cr(0) & kCr0Cd) != 0);
  }
  /// A block as nearly all are: what is counted of it is added at once.
  void hear(const Code& code, std::span<const Reference> references) {
    std::uint64_t writes = 0, walks = 0;
    const std::uint32_t mask = plan_.machine.address_mask;
    code.lines.run(
        references, [this](PhysAddr at, std::uint32_t) { cache_.fetch_line(at); },
        [&](const Reference& r, std::uint16_t) {
          const PhysAddr at = r.physical.masked32(mask);
          if (r.kind == AccessKind::walk) [[unlikely]] {
            ++walks;
            walk(at, r.size, r.write);
          } else if (r.write) {
            ++writes;
            cache_.write(at, r.size);
          } else {
            cache_.read(at, r.size);
          }
        });
    const std::uint64_t data = references.size() - walks;
    CachePart& here = *here_;
    here.instructions += code.count;
    here.code.references += code.lines.pieces();
    here.data.references += data;
    here.data.reads += data - writes;
    here.data.writes += writes;
  }
  [[gnu::noinline]] void run_slowly(const Code& code, const Execution& execution) {
    const std::span<const Reference> references = execution.references();
    if (execution.first().iteration == 0) {
      const std::uint32_t count = code.count;
      here_->instructions += count;
      if (plan_.flush_every == 0 || told_ % plan_.flush_every + count <= plan_.flush_every)
          [[likely]] {
        if (plan_.flush_every != 0 && told_ != 0 && told_ % plan_.flush_every == 0) cache_.flush();
        run_code(code, execution.block(), references);
      } else {
        run_code_flushing(code.lines, execution.block(), references);
      }
      told_ += count;
    } else {
      for (const Reference& r : references) access(r, execution.block().front().info.kind);
    }
    if (execution.iterations() > 1) iterate(execution);
  }
  void run_code(const Code& code, const StaticBlock& block, std::span<const Reference> references) {
    here_->code.references += code.lines.pieces();
    code.lines.run(
        references, [this](PhysAddr at, std::uint32_t) { cache_.fetch_line(at); },
        [&](const Reference& r, std::uint16_t number) {
          access(r, code.has_input ? block[number].info.kind : InstructionClass::plain);
        });
  }
  /// All but the first of the iterations of a string. Once one has moved no line, those in the same
  /// lines do nothing more.
  void iterate(const Execution& execution) {
    const std::span<const Reference> references = execution.references();
    const InstructionClass kind = execution.block().front().info.kind;
    std::uint32_t line = cache_.repeated_line();
    CacheSide each;
    for (const Reference& r : references) {
      if (r.kind == AccessKind::walk) line = 0;
      ++each.references;
      ++(r.write ? each.writes : each.reads);
    }
    for (std::uint32_t n = 1; n < execution.iterations(); ++n) {
      settle();
      for (Reference again : references) {
        again.physical = again.physical.plus32(n * execution.step());
        access(again, kind);
      }
      if (line == 0 || cache_.has_moved()) continue;
      const std::uint32_t same =
          std::min(iterations_in_lines(references, execution.step(), n, line),
                   execution.iterations() - 1 - n);
      here_->data =
          here_->data + CacheSide{same * each.references, same * each.reads, same * each.writes};
      n += same;
    }
  }
  /// The same of a block in which the cache is emptied: instruction by instruction.
  void run_code_flushing(const CodeLines& code, const StaticBlock& block,
                         std::span<const Reference> references) {
    here_->code.references += code.pieces();
    std::size_t r = 0;
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      if (told_ + i != 0 && (told_ + i) % plan_.flush_every == 0) cache_.flush();
      code.fetch_instruction(i, [this](PhysAddr at, std::uint32_t) { cache_.fetch_line(at); });
      for (; r < references.size() && references[r].instruction == i; ++r) {
        access(references[r], block[i].info.kind);
      }
    }
  }
  void access(const Reference& r, InstructionClass kind) {
    const PhysAddr at = captured(r.physical);
    if (r.kind == AccessKind::walk) return walk(at, r.size, r.write);
    CacheSide& data = here_->data;
    ++data.references;
    if (!r.write) {
      ++data.reads;
      return cache_.read(at, r.size);
    }
    ++data.writes;
    const bool input = kind == InstructionClass::ins && r.kind == AccessKind::data;
    if (input && plan_.ins_reads_destination) cache_.read(at, r.size);
    cache_.write(at, r.size);
  }
  /// What the processor itself does for a program is not the program's: when it walks is not told
  /// to the instruction.
  [[gnu::noinline]] void walk(PhysAddr at, std::uint32_t size, bool write) {
    settle();
    const unsigned program = part_;
    enter(kRest);
    CacheSide& data = here_->data;
    ++data.references;
    if (write) {
      ++data.writes;
      cache_.write(at, size);
    } else {
      ++data.reads;
      cache_.read(at, size);
    }
    settle();
    enter(program);
  }

  const Plan plan_;
  Cache cache_;
  std::deque<Code> code_;
  bool begun_ = false;
  bool warming_ = false;
  std::uint64_t told_ = 0;  ///< instructions
  CacheParts parts_;
  unsigned part_ = kRest;
  CachePart* here_ = &parts_[kRest];  ///< the same
};

}  // namespace citcat::tools
