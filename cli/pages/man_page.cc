#include "cli/pages/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "cli/exit_code.h"

namespace citcat {
namespace {

/// Text for a macro's argument or inside a line: minus signs that can be copied, no escapes.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '"') {
      out += "\\(dq";
    } else if (c == '`') {
      out += "\\(ga";
    } else {
      out += c;
    }
  }
  return out;
}

/// A line of text; one that begins like a request is kept from being one.
std::string roff_line(std::string_view text) {
  const bool request = !text.empty() && (text.front() == '.' || text.front() == '\'');
  return (request ? "\\&" : "") + roff(text) + "\n";
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string heading(const std::string& page) {
  return ".\\\" Made from the program's definitions of its options.\n" +
         fmt::format(".TH {} 1 \"\" \"citcat {}\" \"User Commands\"\n", upper(roff(page)),
                     CITCAT_VERSION);
}

/// "-o, --output FILE" as a tag, and what it means.
std::string option_text(const OptionDescription& d) {
  std::string tag;
  if (d.is_argument()) {
    tag = italic(d.argument);
  } else {
    for (auto name = d.names.rbegin(); name != d.names.rend(); ++name) {
      tag += (tag.empty() ? "" : ", ") + bold(*name);
    }
    if (!d.argument.empty()) tag += " " + italic(d.argument);
  }
  std::string text = ".TP\n" + tag + "\n" + roff_line(d.text + ".");
  if (!d.choices.empty()) {
    std::string choices;
    for (const std::string& choice : d.choices) {
      choices += (choices.empty() ? "" : ", ") + bold(choice);
    }
    text += ".br\nOne of " + choices + ".\n";
  }
  if (!d.usual.empty()) text += ".br\nDefault: " + bold(d.usual) + ".\n";
  if (d.required && !d.is_argument()) text += ".br\nRequired.\n";
  if (d.repeated && !d.is_argument()) text += ".br\nMay be repeated.\n";
  return text;
}

std::string synopsis(const CommandDescription& command) {
  std::string line = bold("citcat " + command.name) + " [" + italic("OPTIONS") + "]";
  for (const OptionDescription& d : command.arguments) {
    const std::string name = italic(d.argument) + (d.repeated ? " ..." : "");
    line += d.required ? " " + name : " [" + name + "]";
  }
  return line + "\n";
}

std::string exit_statuses() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitMeaning& exit : kExitMeanings) {
    text += ".TP\n" + bold(std::to_string(static_cast<int>(exit.code))) + "\n" +
            roff_line(std::string(exit.meaning) + ".");
  }
  return text;
}

constexpr const char* kEnvironment =
    R"(.SH ENVIRONMENT
.TP
\fBCITCAT_LOG\fR
What to print of the program's decisions on the standard error output, as
\fIMODULE\fR:\fILEVEL\fR, several with commas between: modules \fBimport\fR, \fBplace\fR and
\fBsession\fR, levels \fBinfo\fR, \fBdebug\fR and \fBoff\fR.
.TP
\fBCITCAT_MONITOR\fR
The monitor plugin that \fBcitcat record\fR loads into the emulator.
.TP
\fBNO_COLOR\fR
When set, and not empty, a terminal is given no colours.
.TP
\fBTMPDIR\fR
Where input that cannot be read at any offset is kept meanwhile.
)";

}  // namespace

std::string program_page(const std::vector<CommandDescription>& commands) {
  std::string page = heading("citcat");
  page +=
      ".SH NAME\ncitcat \\- compute instruction traces from captures of a processor's bus\n"
      ".SH SYNOPSIS\n" +
      bold("citcat") + " " + italic("COMMAND") + " [" + italic("OPTIONS") + "] " + italic("FILES") +
      "\n.br\n" + bold("citcat help") + " [" + italic("COMMAND") + "]\n.br\n" +
      bold("citcat --version") + "\n.SH DESCRIPTION\n" +
      "citcat turns a recording of a processor's bus into the exact sequence of instructions that\n"
      "it executed. It replays the processor on what it read from the bus, and holds the replay "
      "to\n"
      "everything else that the bus showed.\n"
      "Results go to the standard output, everything else to the standard error output.\n"
      ".SH COMMANDS\n";
  std::string others;
  for (const CommandDescription& command : commands) {
    page += ".TP\n.BR citcat\\-" + roff(command.name) + " (1)\n" + roff_line(command.summary + ".");
    // A comma after a cross reference is part of the macro's last argument.
    if (!others.empty()) others += ",\n";
    others += ".BR citcat\\-" + roff(command.name) + " (1)";
  }
  return page + exit_statuses() + kEnvironment + ".SH SEE ALSO\n" + others + "\n";
}

std::string command_page(const CommandDescription& command) {
  std::string page = heading("citcat-" + command.name);
  std::string summary = command.summary;
  summary[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(summary[0])));
  page += ".SH NAME\n" + roff("citcat-" + command.name) + " \\- " + roff_line(summary);
  page += ".SH SYNOPSIS\n" + synopsis(command);
  page += ".SH DESCRIPTION\n" + roff_line(command.summary + ".");
  for (const OptionDescription& d : command.arguments) page += option_text(d);
  page += ".SH OPTIONS\n";
  for (const OptionDescription& d : command.options) page += option_text(d);
  page += ".SH EXAMPLE\n.nf\n";
  std::string_view rest = command.example;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    page += roff_line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return page + ".fi\n" + exit_statuses() + ".SH SEE ALSO\n.BR citcat (1)\n";
}

}  // namespace citcat
