#include "tools/plugin/plugin_server.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "tools/plugin/plugin_guard.h"
#include "tools/plugin/plugin_messages.h"
#include "tools/plugin/report_codec.h"

namespace citcat::tools {

namespace {

/// The socket; its other end has gone where reading or writing fails, and then so does this
/// process.
class Connection {
 public:
  void answer(PluginAnswer kind, std::span<const std::uint8_t> bytes) {
    const AnswerHeader header{kind, static_cast<std::uint32_t>(bytes.size())};
    write({reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
    write(bytes);
  }
  /// False at the end of the connection.
  bool next(SegmentFrame& frame) {
    auto* at = reinterpret_cast<std::uint8_t*>(&frame);
    std::size_t left = sizeof frame;
    while (left != 0) {
      const ssize_t n = ::recv(kPluginSocket, at, left, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      left -= static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  static void write(std::span<const std::uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(kPluginSocket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) std::_Exit(0);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
};

void describe(Connection& connection, const PluginLibrary& library) {
  const PluginDescription d = library.description();
  ByteWriter out;
  out.string(d.name);
  out.string(d.summary);
  out.string(d.options);
  out.u32(d.wants);
  out.u8(d.merges ? 1 : 0);
  connection.answer(PluginAnswer::ready, out.view());
}

/// Does what the messages of segments say.
class Server {
 public:
  Server(Connection& connection, std::shared_ptr<const PluginLibrary> library,
         const ToolOptions& options, const PluginSetup& setup)
      : connection_(connection), library_(std::move(library)), options_(options), setup_(setup) {
    ToolOptions mine = options_;
    tool_ = std::make_unique<PluginInstance>(library_, mine, setup_);
    void* const p =
        ::mmap(nullptr, kSegments * kSegmentBytes, PROT_READ, MAP_SHARED, kPluginMemory, 0);
    if (p == MAP_FAILED) throw IoError(std::string("shared memory: ") + std::strerror(errno));
    memory_ = static_cast<const std::uint8_t*>(p);
  }

  void serve() {
    SegmentFrame frame{};
    while (connection_.next(frame)) {
      CITCAT_ASSERT(frame.segment < kSegments && frame.bytes <= kSegmentBytes);
      segment(memory_ + frame.segment * kSegmentBytes, frame.bytes);
      connection_.answer(PluginAnswer::done, {});
    }
  }

 private:
  void segment(const std::uint8_t* at, std::size_t bytes) {
    const std::uint8_t* const end = at + bytes;
    while (at < end) {
      MessageHeader header{};
      std::memcpy(&header, at, sizeof header);
      at += sizeof header;
      message(header.kind, {at, header.bytes});
      at += padded(header.bytes);
    }
  }

  void message(PluginMessage kind, std::span<const std::uint8_t> bytes) {
    switch (kind) {
      case PluginMessage::code:
        return code(bytes);
      case PluginMessage::run:
        return run(bytes);
      case PluginMessage::accesses:
        return accesses(bytes);
      case PluginMessage::counted: {
        const auto m = structure<CountedMessage>(bytes);
        return tool_->counted(mine(m.code), m.executions);
      }
      case PluginMessage::iterated: {
        const auto m = structure<CountedMessage>(bytes);
        return tool_->iterated(mine(m.code), m.executions, m.further);
      }
      case PluginMessage::interrupted: {
        const auto m = structure<CountedMessage>(bytes);
        return tool_->interrupted(mine(m.code), m.executions);
      }
      case PluginMessage::event:
        return tool_->event(structure<citcat_tool_event>(bytes));
      case PluginMessage::state:
        state_.insert(state_.end(), bytes.begin(), bytes.end());
        return;
      case PluginMessage::load:
        return tool_->load(std::exchange(state_, {}));
      case PluginMessage::follow:
        return follow(std::exchange(state_, {}));
      case PluginMessage::save:
        return connection_.answer(PluginAnswer::state, tool_->save());
      case PluginMessage::report: {
        ByteWriter out;
        write_report(tool_->report(), out);
        return connection_.answer(PluginAnswer::report, out.view());
      }
    }
    CITCAT_ASSERT(false);
  }

  /// The structure at the beginning of a message.
  template <class T>
  static T structure(std::span<const std::uint8_t> bytes) {
    CITCAT_ASSERT(bytes.size() >= sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  struct Code {
    std::vector<citcat_instruction> instructions;
    std::vector<MnemonicText> mnemonics;
    citcat_block block{};
    void* mine = nullptr;
  };

  void* mine(std::uint64_t number) const {
    CITCAT_ASSERT(number < code_.size());
    return code_[number]->mine;
  }

  void code(std::span<const std::uint8_t> bytes) {
    Code& code = *code_.emplace_back(std::make_unique<Code>());
    code.block = structure<citcat_block>(bytes);
    const auto rest = bytes.subspan(sizeof(citcat_block));
    const std::size_t count = code.block.count;
    const std::size_t instructions = count * sizeof(citcat_instruction);
    CITCAT_ASSERT(rest.size() == instructions + count * sizeof(MnemonicText));
    code.instructions.resize(count);
    code.mnemonics.resize(count);
    std::memcpy(code.instructions.data(), rest.data(), instructions);
    std::memcpy(code.mnemonics.data(), rest.data() + instructions, rest.size() - instructions);
    for (std::size_t i = 0; i < count; ++i) {
      code.instructions[i].mnemonic = code.mnemonics[i].data();
    }
    code.block.instructions = code.instructions.data();
    code.mine = tool_->code(code.block);
  }

  void run(std::span<const std::uint8_t> bytes) {
    auto execution = structure<citcat_execution>(bytes);
    const auto number = reinterpret_cast<std::uint64_t>(execution.block);
    CITCAT_ASSERT(number < code_.size());
    execution.block = &code_[number]->block;
    // Messages are aligned to eight bytes, as are these structures.
    const std::uint8_t* at = bytes.data() + sizeof execution;
    if (execution.address_count != 0)
      execution.addresses = reinterpret_cast<const std::uint64_t*>(at);
    at += execution.address_count * sizeof(std::uint64_t);
    if (execution.reference_count != 0) {
      execution.references = reinterpret_cast<const citcat_reference*>(at);
    }
    tool_->run(code_[number]->mine, execution);
  }

  void accesses(std::span<const std::uint8_t> bytes) {
    auto accesses = structure<citcat_accesses>(bytes);
    accesses.references = reinterpret_cast<const citcat_reference*>(bytes.data() + sizeof accesses);
    tool_->accesses(accesses);
  }
  static_assert(sizeof(citcat_execution) % 8 == 0 && sizeof(citcat_reference) % 8 == 0 &&
                sizeof(citcat_accesses) % 8 == 0);

  void follow(const std::vector<std::uint8_t>& state) {
    ToolOptions options = options_;
    PluginSetup setup = setup_;
    setup.begins = false;
    PluginInstance later(library_, options, setup);
    later.load(state);
    tool_->follow(later);
  }

  Connection& connection_;
  std::shared_ptr<const PluginLibrary> library_;
  const ToolOptions& options_;
  PluginSetup setup_;
  std::unique_ptr<PluginInstance> tool_;
  const std::uint8_t* memory_ = nullptr;
  std::vector<std::unique_ptr<Code>> code_;
  std::vector<std::uint8_t> state_;
};

constexpr const char* kDescribe = "describe";
constexpr const char* kRun = "run";

void serve(Connection& connection, const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == kDescribe) {
    return describe(connection, PluginLibrary(arguments[1]));
  }
  if (arguments.size() != 5 || arguments[0] != kRun) throw UsageError("not for people");
  const ToolOptions options = ToolOptions::parse(arguments[1]);
  PluginSetup setup;
  setup.from = std::stoull(arguments[2]);
  setup.begins = arguments[3] == "1";
  setup.ram_bytes = std::stoull(arguments[4]);
  const auto library = std::make_shared<const PluginLibrary>(options.tool());
  Server server(connection, library, options, setup);
  describe(connection, *library);
  server.serve();
}

}  // namespace

std::vector<std::string> plugin_arguments(const ToolOptions& options, const PluginSetup& setup) {
  return {kRun, options.text(), std::to_string(setup.from), setup.begins ? "1" : "0",
          std::to_string(setup.ram_bytes)};
}

std::vector<std::string> plugin_arguments(const std::string& path) { return {kDescribe, path}; }

std::optional<int> serve_plugin(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], kPluginServerArgument) != 0) return std::nullopt;
  begin_guarded();
  Connection connection;
  try {
    serve(connection, {argv + 2, argv + argc});
    return 0;
  } catch (const std::exception& e) {
    const std::string why = e.what();
    connection.answer(PluginAnswer::failed,
                      {reinterpret_cast<const std::uint8_t*>(why.data()), why.size()});
    return 1;
  }
}

}  // namespace citcat::tools
