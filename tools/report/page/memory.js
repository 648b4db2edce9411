// The physical memory that the run used, region by region.

const memoryKinds = [
  {key: "image_bytes", title: "known before the run", fill: 0}, {key: "code_bytes", title: "executed", fill: 2}, {key: "reads", title: "read", fill: 4},
  {key: "writes", title: "written", fill: 1}, {key: "tables", title: "page and system tables", fill: 3}, {key: "external_writes", title: "DMA, devices", fill: 5}];

// Of a sampled run writes are counted in windows alone; whether a frame was stored to at all is
// known.
const changedKind = {
  key: 'stored',
  title: 'stored to (exact)',
  fill: 6
};

function memorySection(run) {
  const kinds = run.analyze.sample ? [...memoryKinds, changedKind] : memoryKinds;
  const map = tool(run, "map"), size = map.region_bytes;
  const regions = map.regions.map(r => ({...r, stored: r.changed === 'yes' ? 1 : 0}));
  const address = r => parseInt(r.address, 16);
  const text = `Map of ${regions.length} regions of ${groups(size)} bytes, ${
                   groups(map.pages)} page frames used: ` +
      kinds.map(k => `${regions.filter(r => r[k.key]).length} ${k.title}`).join(', ') +
      '. The same as a table below.';
  const svg = picture(kinds.length * 24 + 28, text);
  drawWide(svg, width => {
    const left = 150, root = d3.select(svg);
    root.selectAll("*").remove();
    // Regions side by side, without the addresses that were not used.
    const x = d3.scale.linear().domain([0, regions.length]).range([left, width - 8]);
    kinds.forEach((kind, row) => {
      const most = Math.log(1 + d3.max(regions, r => r[kind.key]));
      root.append("text").attr({x: 4, y: row * 24 + 17}).text(kind.title);
      regions.forEach((r, i) => {
        if (!r[kind.key]) return;
        root.append("rect").attr({x: x(i), y: row * 24 + 3, width: Math.max(x(1) - x(0) - 0.2, 0.6), height: 18})
          .style("fill", color(kind.fill)).attr("opacity", 0.3 + 0.7 * Math.log(1 + r[kind.key]) / most)
          .append("title").text(`${r.address}: ${exact(r[kind.key])} ${kind.title}${r.device === "yes" ? ", no memory" : ""}; ${r.processes}`);
      });
    });
    // Where addresses are left out, and at both ends, they are named.
    const y = kinds.length * 24 + 16;
    let free = left;
    regions.forEach((r, i) => {
      const gap = i === 0 || address(r) !== address(regions[i - 1]) + size;
      if (gap && x(i) >= free && x(i) + 60 < width) {
        root.append("text").attr({x: x(i), y}).text(r.address);
        root.append("line").attr("class", "lane-line").attr({x1: x(i), x2: x(i), y1: 0, y2: y - 12});
        free = x(i) + 70;
      }
    });
  });
  return [
    svg,
    element(
        'p', {class: 'faint'},
        'The darker, the more. Addresses that were not used are left out; where that is so the next one is named.' +
            (map.ram_bytes ? ` The machine has ${groups(map.ram_bytes)} bytes of memory.` : '')),
    details(
        'The map as a table',
        table(
            `Regions of ${groups(size)} bytes`,
            [
              {title: 'address', of: r => r.address, code: true},
              ...kinds.map(k => ({title: k.title, of: r => r[k.key], number: true})),
              {title: 'at level 3', of: r => r.user, number: true},
              {title: 'memory', of: r => r.device === 'yes' ? 'no' : 'yes'},
              {title: 'touched by', of: r => r.processes, wide: true}
            ],
            regions))
  ];
}
