#include "events/names/symbol_file.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "events/names/elf_symbols.h"
#include "events/names/linux_image.h"
#include "events/names/symbol_map.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

/// A kernel with everything that a debugger needs has some 500 MB.
constexpr std::uint64_t kMaxElfBytes = std::uint64_t{1} << 30;
constexpr const char* kKernel = "vmlinux";

std::string module_name(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  for (const char* suffix : {".gz", ".xz", ".zst"}) {
    if (name.extension() == suffix) return name.stem().string();
  }
  return name.string();
}

std::vector<SymbolModule> one_module(SymbolModule module) {
  settle_symbols(module);
  std::vector<SymbolModule> modules;
  modules.push_back(std::move(module));
  return modules;
}

std::vector<SymbolModule> read_list(const std::string& text, const std::string& source) {
  InputStream stream({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, source);
  LineReader lines(stream);
  return read_symbol_map(lines, kKernel);
}

/// Moves a kernel to where its first page lay.
void move_to(LinearAddr base, SymbolModule& module, const std::string& source) {
  const std::uint64_t first = module.symbols.front().address.value & ~std::uint64_t{kPageMask};
  move_symbols(module, static_cast<std::int64_t>(base.value - first), source);
}

/// A kernel's own names; nullopt where it has none.
std::optional<std::vector<SymbolModule>> load_image(std::span<const std::uint8_t> image,
                                                    const SymbolFileName& file) {
  const std::string text = kallsyms_of_image(image);
  if (text.empty()) return std::nullopt;
  std::vector<SymbolModule> modules = read_list(text, file.path + " (its own names)");
  if (file.base) move_to(*file.base, modules.front(), file.path);
  return modules;
}

std::vector<SymbolModule> load_elf(const SymbolFileName& file) {
  std::vector<std::uint8_t> image = read_whole_file(file.path, kMaxElfBytes);
  if (!has_symbol_table(image, file.path)) {
    if (auto modules = load_image(image, file)) return *modules;
  }
  return one_module({module_name(file.path), {}, read_elf_symbols(image, file.path, file.base)});
}

std::vector<SymbolModule> load_kernel(const SymbolFileName& file) {
  const std::vector<std::uint8_t> packed = read_whole_file(file.path, kMaxElfBytes);
  const std::vector<std::uint8_t> image = unpack_boot_image(packed, file.path);
  if (auto modules = load_image(image, file)) return *modules;
  throw FormatError(file.path, 0,
                    "expected a kernel that has its own names (CONFIG_KALLSYMS), found none");
}

std::vector<SymbolModule> load_map(const SymbolFileName& file) {
  if (file.base) {
    throw UsageError(
        file.path +
        "@BASE: expected ELF, found a list of symbols, whose addresses cannot be moved");
  }
  LineReader lines(std::make_unique<InputStream>(file.path));
  return read_symbol_map(lines, kKernel);
}

std::vector<SymbolModule> load(const SymbolFileName& file) {
  const std::vector<std::uint8_t> head = read_head(file.path, kBootImageHead);
  if (is_elf(head)) return load_elf(file);
  return is_boot_image(head) ? load_kernel(file) : load_map(file);
}

}  // namespace

SymbolFileName parse_symbol_file_name(const std::string& name) {
  SymbolFileName result{name, std::nullopt, {}};
  std::error_code ignored;
  if (std::filesystem::exists(name, ignored)) return result;
  const std::size_t colon = result.path.rfind(':');
  if (colon != std::string::npos && colon != 0 &&
      result.path.find('/', colon) == std::string::npos) {
    result.process = result.path.substr(colon + 1);
    result.path.resize(colon);
    if (std::filesystem::exists(result.path, ignored)) return result;
  }
  const std::size_t at = result.path.rfind('@');
  if (at == std::string::npos || at == 0) return result;
  std::uint64_t base = 0;
  const std::string digits = result.path.substr(at + 1);
  if (!parse_hexadecimal(digits, base) || base > kLastSymbolAddress || (base & kPageMask) != 0) {
    throw UsageError(name + ": expected FILE@BASE with the hexadecimal address of a page, found @" +
                     digits);
  }
  result.base = LinearAddr{static_cast<decltype(LinearAddr::value)>(base)};
  result.path.resize(at);
  return result;
}

std::vector<SymbolModule> load_symbol_file(const SymbolFileName& file) {
  std::vector<SymbolModule> modules = load(file);
  for (SymbolModule& module : modules) module.process = file.process;
  return modules;
}

std::vector<SymbolModule> load_symbols(const std::vector<std::string>& names) {
  std::vector<SymbolModule> modules;
  for (const std::string& name : names) {
    for (SymbolModule& module : load_symbol_file(parse_symbol_file_name(name))) {
      modules.push_back(std::move(module));
    }
  }
  return modules;
}

std::string find_kernel_symbols(const std::string& kernel) {
  const std::filesystem::path path(kernel);
  const std::string name = path.filename().string();
  const std::string version = name.substr(std::min(name.find('-'), name.size()));
  for (const std::string& file :
       {kernel, (path.parent_path() / ("System.map" + version)).string()}) {
    try {
      if (!load_symbol_file(SymbolFileName{file, std::nullopt, {}}).empty()) return file;
    } catch (const Error&) {
      // It has none that could be handed over.
    }
  }
  return "";
}

}  // namespace citcat
