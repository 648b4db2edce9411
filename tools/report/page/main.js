// Puts the sections into the page, for each run that it shows.

const report = JSON.parse(document.getElementById("data").textContent);

function jsonSection(run) {
  const save = (name, value) => {
    const button = element("button", {type: "button"}, `Save ${name}`);
    button.onclick = () => {
      const link = element("a", {download: name, href: URL.createObjectURL(new Blob([JSON.stringify(value)], {type: "application/json"}))});
      link.click();
      URL.revokeObjectURL(link.href);
    };
    return button;
  };
  return [element("p", {}, "All figures come from this command, and the page holds what it printed:"),
    codeBlock("Command", run.analyze_command),
    element("div", {class: "controls"}, save("analyze.json", run.analyze), run.verify ? save("verify.json", run.verify) : null, save("info.json", run.info))];
}

// Differences of two runs in the figures that are one number each.
function comparisonSection() {
  const [a, b] = report.runs;
  const shareOf = (run, name) => { const c = tool(run, "count").classes.find(k => k.class === name); return c ? c.percent : 0; };
  const classes = [...new Set([a, b].flatMap(r => tool(r, "count").classes.map(c => c.class)))];
  const sum = (run, key) => d3.sum(tool(run, "timeline").stretches, s => s[key]);
  const rows = [["instructions", r => r.analyze.instructions], ["different instructions", r => tool(r, "count").static_instructions],
    ...timelineLanes.map(l => [l.title, r => sum(r, l.key)]), ["executions at level 3", r => sum(r, "user")],
    ["page frames used", r => tool(r, "map").pages], ["bytes of the archive", r => r.info.bytes],
    ...classes.map(c => [`${c} (% of executions)`, r => shareOf(r, c)])].map(([name, value]) => ({name, a: value(a), b: value(b)}));
  // Numbers of windows say nothing beside those of a whole run: shares do.
  const sampled = a.analyze.sample || b.analyze.sample;
  const differing =
      [...new Set(
           [a, b].flatMap(r => tool(r, 'func').procedures_by_instructions.map(f => f.procedure)))]
          .map(name => {
            const own = r => {
              const f = tool(r, 'func').procedures_by_instructions.find(p => p.procedure === name);
              return f ? (sampled ? f.share : f.own) : 0;
            };
            return {name, a: own(a), b: own(b)};
          })
          .sort((p, q) => Math.abs(q.b - q.a) - Math.abs(p.b - p.a))
          .slice(0, 100);
  const columns = [{title: "", of: r => r.name, wide: true}, {title: runName(a), of: r => r.a, number: true}, {title: runName(b), of: r => r.b, number: true},
    {title: "difference", of: r => r.b - r.a, number: true}];
  return [
    table('In numbers', columns, rows),
    table(
        (sampled ? 'Own instructions of functions in %, of samples' :
                   'Own instructions of functions') +
            ', largest difference first',
        columns, differing)
  ];
}

const runName = run => run.name + (run.whole ? "" : ` ${groups(run.analyze.from)} to ${groups(run.analyze.to)}`);

const sections = [
  {id: 'verdict', title: 'What it is, and whether it is right', make: verdictSection},
  {id: 'divergence', title: 'The divergence', make: divergenceSection},
  {id: 'timeline', title: 'Timeline', make: timelineSection, tools: ['timeline', 'moments']},
  {
    id: 'events',
    title: 'Events, ports, processes',
    make: portsSection,
    tools: ['events', 'io', 'switches']
  },
  {id: 'mix', title: 'Instruction mix', make: mixSection, tools: ['count']},
  {id: 'functions', title: 'Functions', make: functionsSection, tools: ['func']},
  {id: 'blocks', title: 'Hot blocks', make: blocksSection, tools: ['count']},
  {id: 'calls', title: 'Call tree', make: flameSection, tools: ['func']},
  {id: 'memory', title: 'Physical memory', make: memorySection, tools: ['map']},
  {
    id: 'curves',
    title: 'Caches, TLB, branches',
    make: curvesSection,
    tools: ['reuse', 'cache', 'tlb', 'bpred']
  },
  {id: 'sizes', title: 'Size of the archive', make: sizeSection},
  {id: 'provenance', title: 'Where it came from', make: provenanceSection},
  {id: 'json', title: 'The figures as JSON', make: jsonSection},
];

function addSection(id, title, content) {
  document.getElementById("main").append(element("section", {id, "aria-labelledby": id + "-title"}, element("h2", {id: id + "-title"}, title), content));
  document.getElementById("sections").append(element("a", {href: "#" + id}, title), " ");
}

if (report.runs.length === 2) addSection("comparison", "Comparison", element("div", {}, ...comparisonSection()));
for (const {id, title, make, tools} of sections) {
  const parts = report.runs.map(run => ({run, content: make(run)})).filter(p => p.content);
  if (!parts.length) continue;
  const runs = element("div", {class: report.runs.length === 2 ? "runs two" : "runs"});
  for (const {run, content} of parts) {
    runs.append(element(
        'div', {},
        report.runs.length > 1 ? element('p', {class: 'run-name'}, runName(run)) : null,
        sampleNote(run, tools), ...content));
  }
  addSection(id, title, runs);
}
document.documentElement.dataset.ready = "yes";
