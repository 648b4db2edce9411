// citcat sql: queries a recorded run in SQL.

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/divergence_report.h"
#include "cli/interrupt.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/replay_progress.h"
#include "cli/sql/result_printer.h"
#include "cli/terminal.h"
#include "events/capture_time.h"
#include "formats/io/byte_sink.h"
#include "formats/io/error.h"
#include "sql/database/database.h"
#include "sql/tables/table.h"
#include "tools/guest/recording_symbols.h"

namespace citcat {
namespace {

struct SqlArguments {
  std::string recording, query;
  std::vector<std::string> symbols;
  bool json = false, csv = false, schema = false, unchecked = false, from_start = false;

  ResultForm form() const {
    if (json && csv) throw UsageError("--json and --csv exclude each other");
    if (json) return ResultForm::json;
    if (csv) return ResultForm::csv;
    return is_terminal(STDOUT_FILENO) ? ResultForm::box : ResultForm::columns;
  }
};

/// One table, or all; `name` empty: all.
std::string schema_text(const std::string& name) {
  std::string text;
  for (const sql::Table* table : sql::table_list()) {
    if (!name.empty() && name != table->name()) continue;
    text += (text.empty() ? "-- " : "\n-- ") + std::string(table->meaning()) + "\n" +
            sql::schema_of(*table, true) + "\n";
  }
  if (text.empty()) throw UsageError(".schema: there is no table " + name + " (see .tables)");
  return text;
}

/// Queries and commands, as they are written at the prompt.
class SqlShell {
 public:
  SqlShell(sql::Database& database, ResultForm form, const Console& console)
      : database_(database), console_(console) {
    set_form(form);
  }

  void run(const std::string& text) { database_.run(text, *printer_); }

  /// Lines of the standard input. At a terminal what is wrong is said, and the next one asked for.
  void run_input() {
    const bool asks = is_terminal(STDIN_FILENO);
    std::string statement, line;
    for (;;) {
      if (asks) std::cout << (statement.empty() ? "citcat> " : "   ...> ") << std::flush;
      if (!std::getline(std::cin, line)) break;
      if (statement.empty() && line.starts_with(".")) {
        if (line == ".quit" || line == ".exit") return;
        attempt(asks, [&] { command(line); });
        continue;
      }
      statement += line + "\n";
      if (!sql::Database::is_complete(statement)) continue;
      attempt(asks, [&] { run(statement); });
      statement.clear();
    }
    if (asks) std::cout << "\n";
    attempt(asks, [&] { run(statement); });
  }

 private:
  template <class F>
  void attempt(bool goes_on, F&& act) {
    if (!goes_on) return act();
    try {
      act();
    } catch (const Interrupted&) {
      acknowledge_interrupt();
      console_.error("interrupted");
    } catch (const Error& e) {
      console_.error(e.what());
    }
  }

  void set_form(ResultForm form) {
    printer_ = make_result_printer(form, [this](std::string_view text) {
      out_.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    });
  }

  void command(const std::string& line) {
    const std::size_t blank = line.find(' ');
    const std::string word = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (word == ".tables") {
      for (const sql::Table* table : sql::table_list()) {
        console_.print(fmt::format("{:<16} {}\n", table->name(), table->meaning()));
      }
    } else if (word == ".schema") {
      console_.print(schema_text(rest));
    } else if (word == ".mode" && rest == "csv") {
      set_form(ResultForm::csv);
    } else if (word == ".mode" && rest == "json") {
      set_form(ResultForm::json);
    } else if (word == ".mode" && rest == "box") {
      set_form(ResultForm::box);
    } else if (word == ".mode" && rest == "columns") {
      set_form(ResultForm::columns);
    } else if (word == ".help") {
      console_.print(
          ".tables          tables\n"
          ".schema [TABLE]  their columns\n"
          ".mode MODE       box, columns, csv or json\n"
          ".quit            end\n"
          "select ...;      anything that SQLite understands and that changes nothing\n");
    } else {
      throw UsageError(line +
                       ": expected .tables, .schema, .mode box|columns|csv|json, .help or .quit");
    }
    console_.flush();
  }

  sql::Database& database_;
  const Console& console_;
  StdoutSink out_;
  std::unique_ptr<sql::ResultSink> printer_;
};

/// What the evidence has against what was printed. True where it has something.
bool warn_of(const sql::RowSource& source, const Console& console) {
  const auto& contradiction = source.contradiction();
  if (!contradiction) return false;
  if (contradiction->divergence) {
    const double hz = clock_rate(source.file().recording().provenance);
    for (const std::string& line : divergence_lines(*contradiction->divergence, hz)) {
      console.warn(line);
    }
  }
  if (contradiction->differs_before) {
    console.warn(fmt::format(
        "the replay is not the one that was verified: it went another way before instruction {}",
        *contradiction->differs_before));
  }
  return true;
}

/// A recording of one processor, opened to be asked.
class AskedRecording {
 public:
  AskedRecording(const SqlArguments& arguments, const std::string& name, sql::SharedRows* shared,
                 const Console& console)
      : placed_(open_placed(name, console)),
        symbols_(tools::known_symbols(placed_.file, arguments.symbols)) {
    sql::SourceOptions options;
    options.path = name;
    // Several recordings of one processor have numbers as well.
    if (names_processor_of_several(name)) {
      options.processor = static_cast<unsigned>(*parse_recording_name(name).number);
    }
    options.shared = shared;
    options.placed_now = placed_.search.has_value();
    options.check = !arguments.unchecked;
    options.use_checkpoints = !arguments.from_start;
    options.progress = replay_progress(placed_.file, console);
    source_.emplace(placed_.file, symbols_, std::move(options));
  }
  sql::RowSource& source() { return *source_; }

 private:
  const PlacedRecording placed_;
  const Symbols symbols_;
  std::optional<sql::RowSource> source_;
};

ExitCode run_sql(const SqlArguments& arguments, const Console& console) {
  const ResultForm form = arguments.form();
  if (arguments.schema) {
    console.print(schema_text(""));
    return ExitCode::ok;
  }
  if (arguments.recording.empty())
    throw UsageError("RECORDING is required (see citcat sql --help)");
  const std::optional<MachineFile> machine = find_machine(arguments.recording);
  sql::SharedRows shared(machine ? &*machine : nullptr, !arguments.unchecked, check_interrupt);
  const bool is_alone = !machine && names_processor_of_several(arguments.recording);
  std::vector<std::unique_ptr<AskedRecording>> recordings;
  std::vector<sql::RowSource*> sources;
  for (const std::string& name : names_of_processors(arguments.recording)) {
    recordings.push_back(
        std::make_unique<AskedRecording>(arguments, name, is_alone ? nullptr : &shared, console));
    sources.push_back(&recordings.back()->source());
  }
  sql::Database database(sources, check_interrupt);
  // A reader that has seen enough is no failure.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    SqlShell shell(database, form, console);
    if (arguments.query.empty()) {
      shell.run_input();
    } else {
      shell.run(arguments.query);
    }
  } catch (const ReaderGone&) {
  }
  bool contradicts = !shared.stopped().empty();
  for (const std::size_t p : shared.stopped()) {
    console.warn(
        fmt::format("the replay of processor {} did not reach its end: see citcat verify", p));
  }
  for (const sql::RowSource* source : sources) contradicts |= warn_of(*source, console);
  return contradicts ? ExitCode::answer_is_no : ExitCode::ok;
}

CommandRun define_sql(const CommandParser& parser) {
  auto arguments = std::make_shared<SqlArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to read");
  parser.add_option("QUERY", arguments->query,
                    "SQL statements (default: read them from the standard input)");
  parser.add_flag("--schema", arguments->schema, "Only print the tables and their columns");
  define_symbols(parser, arguments->symbols);
  define_unchecked(parser, arguments->unchecked);
  define_from_start(parser, arguments->from_start);
  parser.add_flag("--json", arguments->json, "Print an array of objects in one line");
  parser.add_flag("--csv", arguments->csv, "Print comma-separated values, a header line first");
  return [arguments](const Console& console) { return run_sql(*arguments, console); };
}

}  // namespace

extern const Command kSqlCommand{
    "sql", "Query the run in SQL: instructions, accesses, events and more are tables",
    "citcat sql boot.citcat 'select mnemonic, count(*) from instructions group by 1 order by 2 "
    "desc limit 5'\n"
    "citcat sql boot.citcat --csv 'select process, name, count(*) from syscalls group by 1, 2'\n"
    "citcat sql boot.citcat 'select * from memory(1000, 0xc0000000, 0xc000000f)'\n"
    "citcat sql --schema",
    define_sql};

}  // namespace citcat
