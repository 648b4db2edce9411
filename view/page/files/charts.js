// Pictures of figures: curves, flame graphs, maps of memory, levels of pins. Each is drawn as wide as
// there is room, and has a text that says what it shows.

import { element, number_text, share_text, shape } from "./dom.js";

/// An element that `draw(width)` fills, now and whenever there is another width.
function drawn(draw) {
  const holder = element("div", { class: "chart" });
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(holder.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    // Not at once: what is drawn may change the sizes of others that are observed.
    requestAnimationFrame(() => holder.replaceChildren(draw(width)));
  }).observe(holder);
  return holder;
}

const picture_of = (width, height, text) =>
  shape("svg", { role: "img", "aria-label": text, viewBox: `0 0 ${width} ${height}`, width, height });
const words = (x, y, text, kind = "") => shape("text", { x, y, class: kind }, text);

/// A curve over sizes that double from one to the next; points are [size, percent].
export function curve(title, unit, points) {
  const text = `${title}: ${points.map(([size, percent]) => `${number_text(size)} ${unit} ${share_text(percent)}`).join(", ")}`;
  const sizes = points.map((p) => Math.log2(p[0])), percents = points.map((p) => p[1]);
  const low = Math.max(0, Math.min(...percents)), high = Math.max(...percents, low + 0.001);
  const bottom = Math.max(0, low - (high - low) * 0.1);
  return drawn((width) => {
    const left = 58, right = width - 16, top = 18, base = 150;
    const x_at = (size) => left + ((right - left) * (Math.log2(size) - sizes[0])) / Math.max(sizes[sizes.length - 1] - sizes[0], 1);
    const y_at = (percent) => base - ((base - top) * (percent - bottom)) / (high - bottom);
    const picture = picture_of(width, 190, text);
    for (let i = 0; i <= 4; ++i) {
      const value = bottom + ((high - bottom) * i) / 4;
      picture.append(shape("path", { d: `M${left} ${y_at(value)}H${right}`, class: "grid" }), words(left - 6, y_at(value) + 4, share_text(value), "lane-title"));
    }
    const every = Math.ceil(points.length / Math.max(2, (right - left) / 64));
    points.forEach(([size], i) => { if (i % every === 0) picture.append(words(x_at(size), base + 17, number_text(size), "tick")); });
    picture.append(words((left + right) / 2, base + 35, unit, "tick"),
      shape("path", { d: points.map((p, i) => `${i === 0 ? "M" : "L"}${x_at(p[0]).toFixed(1)} ${y_at(p[1]).toFixed(1)}`).join(""), class: "curve" }));
    for (const [size, percent] of points) {
      picture.append(shape("circle", { cx: x_at(size), cy: y_at(percent), r: 3.5, class: "bar" }, shape("title", {}, `${number_text(size)} ${unit}: ${share_text(percent)}`)));
    }
    return picture;
  });
}

/// The rows of a tree of calls as nested nodes; parents come before their children.
function tree_of(rows, all) {
  const nodes = [{ name: "all", total: all, children: [] }];
  for (const row of rows) {
    const node = { name: row.procedure, total: row.total, children: [] };
    nodes[row.parent].children.push(node);
    nodes.push(node);
  }
  return nodes[0];
}

/// A flame graph: a click, or Enter, opens a call; Backspace goes back.
export function flame_graph(rows, all) {
  const root = tree_of(rows, all);
  let path = [root], again = () => {};
  const status = element("p", { class: "hint", "aria-live": "polite" });
  const open = (node) => {
    path = node === null ? path.slice(0, Math.max(1, path.length - 1)) : node === root ? [root] : [...path, node];
    again();
  };
  const holder = drawn((width) => {
    const drawing = () => {
      const now = path[path.length - 1], boxes = [];
      let deepest = 0;
      const put = (node, left, depth) => {
        const wide = (node.total / Math.max(now.total, 1)) * width;
        if (wide < 1) return;
        deepest = Math.max(deepest, depth);
        const share = share_text((100 * node.total) / Math.max(root.total, 1));
        const box = shape("g", { class: `process${depth % 8}`, click: () => open(node) },
          shape("rect", { x: left, y: 20 * depth, width: Math.max(wide - 0.5, 0.5), height: 19 }, shape("title", {}, `${node.name}: ${number_text(node.total)} instructions, ${share} of all`)));
        const room = Math.floor((wide - 6) / 7);
        if (room > 2) box.append(words(left + 3, 20 * depth + 14, node.name.slice(0, room), "process-name"));
        boxes.push(box);
        let at = left;
        for (const child of node.children) {
          put(child, at, depth + 1);
          at += (child.total / Math.max(now.total, 1)) * width;
        }
      };
      put(now, 0, 0);
      const picture = picture_of(width, 20 * (deepest + 1), `Flame graph of ${number_text(root.total)} instructions; the same as a table below`);
      picture.append(...boxes);
      status.textContent = `${path.map((n) => n.name).join(" > ")}: ${number_text(now.total)} instructions. A click or Enter opens a call, Backspace goes back.`;
      return picture;
    };
    again = () => holder.replaceChildren(drawing());
    return drawing();
  });
  holder.tabIndex = 0;
  holder.classList.add("flame");
  holder.setAttribute("role", "group");
  holder.setAttribute("aria-label", "Flame graph");
  holder.addEventListener("keydown", (event) => {
    const { children } = path[path.length - 1];
    if (event.key === "Enter" && children.length > 0) open(children.reduce((a, b) => (b.total > a.total ? b : a)));
    else if (event.key === "Backspace") open(null);
    else return;
    event.preventDefault();
  });
  return element("div", {}, element("p", { class: "controls" }, element("button", { type: "button", click: () => open(null) }, "Back"),
    element("button", { type: "button", click: () => open(root) }, "Whole tree")), holder, status);
}

/// Regions of memory side by side, a row for each of `kinds` ({key, title}), the darker the more.
export function memory_map(regions, region_bytes, kinds) {
  const text = `Map of ${regions.length} regions of ${number_text(region_bytes)} bytes: ${kinds.map((k) => `${regions.filter((r) => r[k.key] > 0).length} ${k.title}`).join(", ")}; the same as a table below`;
  const address_at = (i) => parseInt(regions[i].address, 16);
  return drawn((width) => {
    const left = Math.min(150, width / 3), x_at = (i) => left + ((width - left - 4) * i) / regions.length;
    const picture = picture_of(width, kinds.length * 24 + 22, text);
    kinds.forEach((kind, row) => {
      const most = Math.log(1 + Math.max(...regions.map((r) => r[kind.key])));
      picture.append(words(left - 8, row * 24 + 17, kind.title, "lane-title"));
      regions.forEach((region, i) => {
        if (!region[kind.key]) return;
        picture.append(shape("rect", { x: x_at(i), y: row * 24 + 3, width: Math.max(x_at(i + 1) - x_at(i) - 0.2, 0.6), height: 18, class: "bar",
          opacity: (0.25 + (0.75 * Math.log(1 + region[kind.key])) / most).toFixed(2) },
        shape("title", {}, `${region.address}: ${number_text(region[kind.key])} ${kind.title}; ${region.processes}`)));
      });
    });
    // Where addresses are left out the next one is named.
    let free = left;
    regions.forEach((region, i) => {
      const gap = i === 0 || address_at(i) !== address_at(i - 1) + region_bytes, room = 7.5 * region.address.length;
      if (!gap || x_at(i) < free || x_at(i) + room > width) return;
      picture.append(words(x_at(i), kinds.length * 24 + 16, region.address));
      free = x_at(i) + room + 8;
    });
    return picture;
  });
}

/// The levels of pins around a bus cycle, those that move first.
export function pins(wave) {
  const moves = (c) => c.levels.includes("0") && c.levels.includes("1");
  const channels = [...wave.channels.filter(moves), ...wave.channels.filter((c) => !moves(c))];
  const count = channels.length === 0 ? 0 : channels[0].levels.length;
  const text = `Levels of ${channels.length} pins in samples ${number_text(wave.first)} to ${number_text(wave.first + count - 1)}; the bus cycle is in ${number_text(wave.begin)} to ${number_text(wave.end)}; the same as text below`;
  return drawn((width) => {
    const left = 84, x_at = (sample) => left + ((width - left - 8) * (sample - wave.first)) / Math.max(count, 1);
    const picture = picture_of(width, channels.length * 18 + 22, text);
    picture.append(shape("rect", { x: x_at(wave.begin), y: 0, width: x_at(wave.end + 1) - x_at(wave.begin), height: channels.length * 18, class: "not-known" }));
    channels.forEach((channel, row) => {
      const levels = [...channel.levels].map((level, i) => `${i === 0 ? `M${left} ` : "V"}${row * 18 + (level === "1" ? 4 : 15)}H${x_at(wave.first + i + 1).toFixed(1)}`);
      picture.append(words(left - 8, row * 18 + 14, channel.name, "lane-title"), shape("path", { d: levels.join(""), class: "curve" }));
    });
    picture.append(words(left, channels.length * 18 + 16, `sample ${number_text(wave.first)}`), words(width - 90, channels.length * 18 + 16, number_text(wave.first + count - 1)));
    return picture;
  });
}
