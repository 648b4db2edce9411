// elfutils' libdw reads the tables (DWARF 5, 6.2). The files are not trusted: libdw checks what it
// reads, and there are no lines for what it refuses.

#include "debugger/lines/source_lines.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"

#ifdef CITCAT_HAS_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#endif

namespace citcat {

unsigned common_names(const std::string& path, const std::string& other) {
  unsigned names = 0;
  std::size_t a = path.size(), b = other.size();
  for (;;) {
    const std::size_t begin_a = a == 0 ? std::string::npos : path.rfind('/', a - 1);
    const std::size_t begin_b = b == 0 ? std::string::npos : other.rfind('/', b - 1);
    const std::size_t from_a = begin_a == std::string::npos ? 0 : begin_a + 1;
    const std::size_t from_b = begin_b == std::string::npos ? 0 : begin_b + 1;
    if (path.compare(from_a, a - from_a, other, from_b, b - from_b) != 0 || a == from_a) break;
    ++names;
    if (begin_a == std::string::npos || begin_b == std::string::npos) break;
    a = begin_a;
    b = begin_b;
  }
  return names;
}

#ifdef CITCAT_HAS_LIBDW

/// One ELF file. Tables of a unit are read when they are first asked for.
class SourceLines::File {
 public:
  static std::unique_ptr<File> open(const std::string& path, std::optional<LinearAddr> base);
  ~File() {
    if (dwarf_ != nullptr) dwarf_end(dwarf_);
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::optional<SourcePlace> find(LinearAddr at) const;
  void at_line(const std::string& file, int line, std::vector<SourcePlace>& found) const;

 private:
  File() = default;
  struct Unit {
    Dwarf_Die die;
    std::string name;
  };
  void list_units();
  bool find_unit(Dwarf_Addr at, Dwarf_Die& unit) const;
  void lines_of(const Unit& unit, const std::string& file, int line, unsigned names,
                std::vector<SourcePlace>& found) const;
  SourcePlace place_of(Dwarf_Line* line) const;

  int descriptor_ = -1;
  Dwarf* dwarf_ = nullptr;
  std::uint64_t moved_by_ = 0;
  std::vector<Unit> units_;
};

std::unique_ptr<SourceLines::File> SourceLines::File::open(const std::string& path,
                                                           std::optional<LinearAddr> base) {
  std::unique_ptr<File> file(new File);
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->descriptor_ < 0) throw IoError(path + ": " + std::strerror(errno));
  elf_version(EV_CURRENT);
  file->dwarf_ = dwarf_begin(file->descriptor_, DWARF_C_READ);
  if (file->dwarf_ == nullptr) return nullptr;
  if (base) {
    Elf* const elf = dwarf_getelf(file->dwarf_);
    std::size_t count = 0;
    std::uint64_t lowest = ~std::uint64_t{0};
    if (elf_getphdrnum(elf, &count) == 0) {
      for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
        if (header.p_type == PT_LOAD) lowest = std::min<std::uint64_t>(lowest, header.p_vaddr);
      }
    }
    if (lowest != ~std::uint64_t{0})
      file->moved_by_ = base->value - (lowest & ~std::uint64_t{kPageMask});
  }
  file->list_units();
  return file->units_.empty() ? nullptr : std::move(file);
}

void SourceLines::File::list_units() {
  Dwarf_Off offset = 0, next = 0;
  std::size_t header = 0;
  while (dwarf_nextcu(dwarf_, offset, &next, &header, nullptr, nullptr, nullptr) == 0) {
    Unit unit;
    if (dwarf_offdie(dwarf_, offset + header, &unit.die) != nullptr) {
      const char* const name = dwarf_diename(&unit.die);
      unit.name = name == nullptr ? "" : name;
      units_.push_back(std::move(unit));
    }
    if (next <= offset) break;
    offset = next;
  }
}

/// By the file's index of addresses, where it has one, else by the units' own ranges.
bool SourceLines::File::find_unit(Dwarf_Addr at, Dwarf_Die& unit) const {
  if (dwarf_addrdie(dwarf_, at, &unit) != nullptr) return true;
  for (const Unit& u : units_) {
    Dwarf_Die die = u.die;
    if (dwarf_haspc(&die, at) != 1) continue;
    unit = die;
    return true;
  }
  return false;
}

SourcePlace SourceLines::File::place_of(Dwarf_Line* line) const {
  SourcePlace place;
  Dwarf_Addr begin = 0;
  const char* const file = dwarf_linesrc(line, nullptr, nullptr);
  place.file = file == nullptr ? "" : file;
  dwarf_lineno(line, &place.line);
  dwarf_lineaddr(line, &begin);
  place.begin = LinearAddr{begin + moved_by_};
  return place;
}

std::optional<SourcePlace> SourceLines::File::find(LinearAddr at) const {
  Dwarf_Die unit;
  const Dwarf_Addr address = at.value - moved_by_;
  if (!find_unit(address, unit)) return std::nullopt;
  Dwarf_Line* const line = dwarf_getsrc_die(&unit, address);
  if (line == nullptr) return std::nullopt;
  SourcePlace place = place_of(line);
  if (place.line <= 0 || place.file.empty()) return std::nullopt;  // of no line, it says
  return place;
}

void SourceLines::File::lines_of(const Unit& unit, const std::string& file, int line,
                                 unsigned names, std::vector<SourcePlace>& found) const {
  Dwarf_Die die = unit.die;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrclines(&die, &lines, &count) != 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    Dwarf_Line* const row = dwarf_onesrcline(lines, i);
    bool begins = false, ends = false;
    int number = 0;
    if (dwarf_lineno(row, &number) != 0 || number < line || number > line + kReach) continue;
    if (dwarf_linebeginstatement(row, &begins) != 0 || !begins) continue;
    if (dwarf_lineendsequence(row, &ends) != 0 || ends) continue;
    const char* const path = dwarf_linesrc(row, nullptr, nullptr);
    if (path == nullptr || common_names(path, file) < names) continue;
    found.push_back(place_of(row));
  }
}

void SourceLines::File::at_line(const std::string& file, int line,
                                std::vector<SourcePlace>& found) const {
  // The unit that is the file; of what is included all have to be looked through.
  const std::size_t before = found.size();
  unsigned most = 1;
  for (const Unit& unit : units_) most = std::max(most, common_names(unit.name, file));
  for (const Unit& unit : units_) {
    if (common_names(unit.name, file) >= most) lines_of(unit, file, line, 1, found);
  }
  if (found.size() != before) return;
  for (const Unit& unit : units_) lines_of(unit, file, line, 1, found);
}

bool SourceLines::are_built() { return true; }

bool SourceLines::add(const std::string& path, std::optional<LinearAddr> base) {
  auto file = File::open(path, base);
  if (file == nullptr) return false;
  files_.push_back(std::move(file));
  return true;
}

std::optional<SourcePlace> SourceLines::find(LinearAddr at) const {
  for (const auto& file : files_) {
    if (auto place = file->find(at)) return place;
  }
  return std::nullopt;
}

std::vector<SourcePlace> SourceLines::at_line(const std::string& file, int line) const {
  std::vector<SourcePlace> found;
  for (const auto& each : files_) each->at_line(file, line, found);
  int nearest = line + kReach + 1;
  unsigned names = 0;
  for (const SourcePlace& place : found) names = std::max(names, common_names(place.file, file));
  for (const SourcePlace& place : found) {
    if (common_names(place.file, file) == names) nearest = std::min(nearest, place.line);
  }
  std::erase_if(found, [&](const SourcePlace& place) {
    return place.line != nearest || common_names(place.file, file) != names;
  });
  std::sort(found.begin(), found.end(),
            [](const SourcePlace& a, const SourcePlace& b) { return a.begin < b.begin; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

#else

class SourceLines::File {};

bool SourceLines::are_built() { return false; }
bool SourceLines::add(const std::string&, std::optional<LinearAddr>) { return false; }
std::optional<SourcePlace> SourceLines::find(LinearAddr) const { return std::nullopt; }
std::vector<SourcePlace> SourceLines::at_line(const std::string&, int) const { return {}; }

#endif

SourceLines::SourceLines() = default;
SourceLines::~SourceLines() = default;
SourceLines::SourceLines(SourceLines&&) noexcept = default;
SourceLines& SourceLines::operator=(SourceLines&&) noexcept = default;

}  // namespace citcat
