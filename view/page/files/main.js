// The page: shows what its address says, and changes its address when one goes elsewhere.

import { by_id, element, fill, number_text } from "./dom.js";
import { show_code } from "./code.js";
import { listen_to_keys, MOVES, OTHER_KEYS } from "./keys.js";
import { position_of } from "./links.js";
import { open_source } from "./source.js";
import { show_overview } from "./overview.js";
import { PANELS, show_calls } from "./panels.js";
import { current_place, go_to, is_of_this_recording, link_to, replace_place, set_identity } from "./place.js";
import { show_registers } from "./registers.js";
import { Timeline } from "./timeline.js";

/// While the run is not known yet, it is asked so often how far it is.
const LOOK_AGAIN = 700;

let source, run, timeline;
let shown = 0;  // the number of what is being shown: an older answer comes too late

function say(problem) {
  const place = by_id("problem");
  place.hidden = problem === null;
  place.textContent = problem ?? "";
}

/// Runs `act` and says what goes wrong in it.
async function guarded(act) {
  try {
    await act();
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}

// ---- the run

function show_verdict() {
  const verdict = by_id("verdict");
  verdict.className = `verdict ${run.verdict.state.replaceAll(" ", "-")}`;
  const moment = run.verdict.state === "diverged" ? " " : "";
  fill(verdict, element("strong", {}, run.verdict.state), `: ${run.verdict.text}`, moment,
    moment === "" ? "" : element("a", { href: link_to({ at: "divergence" }) }, "go there"));
}

async function look_at_run() {
  run = await source.ask("run");
  set_identity(run.identity);
  by_id("name").textContent = `${run.name}, ${run.processor}`;
  document.title = `${run.name} - citcat`;
  by_id("home").href = "#";
  show_verdict();
  if (current_place().at === undefined) show_overview(by_id("overview-content"), run);
  await timeline.show(run);
  document.body.dataset.known = run.complete ? "all" : "part";
  if (!run.complete) setTimeout(() => guarded(look_at_run), LOOK_AGAIN);
}

// ---- a moment

async function move(how, parameters = {}) {
  const at = document.body.dataset.moment;
  if (at === undefined) return;
  await guarded(async () => {
    const answer = await source.ask("move", { at, how, ...parameters });
    const of = source.is_live ? "run" : "stretch of this page";
    say(answer.why === "moved" ? null : { end: `The ${of} ends here.`, beginning: `The ${of} begins here.`, "took too long": "This took too long; it was ended on the way." }[answer.why]);
    go_to({ at: answer.moment });
  });
}

function make_moves() {
  const form = element("form", { class: "line", submit: (event) => {
    event.preventDefault();
    go_to({ at: by_id("position").value.trim().replaceAll(",", "") });
  } }, element("label", {}, "Instruction ", element("input", { id: "position", size: 14, autocomplete: "off", spellcheck: "false" })), element("button", {}, "Go"));
  const run_form = element("form", { class: "line", submit: (event) => {
    event.preventDefault();
    move(event.submitter?.value ?? "run", { address: by_id("run-to").value.trim().replace(/^0x/i, "") });
  } }, element("label", {}, "Address ", element("input", { id: "run-to", size: 16, required: true, autocomplete: "off", spellcheck: "false" })),
  element("button", { value: "run", title: "Run on to it (r)" }, "Run to"), element("button", { value: "run-back", title: "Run back to it (R)" }, "Run back to"));
  const buttons = MOVES.map(([key, how, title, text]) => element("button", { type: "button", "data-how": how, title: `${title}: ${text} (${key})`, click: () => move(how) }, title));
  fill(by_id("moves"), form, element("div", { class: "line", role: "group", "aria-label": "Steps" }, buttons), run_form);
}

function make_tabs() {
  const panel = current_place().panel ?? "memory";
  fill(by_id("tabs"), PANELS.filter(([, , , there]) => there(run)).map(([name, title]) =>
    element("a", { role: "tab", id: `tab-${name}`, href: link_to({ panel: name }), "aria-selected": name === panel ? "true" : "false", "aria-controls": "panel" }, title)));
  by_id("panel").setAttribute("aria-labelledby", `tab-${panel}`);
}

async function show_panel(moment, number) {
  make_tabs();
  const panel = current_place().panel ?? "memory";
  const found = PANELS.find(([name]) => name === panel) ?? PANELS[0];
  const content = element("div");
  await found[2](content, source, moment);
  if (number === shown) by_id("panel").replaceChildren(content);
}

async function show_moment(at, number) {
  const state = await source.ask("state", { at });
  if (number !== shown) return;
  if (state.moment !== at) replace_place({ at: state.moment });
  by_id("position").value = position_of(state.moment);
  show_registers(by_id("registers-content"), state, source);
  const code = await source.ask("code", { at: state.moment, before: 30, after: 40 });
  if (number !== shown) return;
  show_code(by_id("code-content"), code);
  await show_panel(state.moment, number);
  if (number !== shown) return;
  document.body.dataset.moment = state.moment;
  show_calls(by_id("calls-content"), await source.ask("calls", { at: state.moment }));
  if (number !== shown) return;
  document.body.dataset.shown = state.moment;
}

async function show_place() {
  const place = current_place();
  const number = ++shown;
  delete document.body.dataset.shown;
  if (!is_of_this_recording(place)) {
    say(`This link is of another recording (${place.id}), and not of ${run.name}.`);
    return;
  }
  by_id("overview").hidden = place.at !== undefined;
  by_id("moment").hidden = place.at === undefined;
  if (place.at === undefined) {
    delete document.body.dataset.moment;
    show_overview(by_id("overview-content"), run);
  } else if (await guarded(() => show_moment(place.at, number)) && number === shown) {
    say(null);
  }
  await guarded(() => timeline.show(run));
}

// ---- keys

function run_to(how) {
  by_id("run-to").focus();
  by_id("run-to").select();
  return how;
}

function press(key) {
  const found = MOVES.find(([of]) => of === key);
  if (found !== undefined) return move(found[1]), true;
  const middle = parseInt(current_place().at ?? run.from, 10);
  const acts = {
    r: () => run_to("run"),
    R: () => run_to("run-back"),
    g: () => by_id("position").select(),
    "/": () => go_to({ at: current_place().at ?? "begin", panel: "find" }),
    b: () => go_to({ at: String(run.from) }),
    e: () => go_to({ at: "end" }),
    h: () => { location.hash = ""; },
    "+": () => timeline.zoom(0.25, middle),
    "-": () => timeline.zoom(4, middle),
    0: () => { replace_place({ from: null, to: null }); timeline.show(run); },
    "?": () => by_id("help").showModal(),
  };
  if (acts[key] === undefined) return false;
  acts[key]();
  return true;
}

function make_help() {
  const rows = [...MOVES.map(([key, , title, text]) => [key, `${title}: ${text}`]), ...OTHER_KEYS];
  fill(by_id("help-content"), element("table", {}, element("tbody", {}, rows.map(([key, text]) =>
    element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, key)), element("td", {}, text))))));
}

async function begin() {
  if (!await guarded(async () => { source = await open_source(); })) return;
  // For scripts: citcat.ask("state", {at: "100"}), in an exported page too.
  globalThis.citcat = { ask: (question, parameters) => source.ask(question, parameters) };
  timeline = new Timeline(by_id("timeline-picture"), source);
  make_moves();
  make_help();
  if (!await guarded(look_at_run)) return;
  await show_place();
  addEventListener("hashchange", show_place);
  addEventListener("resize", () => guarded(() => timeline.show(run)));
  listen_to_keys(press);
  document.body.dataset.ready = "yes";
}

begin();
