#pragma once
// The files of the page as they are in the program. Their list is made when it is built, by
// cmake/embed_files.cmake.

#include <span>
#include <string_view>

namespace citcat::view {

struct PageFile {
  std::string_view name, content;
};
std::span<const PageFile> page_files();

}  // namespace citcat::view
