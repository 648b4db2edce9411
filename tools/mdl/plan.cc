#include "tools/mdl/plan.h"

#include <fnmatch.h>

#include <algorithm>

#include "formats/io/error.h"
#include "tools/mdl/compiler.h"

namespace citcat::mdl {

namespace {

/// What the resource of a focus that is not told by code is: the constraint's path has a star for
/// each of its parts.
bool is_of(const Constraint& constraint, const Resource& resource) {
  return constraint.path.front() == root_name(resource.root) &&
         constraint.path.size() == resource.parts.size() + 1;
}

struct Choice {
  const Constraint* constraint = nullptr;
  const Source* source = nullptr;
};

/// The constraint of the metric for the resource.
Choice constraint_for(const Library& library, const Metric& metric, const Source& source,
                      const Resource& resource) {
  for (const Constraint& c : metric.own) {
    if (is_of(c, resource)) return {&c, &source};
  }
  for (const Metric::Reference& r : metric.constraints) {
    const auto found = library.constraint(r.name);
    if (found.definition == nullptr) source.refuse(r.at, "the name of a constraint");
    if (is_of(*found.definition, resource)) return {found.definition, found.source};
  }
  return {};
}

std::string paths_of(const Library& library, const Metric& metric) {
  std::string paths;
  const auto add = [&](const Constraint& c) {
    std::string path;
    for (const std::string& part : c.path) path += "/" + part;
    paths += (paths.empty() ? "" : ", ") + path;
  };
  for (const Constraint& c : metric.own) add(c);
  for (const Metric::Reference& r : metric.constraints) {
    if (const auto found = library.constraint(r.name); found.definition != nullptr) {
      add(*found.definition);
    }
  }
  return paths.empty() ? "none" : paths;
}

/// Code that says whether the focus' part of the code runs, or that is the metric's there.
void add_code(const Library& library, const Metric& metric, const Source& source,
              const Resource& code, Compiler& compiler, Plan& plan, bool& replaced) {
  const Choice choice = constraint_for(library, metric, source, code);
  if (choice.constraint == nullptr) {
    throw UsageError(code.text() + ": expected a resource that metric " + metric.id +
                     " has a constraint for; it has " + paths_of(library, metric));
  }
  const Constraint& constraint = *choice.constraint;
  if (constraint.by_context) {
    plan.code_by_place = true;
    return;
  }
  replaced = constraint.replaces;
  if (constraint.replaces) plan.base = constraint.base;
  compiler.add(constraint, *choice.source, code);
}

Plan plan_of(const Library& library, const Metric& metric, const Source& source,
             const Focus& focus) {
  Plan plan;
  plan.metric = metric.id;
  plan.title = metric.name;
  plan.aggregate = metric.aggregate.value_or(Aggregate::sum);
  plan.base = *metric.base;
  plan.focus = focus;
  Compiler compiler(library, metric, plan);
  bool replaced = false;
  for (const Resource& r : focus.resources) {
    if (const Choice own = constraint_for(library, metric, source, r);
        r.root == Root::code || (own.constraint != nullptr && !own.constraint->by_context)) {
      add_code(library, metric, source, r, compiler, plan, replaced);
    }
  }
  if (!replaced) compiler.add_base(source);
  plan.units = plan.is_timer() ? "instructions" : metric.units;
  return plan;
}

/// A focus that a constraint with this path is for.
Focus focus_for(const Constraint& constraint, const Source& source) {
  std::string text;
  for (const std::string& part : constraint.path) text += "/" + part;
  try {
    const Root root = root_of(constraint.path.front(), text);
    if (constraint.path.size() - 1 > deepest(root) || constraint.path.size() < 2) {
      throw UsageError("");
    }
    Focus focus;
    focus.resources.push_back({root, {constraint.path.begin() + 1, constraint.path.end()}, {}});
    return focus;
  } catch (const UsageError&) {
    source.refuse(constraint.at,
                  "a constraint for /Code/*, /Code/*/*, or one level of /Process, /Level, "
                  "/Interrupt, /Syscall, /Port, /Data or /Window",
                  "one for " + text);
  }
}

}  // namespace

bool ProcedureSet::has(const std::string& module, const std::string& procedure) const {
  return std::any_of(patterns.begin(), patterns.end(), [&](const Pattern& p) {
    return fnmatch(p.module.c_str(), module.c_str(), 0) == 0 &&
           fnmatch(p.procedure.c_str(), procedure.c_str(), 0) == 0;
  });
}

std::string ProcedureSet::text() const {
  std::string text;
  for (const Pattern& p : patterns) {
    text += (text.empty() ? "" : " ") + ("/Code/" + p.module) + "/" + p.procedure;
  }
  return text;
}

bool ProcedureTest::holds(const std::string& module, const std::string& procedure) const {
  return ((by_module ? module : procedure) == name) == equal;
}

bool Attachment::has(const std::string& module, const std::string& procedure) const {
  return procedures.has(module, procedure) &&
         std::all_of(tests.begin(), tests.end(),
                     [&](const ProcedureTest& t) { return t.holds(module, procedure); });
}

std::uint64_t Attachment::cost() const {
  std::uint64_t sum = constrained ? 1 : 0;
  for (const CodeNode& line : code) sum += line.cost();
  return sum;
}

bool Plan::is_for_each_code() const {
  const Resource* const code = focus.of(Root::code);
  return code != nullptr && code->is_pattern() && !code_by_place;
}

Plan make_plan(const Library& library, const MetricRequest& request) {
  const auto found = library.metric(request.metric);
  if (found.definition == nullptr) {
    throw UsageError("metric " + request.text + ": expected one of " + library.metric_names() +
                     "; found " + request.metric);
  }
  return plan_of(library, *found.definition, *found.source, request.focus);
}

void check(const Program& program, const Source& source, const Library& library) {
  for (const Constraint& c : program.constraints) {
    const Focus focus = focus_for(c, source);
    if (c.by_context) continue;
    Plan plan;
    Metric none;
    Compiler(library, none, plan).add(c, source, focus.resources.front());
  }
  for (const Metric& m : program.metrics) {
    plan_of(library, m, source, {});
    for (const Constraint& c : m.own) plan_of(library, m, source, focus_for(c, source));
    for (const Metric::Reference& r : m.constraints) {
      const auto found = library.constraint(r.name);
      if (found.definition == nullptr) source.refuse(r.at, "the name of a constraint");
      plan_of(library, m, source, focus_for(*found.definition, *found.source));
    }
  }
}

}  // namespace citcat::mdl
