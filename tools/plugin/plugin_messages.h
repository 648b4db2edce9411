#pragma once
// The messages between the host and the process of an isolated tool.
//
// Both are the same program, so structures are sent as they lie in memory. The host writes messages
// into segments of shared memory, which the tool's process can only read; a frame on the socket
// says that a segment is full. Answers come over the socket. The host trusts nothing that comes
// back.

#include <array>
#include <cstddef>
#include <cstdint>

namespace citcat::tools {

/// First argument of the program when it is to be the process of a tool.
inline constexpr const char* kPluginServerArgument = "--tool-process";
/// Descriptors of that process.
inline constexpr int kPluginSocket = 3;
inline constexpr int kPluginMemory = 4;

/// Shared memory: a segment is filled while the tool works on those before it.
inline constexpr std::size_t kSegments = 4;
inline constexpr std::size_t kSegmentBytes = std::size_t{4} << 20;

/// The host has filled a segment.
struct SegmentFrame {
  std::uint32_t segment;
  std::uint32_t bytes;
};

enum class PluginMessage : std::uint32_t {
  code,      ///< citcat_block, its instructions, a MnemonicText of each
  run,       ///< citcat_execution, its addresses, its references; `block` is the number of the code
  accesses,  ///< citcat_accesses, its references
  counted,   ///< CountedMessage
  iterated,  ///< the same
  interrupted,  ///< the same
  event,        ///< citcat_tool_event
  state,        ///< some bytes of a state that load or follow are about
  load,         ///< the state told before
  follow,       ///< the same
  save,         ///< answered by Answer::state
  report,       ///< answered by Answer::report
};

/// Before each message, which is padded to a multiple of eight bytes.
struct MessageHeader {
  PluginMessage kind;
  std::uint32_t bytes;  ///< after this, without the padding
};

/// Instead of citcat_instruction::mnemonic, which points into the host. Ends with zeros.
using MnemonicText = std::array<char, 24>;

struct CountedMessage {
  std::uint64_t code;        ///< number of the piece of code, from 0
  std::uint64_t executions;  ///< or times
  std::uint64_t further;     ///< of iterated
};

enum class PluginAnswer : std::uint32_t {
  ready,   ///< PluginDescription
  done,    ///< the oldest segment has been read
  state,   ///< bytes
  report,  ///< write_report()
  failed,  ///< one line of text; nothing follows
};

/// Before each answer.
struct AnswerHeader {
  PluginAnswer kind;
  std::uint32_t bytes;
};

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace citcat::tools
