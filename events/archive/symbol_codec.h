#pragma once
// The payload of a SYMS chunk (docs/formats/archive.md): symbols of one module, or a part of them.

#include <cstdint>
#include <functional>
#include <vector>

#include "events/archive/chunk.h"
#include "events/names/symbol_module.h"
#include "formats/io/byte_reader.h"

namespace citcat {

inline constexpr ChunkKind kSymbolChunk = chunk_kind("SYMS");
/// Rows of a chunk; writers begin another one when it is full. With names as long as they may be, a
/// chunk is never too large.
inline constexpr std::size_t kSymbolChunkRows = std::size_t{1} << 16;
inline constexpr std::size_t kSymbolChunkNameBytes = std::size_t{1} << 25;

/// Calls `add` with payloads that hold the module, in its order.
void encode_symbols(const SymbolModule& module,
                    const std::function<void(std::vector<std::uint8_t>)>& add);
/// Adds what a payload holds to `modules`: to the last of them where it goes on with that. Throws
/// FormatError; what is allocated is bounded by the payload.
void decode_symbols(ByteReader& in, std::vector<SymbolModule>& modules);

}  // namespace citcat
