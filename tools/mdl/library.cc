#include "tools/mdl/library.h"

#include "formats/io/error.h"
#include "formats/io/input.h"
#include "tools/mdl/focus.h"
#include "tools/mdl/plan.h"

namespace citcat::mdl {

namespace {

/// Far more than anybody writes by hand.
constexpr std::size_t kLongest = std::size_t{1} << 20;

/// A path that is a root alone, as in the paper, is that of what lies deepest below it.
void complete(Constraint& constraint) {
  if (constraint.path.size() != 1) return;
  const std::optional<Root> root = find_root(constraint.path.front());
  if (root) constraint.path.resize(deepest(*root) + 1, "*");
}

}  // namespace

const char* const kOwnDefinitions = R"(
// A procedure, or one of a module, is open on the stack of the thread that runs.
constraint procedureConstraint /Code/*/* is counter {
  prepend preInsn $constraint[0].entry (* procedureConstraint++; *)
  append preInsn $constraint[0].return (* procedureConstraint -= 1; *)
}
constraint moduleConstraint /Code/* is counter {
  foreach func in $constraint[0].funcs {
    prepend preInsn func.entry (* moduleConstraint++; *)
    append preInsn func.return (* moduleConstraint -= 1; *)
  }
}
// The code that runs lies in the procedure, or in the module.
constraint procedureCode /Code/*/* is default;
constraint moduleCode /Code/* is default;

metric procedureCalls {
  name "calls of procedures";
  units calls;
  aggregateOperator sum;
  style EventCounter;
  constraint procedureConstraint;
  constraint moduleConstraint;
  base is counter {
    foreach func in $procedures { append preInsn func.entry constrained (* procedureCalls++; *) }
  }
}
metric cpu {
  name "instructions, with those of what was called";
  units instructions;
  aggregateOperator sum;
  style EventCounter;
  constraint cpuOfModule /Code/* is replace processTimer {
    foreach func in $constraint[0].funcs {
      append preInsn func.entry (* startProcessTimer(cpu); *)
      prepend preInsn func.return (* stopProcessTimer(cpu); *)
    }
  }
  constraint cpuOfProcedure /Code/*/* is replace processTimer {
    append preInsn $constraint[0].entry (* startProcessTimer(cpu); *)
    prepend preInsn $constraint[0].return (* stopProcessTimer(cpu); *)
  }
  base is processTimer {
    append preInsn $start.entry (* startProcessTimer(cpu); *)
    prepend preInsn $exit.entry (* stopProcessTimer(cpu); *)
  }
}
metric cpuExclusive {
  name "instructions of code itself";
  units instructions;
  aggregateOperator sum;
  style EventCounter;
  constraint procedureCode;
  constraint moduleCode;
  base is processTimer {
    append preInsn $start.entry (* startProcessTimer(cpuExclusive); *)
    prepend preInsn $exit.entry (* stopProcessTimer(cpuExclusive); *)
  }
}
metric systemCalls {
  name "system calls";
  units calls;
  aggregateOperator sum;
  style EventCounter;
  constraint procedureConstraint;
  constraint moduleConstraint;
  base is counter { append preInsn $syscall.entry constrained (* systemCalls++; *) }
}
metric interrupts {
  name "interrupts";
  units interrupts;
  aggregateOperator sum;
  style EventCounter;
  constraint procedureConstraint;
  constraint moduleConstraint;
  base is counter { append preInsn $interrupt.entry constrained (* interrupts++; *) }
}
metric dmaBytes {
  name "bytes that other bus masters wrote";
  units bytes;
  aggregateOperator sum;
  style EventCounter;
  base is counter { append preInsn $dma.write (* dmaBytes += $arg[1]; *) }
}
)";

Library::Library() { add("(own definitions)", kOwnDefinitions); }

void Library::add(std::string name, std::string text) {
  Source source(std::move(name), std::move(text));
  Program program = parse(source);
  for (Constraint& c : program.constraints) complete(c);
  for (Metric& m : program.metrics) {
    for (Constraint& c : m.own) complete(c);
  }
  texts_.push_back({std::move(source), std::move(program)});
  const Text& added = texts_.back();
  try {
    check(added.program, added.source, *this);
  } catch (...) {
    texts_.pop_back();
    throw;
  }
}

void Library::add_file(const std::string& path) {
  InputStream in(path);
  std::string text;
  for (auto block = in.next_block(); !block.empty(); block = in.next_block()) {
    text.append(block.begin(), block.end());
    if (text.size() > kLongest) {
      throw FormatError(path, kLongest, "expected the end of a text in MDL, found more than 1 MiB");
    }
  }
  add(path, std::move(text));
}

template <class Definition, std::vector<Definition> Program::*All, std::string Definition::*Name>
Library::Found<Definition> Library::find(const std::string& name) const {
  for (auto text = texts_.rbegin(); text != texts_.rend(); ++text) {
    const auto& all = text->program.*All;
    for (auto definition = all.rbegin(); definition != all.rend(); ++definition) {
      if ((*definition).*Name == name) return {&*definition, &text->source};
    }
  }
  return {};
}

Library::Found<Metric> Library::metric(const std::string& name) const {
  return find<Metric, &Program::metrics, &Metric::id>(name);
}
Library::Found<Constraint> Library::constraint(const std::string& name) const {
  return find<Constraint, &Program::constraints, &Constraint::name>(name);
}
Library::Found<ResourceList> Library::list(const std::string& name) const {
  return find<ResourceList, &Program::lists, &ResourceList::name>(name);
}

std::string Library::metric_names() const {
  std::string names;
  for (const Text& text : texts_) {
    for (const Metric& m : text.program.metrics) names += (names.empty() ? "" : ", ") + m.id;
  }
  return names;
}

}  // namespace citcat::mdl
