#pragma once
// The names that a Linux kernel carries for itself: those that it shows in /proc/kallsyms, in the
// file that a boot loader loads.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// The file is a kernel as a boot loader of x86 takes it (bzImage).
bool is_boot_image(std::span<const std::uint8_t> head);
/// So many bytes of a file are enough for that.
inline constexpr std::size_t kBootImageHead = 0x250;

/// The kernel within, an ELF file. Throws FormatError with `source` if it is not such a file, or is
/// compressed otherwise than by gzip, xz or zstd. Source: Linux, Documentation/arch/x86/boot.rst.
std::vector<std::uint8_t> unpack_boot_image(std::span<const std::uint8_t> file,
                                            const std::string& source);

/// What the kernel of this ELF file shows in /proc/kallsyms, as long as it lies where it was linked
/// to: lines of an address, a letter and a name. Empty where it has no such tables
/// (CONFIG_KALLSYMS), or none that are known.
///
/// The tables have no symbols that would say where they are; each is found by what it must look
/// like and by what the others say of it, and taken only if they all agree. Source: Linux,
/// scripts/kallsyms.c and kernel/kallsyms.c, from version 4.6 on (base-relative addresses), in both
/// orders (since 6.4 the addresses are last).
std::string kallsyms_of_image(std::span<const std::uint8_t> image);

}  // namespace citcat
