# Writes a source file that holds other files: cmake -D 'FILES=a|b' -D OUTPUT=page_files.cc -P embed_files.cmake
# It defines page_files() of HEADER in NAMESPACE.
set(arrays "")
set(rows "")
set(number 0)
string(REPLACE "|" ";" FILES "${FILES}")
foreach(file IN LISTS FILES)
  file(READ "${file}" hex HEX)
  # A line for each 32 bytes, as elements of an array: compilers limit the length of a literal.
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................................................................................................)" "\\1\n" bytes "${bytes}")
  cmake_path(GET file FILENAME name)
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {\n${bytes}};\n")
  string(APPEND rows
    "    {\"${name}\", {reinterpret_cast<const char*>(kFile${number}), sizeof kFile${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}.part" "// Made by cmake/embed_files.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

namespace {
${arrays}}  // namespace

std::span<const PageFile> page_files() {
  static const PageFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace ${NAMESPACE}
")
file(RENAME "${OUTPUT}.part" "${OUTPUT}")
