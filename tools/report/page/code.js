// What was executed: the mix, hot blocks and functions with their code, the call tree.

function mixSection(run) {
  const count = tool(run, "count");
  const rows = (title, key, name) => table(title, [
    {title: name, of: r => r[name]}, {title: "executions", of: r => r.count, number: true}, {title: "share", of: r => share(r.percent), number: true},
    {title: "", of: r => { const bar = element("div", {class: "bar", "aria-hidden": "true"}); bar.style.width = r.percent / 100 * 10 + "rem"; return bar; }}], count[key]);
  return [element("p", {}, `${groups(count.executions)} executions of ${groups(count.static_instructions)} different instructions, ` +
    `${groups(count.iterations)} further iterations of REP. ${groups(count.blocks.for_90_percent)} of ${groups(count.blocks.static)} blocks make 90 % of them.`),
  element("div", {class: "grid"}, rows("By class", "classes", "class"), rows("By mnemonic", "mix", "mnemonic"))];
}

// Lines of code from `begin` up to before `end`, of those that the page lists.
function codeText(listing, begin, end) {
  const rows = listing.filter(r => { const a = parseInt(r.address, 16); return a >= begin && a < end; });
  if (!rows.length) return element("p", {class: "faint"}, "None of its instructions is among those listed.");
  return codeBlock("Code", rows.map(r => `${groups(r.executions).padStart(14)}  ${r.address} ${r.bytes.padEnd(22)} ${r.text}`).join("\n"));
}

function blocksSection(run) {
  const count = tool(run, "count");
  const parts = count.blocks.hottest.map(b => {
    const begin = parseInt(b.address, 16);
    // A block's instructions lie one behind the other: so many of the listing from its address on.
    const rows = count.listing.filter(r => parseInt(r.address, 16) >= begin).slice(0, b.instructions);
    const end = rows.length ? parseInt(rows[rows.length - 1].address, 16) + 1 : begin;
    return details(`${b.address}: ${share(b.percent)}, ${groups(b.executions)} times ${groups(b.instructions)} instructions`, codeText(count.listing, begin, end));
  });
  return [element("p", {}, "Blocks with most executions; each opens to its code, with how often each instruction ran."), ...parts];
}

function functionsSection(run) {
  const func = tool(run, "func"), listing = tool(run, "count").listing;
  const rows = func.procedures_by_instructions;
  const begins = rows.filter(f => f.address !== "").map(f => parseInt(f.address, 16)).sort((a, b) => a - b);
  const codeOf = f => {
    if (f.address === "") return element("span", {}, f.procedure);
    const begin = parseInt(f.address, 16);
    const next = begins.find(b => b > begin) ?? 2 ** 32;
    const opened = details(f.procedure);
    // Made when it is wanted: there are many.
    opened.addEventListener("toggle", () => { if (opened.children.length === 1) opened.append(codeText(listing, begin, next)); });
    return opened;
  };
  return [table(`Functions with most instructions, of ${groups(func.procedures)}`, [
    {title: "function", of: codeOf, wide: true}, {title: "module", of: f => f.module}, {title: "calls", of: f => f.calls, number: true},
    {title: "own", of: f => f.own, number: true}, {title: "share", of: f => share(f.share), number: true},
    {title: "with what it called", of: f => f.with_callees, number: true}], rows)];
}

// The rows of a tree of call paths as nested objects; parents come before their children.
function treeOf(rows, all) {
  const root = {name: "all", total: all, children: []};
  const nodes = rows.map(r => ({name: r.procedure, own: r.own, calls: r.calls, total: r.total, children: []}));
  rows.forEach((r, i) => (r.parent ? nodes[r.parent - 1] : root).children.push(nodes[i]));
  for (const node of [root, ...nodes]) node.children.sort((a, b) => b.total - a.total);
  return root;
}

class Flame {
  constructor(run, target) {
    const tree = tool(run, "func");
    this.root = treeOf(tree.tree, tree.instructions);
    this.path = [this.root];
    const text = `Flame graph of ${groups(tree.instructions)} instructions on ${groups(tree.paths)} call paths. Enter opens the widest call, Backspace goes back. The same as a table below.`;
    this.svg = picture(60, text);
    operated(this.svg, "flame graph");
    this.svg.classList.add("flame");
    this.status = element("p", {class: "faint", "aria-live": "polite"});
    const back = element("button", {type: "button"}, "back");
    const top = element("button", {type: "button"}, "whole tree");
    back.onclick = () => this.back();
    top.onclick = () => { this.path = [this.root]; this.draw(); };
    target.append(element("div", {class: "controls"}, back, top), this.svg, this.status,
      details("The tree as a table", table("Call paths with most instructions", [
        {title: "path", of: r => r.path, wide: true}, {title: "calls", of: r => r.calls, number: true}, {title: "own", of: r => r.own, number: true},
        {title: "with what it called", of: r => r.total, number: true}], this.rows())));
    this.svg.addEventListener("keydown", e => {
      if (e.key === "Enter" && this.now().children.length) this.open(this.now().children[0]);
      else if (e.key === "Backspace") this.back();
      else return;
      e.preventDefault();
    });
    drawWide(this.svg, width => { this.width = width; this.draw(); });
  }
  now() { return this.path[this.path.length - 1]; }
  back() { if (this.path.length > 1) this.path.pop(); this.draw(); }
  open(node) { this.path.push(node); this.draw(); }
  rows() {
    const all = [];
    const walk = (node, path) => {
      for (const child of node.children) {
        const here = path ? `${path} > ${child.name}` : child.name;
        all.push({path: here, calls: child.calls, own: child.own, total: child.total});
        walk(child, here);
      }
    };
    walk(this.root, "");
    return all.sort((a, b) => b.total - a.total).slice(0, 200);
  }
  draw() {
    if (!this.width) return;
    const svg = d3.select(this.svg), height = 20, all = this.now().total || 1;
    svg.selectAll("*").remove();
    let deepest = 0;
    const put = (node, left, depth) => {
      const width = node.total / all * this.width;
      if (width < 1) return;
      deepest = Math.max(deepest, depth);
      const rect = svg.append("rect").attr({x: left, y: depth * height, width, height: height - 1}).style("fill", color(depth));
      rect.append("title").text(`${node.name}: ${groups(node.total)} instructions (${share(of(node.total, this.root.total))})`);
      rect.on("click", () => this.open(node));
      const room = Math.floor((width - 6) / 7);
      if (room > 2) svg.append("text").attr({x: left + 3, y: depth * height + 14}).text(node.name.slice(0, room));
      let at = left;
      for (const child of node.children) { put(child, at, depth + 1); at += child.total / all * this.width; }
    };
    put(this.now(), 0, 0);
    this.svg.setAttribute("height", (deepest + 1) * height);
    fit(this.svg, this.width);
    this.status.textContent = `${this.path.map(n => n.name).join(" > ")}: ${groups(this.now().total)} instructions, ${share(of(this.now().total, this.root.total))} of all.`;
  }
}

function flameSection(run) {
  const target = element("div", {});
  new Flame(run, target);
  return [target];
}
