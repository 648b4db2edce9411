#include "events/names/code_file.h"

#include <cstdint>
#include <utility>

#include "events/names/elf_symbols.h"
#include "events/names/symbol_file.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

}  // namespace

std::vector<KnownCode> load_code_file(const std::string& name) {
  const SymbolFileName file = parse_symbol_file_name(name);
  if (!file.process.empty()) {
    throw UsageError(name + ": code is compared wherever it is executed, not in a process alone");
  }
  std::vector<std::uint8_t> bytes = read_whole_file(file.path, kMaxBytes);
  if (is_elf(bytes)) return read_elf_code(bytes, file.path, file.base);
  if (!file.base) {
    throw UsageError(file.path + " is not an ELF file: say where it lay, as " + file.path +
                     "@BASE");
  }
  if (bytes.empty()) throw FormatError(file.path, 0, "expected code, found an empty file");
  return {{*file.base, 0, file.path, std::move(bytes)}};
}

std::vector<KnownCode> load_code_files(const std::vector<std::string>& names) {
  std::vector<KnownCode> all;
  for (const std::string& name : names) {
    for (KnownCode& code : load_code_file(name)) all.push_back(std::move(code));
  }
  return all;
}

}  // namespace citcat
