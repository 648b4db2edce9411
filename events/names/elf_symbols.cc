#include "events/names/elf_symbols.h"

#include <gelf.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "formats/io/error.h"

namespace citcat {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfPtr = std::unique_ptr<Elf, ElfEnd>;

class ElfReader {
 public:
  ElfReader(std::span<std::uint8_t> image, const std::string& source)
      : source_(source), image_(image) {
    if (elf_version(EV_CURRENT) == EV_NONE) throw InternalError("libelf of another version");
    elf_.reset(elf_memory(reinterpret_cast<char*>(image.data()), image.size()));
    if (elf_ == nullptr || elf_kind(elf_.get()) != ELF_K_ELF ||
        gelf_getehdr(elf_.get(), &header_) == nullptr) {
      fail("a whole ELF file", elf_errmsg(-1));
    }
    if (header_.e_machine != EM_386 && header_.e_machine != EM_X86_64) {
      fail("a program of an x86 processor", "machine " + std::to_string(header_.e_machine));
    }
    if (header_.e_type != ET_EXEC && header_.e_type != ET_DYN) {
      fail("a linked program or library",
           header_.e_type == ET_REL ? "an object file, of which only its loader knows where it lies"
                                    : "type " + std::to_string(header_.e_type));
    }
  }

  /// How far the file lies from where it was linked to.
  std::uint64_t shift(std::optional<LinearAddr> base) const {
    if (!base) {
      if (header_.e_type == ET_EXEC) return 0;
      throw UsageError(source_ + " may lie anywhere: say where it did, as " + source_ + "@BASE");
    }
    return base->value - lowest_page();
  }

  bool has_table() const {
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
      GElf_Shdr head;
      if (gelf_getshdr(section, &head) == nullptr) fail("a section", elf_errmsg(-1));
      if (head.sh_type == SHT_SYMTAB || head.sh_type == SHT_DYNSYM) return true;
    }
    return false;
  }

  std::vector<Symbol> symbols(std::uint64_t shift) const {
    for (const auto table : {Elf64_Word{SHT_SYMTAB}, Elf64_Word{SHT_DYNSYM}}) {
      std::vector<Symbol> found;
      for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_.get(), section)) != nullptr;) {
        GElf_Shdr head;
        if (gelf_getshdr(section, &head) == nullptr) fail("a section", elf_errmsg(-1));
        if (head.sh_type == table) add_table(section, head, shift, found);
      }
      if (!found.empty()) return found;
    }
    fail("a table of symbols", "none: the file was stripped");
  }

  std::vector<KnownCode> code(std::uint64_t shift) const {
    std::vector<KnownCode> found;
    for (const GElf_Phdr& head : loaded()) {
      if ((head.p_flags & PF_X) == 0 || head.p_filesz == 0) continue;
      if (head.p_offset > image_.size() || head.p_filesz > image_.size() - head.p_offset) {
        fail_at(head.p_offset, std::to_string(head.p_filesz) + " bytes of a segment",
                "the end of the file");
      }
      const auto bytes = image_.subspan(head.p_offset, head.p_filesz);
      found.push_back(
          {LinearAddr{head.p_vaddr + shift}, head.p_offset, source_, {bytes.begin(), bytes.end()}});
    }
    return found;
  }

 private:
  /// The program headers of what is loaded.
  std::vector<GElf_Phdr> loaded() const {
    std::size_t count = 0;
    if (elf_getphdrnum(elf_.get(), &count) != 0) fail("program headers", elf_errmsg(-1));
    std::vector<GElf_Phdr> found;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr head;
      if (gelf_getphdr(elf_.get(), static_cast<int>(i), &head) == nullptr) {
        fail("a program header", elf_errmsg(-1));
      }
      if (head.p_type == PT_LOAD) found.push_back(head);
    }
    return found;
  }

  std::uint64_t lowest_page() const {
    std::optional<std::uint64_t> lowest;
    for (const GElf_Phdr& head : loaded())
      lowest = std::min(lowest.value_or(head.p_vaddr), std::uint64_t{head.p_vaddr});
    if (!lowest) fail("a segment that is loaded", "none");
    return *lowest & ~std::uint64_t{kPageMask};
  }

  void add_table(Elf_Scn* section, const GElf_Shdr& head, std::uint64_t shift,
                 std::vector<Symbol>& out) const {
    Elf_Data* const data = elf_getdata(section, nullptr);
    if (data == nullptr) fail_at(head.sh_offset, "a table of symbols", elf_errmsg(-1));
    const std::size_t entry = gelf_fsize(elf_.get(), ELF_T_SYM, 1, EV_CURRENT);
    const std::size_t count = data->d_size / entry;
    if (count > kMaxSymbols) fail_at(head.sh_offset, "at most 2^22 symbols", "more");
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) {
        fail_at(head.sh_offset, "a symbol", elf_errmsg(-1));
      }
      const std::optional<SymbolKind> kind = kind_of(symbol);
      if (!kind) continue;
      const char* const name = elf_strptr(elf_.get(), head.sh_link, symbol.st_name);
      if (name == nullptr) fail_at(head.sh_offset, "a symbol with a name", elf_errmsg(-1));
      if (*name == '\0' || std::strncmp(name, ".L", 2) == 0) continue;
      out.push_back(make(symbol, name, *kind, shift));
    }
  }

  /// Nullopt for what is no place in memory.
  std::optional<SymbolKind> kind_of(const GElf_Sym& symbol) const {
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE) return std::nullopt;
    switch (GELF_ST_TYPE(symbol.st_info)) {
      case STT_FUNC:
      case STT_GNU_IFUNC:
        return SymbolKind::code;
      case STT_OBJECT:
        return SymbolKind::data;
      case STT_NOTYPE:
        return is_executable(symbol.st_shndx) ? SymbolKind::code : SymbolKind::data;
      default:
        return std::nullopt;
    }
  }

  bool is_executable(std::size_t section) const {
    GElf_Shdr head;
    Elf_Scn* const found = elf_getscn(elf_.get(), section);
    return found != nullptr && gelf_getshdr(found, &head) != nullptr &&
           (head.sh_flags & SHF_EXECINSTR) != 0;
  }

  Symbol make(const GElf_Sym& entry, std::string name, SymbolKind kind, std::uint64_t shift) const {
    // A version ("memcpy@@GLIBC_2.14") belongs to the linker, not to the name.
    const std::size_t version = name.find('@', 1);
    if (version != std::string::npos) name.resize(version);
    if (name.size() > kMaxSymbolName) {
      fail("names of at most " + std::to_string(kMaxSymbolName) + " bytes", "a longer one");
    }
    const std::uint64_t address = entry.st_value + shift;
    if (address > kLastSymbolAddress) {
      throw UsageError(source_ + ": \"" + name + "\" would lie beyond the last address of 32 bits");
    }
    Symbol symbol;
    symbol.name = std::move(name);
    symbol.address.value = static_cast<decltype(LinearAddr::value)>(address);
    symbol.size = entry.st_size;
    symbol.kind = kind;
    const unsigned binding = GELF_ST_BIND(entry.st_info);
    symbol.binding = binding == STB_LOCAL  ? SymbolBinding::local
                     : binding == STB_WEAK ? SymbolBinding::weak
                                           : SymbolBinding::global;
    return symbol;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    fail_at(0, expected, found);
  }
  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& expected,
                            const std::string& found) const {
    throw FormatError(source_, offset, "expected " + expected + ", found " + found);
  }

  const std::string& source_;
  std::span<std::uint8_t> image_;
  ElfPtr elf_;
  GElf_Ehdr header_{};
};

}  // namespace

bool is_elf(std::span<const std::uint8_t> head) {
  return head.size() >= SELFMAG && std::memcmp(head.data(), ELFMAG, SELFMAG) == 0;
}

bool has_symbol_table(std::span<std::uint8_t> image, const std::string& source) {
  return ElfReader(image, source).has_table();
}

std::vector<Symbol> read_elf_symbols(std::span<std::uint8_t> image, const std::string& source,
                                     std::optional<LinearAddr> base) {
  const ElfReader reader(image, source);
  return reader.symbols(reader.shift(base));
}

std::vector<KnownCode> read_elf_code(std::span<std::uint8_t> image, const std::string& source,
                                     std::optional<LinearAddr> base) {
  const ElfReader reader(image, source);
  return reader.code(reader.shift(base));
}

}  // namespace citcat
