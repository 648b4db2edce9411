#include "events/names/symbol_file.h"

#include <filesystem>
#include <memory>

#include "events/names/elf_symbols.h"
#include "events/names/symbol_map.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

/// A kernel with everything that a debugger needs has some 500 MB.
constexpr std::uint64_t kMaxElfBytes = std::uint64_t{1} << 30;
constexpr std::size_t kElfMagicBytes = 4;
constexpr const char* kKernel = "vmlinux";

std::string module_name(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  for (const char* suffix : {".gz", ".xz", ".zst"}) {
    if (name.extension() == suffix) return name.stem().string();
  }
  return name.string();
}

std::vector<SymbolModule> load_elf(const SymbolFileName& file) {
  std::vector<std::uint8_t> image = read_whole_file(file.path, kMaxElfBytes);
  SymbolModule module;
  module.name = module_name(file.path);
  module.symbols = read_elf_symbols(image, file.path, file.base);
  settle_symbols(module);
  std::vector<SymbolModule> modules;
  modules.push_back(std::move(module));
  return modules;
}

std::vector<SymbolModule> load_map(const SymbolFileName& file) {
  if (file.base) {
    throw UsageError(file.path + "@BASE: expected ELF, found a list, of which the addresses hold");
  }
  LineReader lines(std::make_unique<InputStream>(file.path));
  return read_symbol_map(lines, kKernel);
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

std::vector<SymbolModule> load_symbols(const SymbolFileName& file) {
  std::vector<SymbolModule> modules =
      is_elf(read_head(file.path, kElfMagicBytes)) ? load_elf(file) : load_map(file);
  for (SymbolModule& module : modules) module.process = file.process;
  return modules;
}

std::vector<SymbolModule> load_symbols(const std::vector<std::string>& names) {
  std::vector<SymbolModule> modules;
  for (const std::string& name : names) {
    for (SymbolModule& module : load_symbols(parse_symbol_file_name(name))) {
      modules.push_back(std::move(module));
    }
  }
  return modules;
}

}  // namespace citcat
