// Which figures are of the whole run, and which of windows of it alone.

const sampleText = s => `a sample: ${groups(s.instructions)} of ${groups(s.of)} instructions, in ${
    groups(s.windows)} windows (${s.plan})`;

// Of the tools that a section shows; nothing where all of the run was told to all.
function sampleNote(run, names) {
  const sample = run.analyze.sample;
  if (!sample || !names) return null;
  const rows =
      names.map(name => sample.tools.find(t => t.tool === name || t.tool.startsWith(name + ':')))
          .filter(t => t);
  const exactOnes = rows.filter(t => t.figures === 'exact');
  if (exactOnes.length === rows.length)
    return element('p', {class: 'faint exact'}, `Exact: of all ${groups(sample.of)} instructions.`);
  const all = rows.every(t => t.figures === 'sample');
  const some = rows.filter(t => t.figures !== 'exact')
                   .map(t => t.figures === 'sample' ? t.tool : t.sampled)
                   .join('; ');
  return element(
      'p', {class: 'sample'},
      all ? `What follows is ${sampleText(sample)}. Numbers are those of the windows.` :
            `${some}: ${
                sampleText(sample)}; numbers are those of the windows. All else here is exact.`);
}

// Above all: that there are such figures, and how to have all of them exact.
function sampleSummary(run) {
  const sample = run.analyze.sample;
  if (!sample) return [];
  const names = sample.tools.filter(t => t.figures !== 'exact')
                    .map(t => t.figures === 'sample' ? t.tool : `${t.tool} (${t.sampled})`);
  return [element(
      'p', {class: 'sample'},
      `Some figures below are ${sampleText(sample)}: ${
          names.join(', ')}. All others, the verdict among them, are exact. `,
      element('code', {}, 'citcat report --sample none'),
      ' makes them all exact, and takes longer.')];
}
