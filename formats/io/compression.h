#pragma once
// Recognises by its first bytes how a file is compressed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace citcat {

/// `stored_kt` is a KT trace as formats/kt/kt_store.h writes it; it reads as plain KT.
enum class Compression : std::uint8_t { none, gzip, bzip2, xz, zstd, stored_kt };
/// "none", "gzip", "bzip2", "xz", "zstd", "stored KT".
std::string_view compression_name(Compression compression);

/// What every stored trace begins with: a skippable frame's head and the first words in it
/// (docs/formats/kt.md, "Stored traces").
inline constexpr std::size_t kStoredKtMagicBytes = 16;

/// The compression of a file that begins with `bytes`: kStoredKtMagicBytes of them, fewer only when
/// the file is shorter.
Compression detect_compression(std::span<const std::uint8_t> bytes);

}  // namespace citcat
