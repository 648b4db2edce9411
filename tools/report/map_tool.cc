// map: the physical memory that a run uses, region by region: which parts the run began with, what
// was executed, read and written there, by whom, and what other bus masters wrote
// (docs/tools/map.md).

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/machine/memory_image.h"
#include "tools/analyses/frame_marks.h"
#include "tools/host/names.h"
#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

constexpr std::uint32_t kSpacesKept = 8;

/// Figures of a page frame, or of several.
struct Region {
  std::uint64_t image_bytes =
      0;  ///< known before the run, because it was read before it was written
  std::uint64_t code_bytes = 0;  ///< different bytes of instructions that were executed
  std::uint64_t reads = 0, writes = 0, tables = 0, user = 0, external_writes = 0,
                external_bytes = 0;
  /// Address spaces that accessed it, in the order of their coming.
  std::array<AddressSpaceId, kSpacesKept> spaces{};
  std::uint32_t space_count = 0;
  bool more_spaces = false;
  bool changed = false;  ///< something was stored there, of a sampled run

  void accessed_by(AddressSpaceId space) {
    if (space_count != 0 && spaces[space_count - 1] == space) return;
    const auto end = spaces.begin() + space_count;
    if (std::find(spaces.begin(), end, space) != end) return;
    if (space_count == kSpacesKept) {
      more_spaces = true;
      return;
    }
    spaces[space_count++] = space;
  }
  void add(const Region& o) {
    image_bytes += o.image_bytes, code_bytes += o.code_bytes, reads += o.reads, writes += o.writes;
    tables += o.tables, user += o.user, external_writes += o.external_writes;
    external_bytes += o.external_bytes;
    for (std::uint32_t i = 0; i < o.space_count; ++i) accessed_by(o.spaces[i]);
    more_spaces = more_spaces || o.more_spaces;
    changed = changed || o.changed;
  }
};

/// Addresses that are no memory in a PC: the window of the display adapter, and what lies beyond
/// its memory (IBM Personal Computer AT Technical Reference, "System memory map"). Beyond 4 GiB a
/// PC has the rest of its memory.
bool is_device(PhysAddr address, const MachineFacts& machine) {
  constexpr std::uint64_t kDisplay = 0xa0000, kBehindDisplay = 0xc0000;
  if (address.value >= kDisplay && address.value < kBehindDisplay) return true;
  constexpr std::uint64_t kFirmware = 0x100000;
  return machine.ram_bytes != 0 && address.value >> 32 == 0 &&
         address.value >= std::max<std::uint64_t>(machine.ram_bytes, kFirmware);
}

class MapTool final : public Tool {
 public:
  MapTool(std::size_t shown, const Setup& setup) : shown_(shown), setup_(setup) {}

  Wants wants() const override {
    return {.counts = setup_.sampled, .references = true, .walks = true, .events = true};
  }
  void* code(const StaticBlock& block) override { return &pieces_.emplace_back(Piece{&block}); }
  void run(void* mine, const Execution& execution, const Context& context) override {
    auto& piece = *static_cast<Piece*>(mine);
    if (!piece.marked) mark_code(piece);
    const Actor actor(context);
    if (piece.space != actor.space) note_space(piece, actor.space);
    for_each_access(execution, [&](const Reference& r) { count(r, actor); });
  }
  void accesses(std::span<const OtherAccess> accesses, const Context& context) override {
    const Actor actor(context);
    for (const OtherAccess& a : accesses) {
      if (!a.code) count(a, actor);
    }
  }
  void event(const MachineEvent& event, const Context&) override {
    if (event.kind != MachineEvent::Kind::external_write) return;
    Region& region = find_frame(event.physical.page());
    ++region.external_writes;
    region.external_bytes += event.size;
  }
  void counted(void* mine, std::uint64_t) override { mark_once(mine); }
  void iterated(void* mine, std::uint64_t, std::uint64_t) override { mark_once(mine); }
  Sampled sampled() const override {
    return {Sampled::Which::some, "reads, writes, user, tables, processes"};
  }
  void stored_to(std::span<const FrameNumber> frames) override {
    for (const FrameNumber page : frames) find_frame(page).changed = true;
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<MapTool>(shown_, setup_); }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(Report& out) const override;

 private:
  static constexpr FrameNumber kFramesInTable = 1024;
  using FrameBlock = std::array<Region, kFramesInTable>;
  using Regions = std::map<std::uint64_t, Region>;  ///< by number

  struct Piece {
    const StaticBlock* block;
    bool marked = false;
    std::uint64_t space = ~std::uint64_t{0};  ///< that executed it last
  };
  /// It is executed in another address space than before.
  void note_space(Piece& piece, AddressSpaceId space) {
    piece.space = space;
    for (const StaticInstruction& i : piece.block->instructions()) {
      find_frame(i.physical.page()).accessed_by(space);
      if (i.bytes_in_first_page() < i.info.length) {
        find_frame(i.physical_rest.page()).accessed_by(space);
      }
    }
  }
  void mark_once(void* mine) {
    Piece& piece = *static_cast<Piece*>(mine);
    if (!piece.marked) mark_code(piece);
  }
  void mark_code(Piece& piece) {
    piece.marked = true;
    for (const StaticInstruction& i : piece.block->instructions()) {
      const std::uint32_t here = i.bytes_in_first_page();
      code_.mark(i.physical, here);
      if (here < i.info.length) code_.mark(i.physical_rest, i.info.length - here);
    }
  }
  /// Who makes an access.
  struct Actor {
    explicit Actor(const Context& context)
        : space(context.address_space()), user(context.level() == Context::kUserLevel ? 1 : 0) {}
    AddressSpaceId space;
    std::uint64_t user;
  };
  /// The frame that was asked for last is nearly always asked for again, one of reads, one of
  /// writes.
  Region& frame(PhysAddr at, bool write) {
    const FrameNumber page = at.page();
    Latest& latest = latest_[write ? 1 : 0];
    if (latest.page != page || latest.region == nullptr) latest = {page, &find_frame(page)};
    return *latest.region;
  }
  Region& find_frame(FrameNumber page) {
    std::unique_ptr<FrameBlock>& table = frames_[page / kFramesInTable];
    if (table == nullptr) table = std::make_unique<FrameBlock>();
    return (*table)[page % kFramesInTable];
  }
  void count(const Reference& r, const Actor& actor) {
    Region& region = frame(r.physical, r.write);
    region.accessed_by(actor.space);
    if (r.kind != AccessKind::data) {
      ++region.tables;
      return;
    }
    ++(r.write ? region.writes : region.reads);
    region.user += actor.user;
  }
  Regions pages() const;
  std::string processes(const Region& region) const;

  struct Latest {
    FrameNumber page = 0;
    Region* region = nullptr;
  };

  std::size_t shown_;
  Setup setup_;
  std::deque<Piece> pieces_;
  std::array<Latest, 2> latest_;  ///< of reads, of writes
  FrameMarks code_;
  std::unordered_map<FrameNumber, std::unique_ptr<FrameBlock>> frames_;
};

/// Page frames that were used.
MapTool::Regions MapTool::pages() const {
  Regions regions;
  for (const auto& [number, block] : frames_) {
    for (std::size_t i = 0; i < kFramesInTable; ++i) {
      const Region& r = (*block)[i];
      const bool used = r.space_count != 0 || r.external_writes != 0 || r.changed;
      if (used) regions[number * kFramesInTable + i] = r;
    }
  }
  for (const auto& [number, marks] : code_.frames()) {
    for (const std::uint64_t word : *marks) {
      regions[number].code_bytes += static_cast<std::uint64_t>(std::popcount(word));
    }
  }
  if (setup_.recording == nullptr) return regions;
  for (const auto& [number, page] : setup_.recording->image.pages()) {
    regions[number].image_bytes += page->valid.count();
  }
  return regions;
}

std::string MapTool::processes(const Region& region) const {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < region.space_count; ++i) {
    const AddressSpaceId space = region.spaces[i];
    std::string name =
        setup_.names != nullptr ? setup_.names->process_of(space) : hexadecimal(space);
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return region.more_spaces ? text + " and more" : text;
}

void MapTool::report(Report& out) const {
  Regions regions = pages();
  std::uint64_t bytes = kPageSize;
  out.value("pages", "page frames that were used", std::uint64_t{regions.size()});
  while (regions.size() > std::max<std::size_t>(shown_, 1)) {
    Regions larger;
    for (const auto& [number, region] : regions) larger[number / 2].add(region);
    regions = std::move(larger);
    bytes *= 2;
  }
  out.value("region_bytes", "bytes of a region", bytes, "bytes");
  out.value("ram_bytes", "bytes of memory that the machine has, 0: not known",
            std::uint64_t{setup_.machine.ram_bytes}, "bytes");
  std::vector<Column> columns = {{"address", "physical address", ""},
                                 {"image_bytes", "bytes that the run began with", "bytes"},
                                 {"code_bytes", "bytes of code that was executed", "bytes"},
                                 {"reads", "reads", ""},
                                 {"writes", "writes", ""},
                                 {"user", "of these at level 3", ""},
                                 {"tables", "accesses to page and system tables", ""},
                                 {"external_writes", "writes by other bus masters", ""},
                                 {"external_bytes", "bytes of them", "bytes"},
                                 {"device", "no memory", ""},
                                 {"processes", "processes", ""}};
  // In a sampled run a frame may have been written unobserved.
  if (setup_.sampled) columns.push_back({"changed", "stored to", ""});
  Table& table = out.table("regions", "regions that were used", std::move(columns));
  const auto yes = [](bool is) { return std::string(is ? "yes" : "no"); };
  for (const auto& [number, r] : regions) {
    const std::uint64_t address = number * bytes;
    std::vector<Cell> row = {hexadecimal(address),
                             r.image_bytes,
                             r.code_bytes,
                             r.reads,
                             r.writes,
                             r.user,
                             r.tables,
                             r.external_writes,
                             r.external_bytes,
                             yes(is_device(PhysAddr{address}, setup_.machine)),
                             processes(r)};
    if (setup_.sampled) row.emplace_back(yes(r.changed));
    table.row(std::move(row));
  }
}

std::unique_ptr<Tool> make_map(ToolOptions& options, const Setup& setup) {
  return std::make_unique<MapTool>(options.number("regions", 1024, 1, std::uint64_t{1} << 20),
                                   setup);
}

}  // namespace

extern const ToolRow kMapTool{
    "map",
    "Map the physical memory that the run uses, with what touched it",
    "regions=N  largest number of regions; their size doubles until they suffice (1024)\n",
    "citcat analyze boot.citcat --tool map:regions=256",
    ToolRow::Merging::serial,
    make_map};

}  // namespace citcat::tools
