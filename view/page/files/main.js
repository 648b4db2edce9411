// The page: shows what its address says, and changes its address when one goes elsewhere. Of several
// runs it shows one, or two that are compared, side by side.

import { by_id, element, fill, keep_focus, number_text, with_short_addresses } from "./dom.js";
import { show_code } from "./code.js";
import { show_figures } from "./figures.js";
import { listen_to_keys, MOVES, OTHER_KEYS } from "./keys.js";
import { position_of } from "./links.js";
import { open_figures, open_sources } from "./source.js";
import { show_overview, show_parting } from "./overview.js";
import { PANELS, show_calls } from "./panels.js";
import { current_place, go_to, is_of_this_recording, link_to, moment_of, replace_place, set_identities } from "./place.js";
import { show_registers } from "./registers.js";
import { address_digits } from "./memory.js";
import { Timeline } from "./timeline.js";

/// While the run is not known yet, it is asked so often how far it is.
const LOOK_AGAIN = 700;
/// The first screen shows all processors of a machine that has no more.
const MOST_AT_A_GLANCE = 4;

let sources = [], together, figures, runs = [], timelines = [];
let shown = 0;  // the number of what is being shown: an older answer comes too late
let seen = {};  // the place that was shown last
let followed = false;  // a link or a form led to what is being shown
let wanted_focus = null;  // the field that is to have the focus there

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

/// The number of the run that is looked at.
const chosen = () => Math.min(Math.max(Number(current_place().run) || 1, 1), sources.length);
const chosen_run = () => runs[chosen() - 1];
const all_runs = () => sources.map((_, i) => i + 1);
/// The numbers of the runs that are shown side by side.
const panes = () => (together.compared ? all_runs() : [chosen()]);
/// The same of the first screen.
const at_a_glance = () => (is_machine() && sources.length <= MOST_AT_A_GLANCE ? all_runs() : panes());
/// The runs are the processors of one machine.
const is_machine = () => together.verdict !== undefined;
const run_name = (number) => (is_machine() ? `Processor ${number - 1}` : together.runs[number - 1]);
const is_first_screen = () => current_place().at === undefined && current_place().screen === undefined;

// ---- the runs

/// `name`: of what it is the verdict, where there are several; `run`: the number of the run that it leads to.
function verdict_of(verdict, name, run) {
  // In other texts digits may be an address.
  const counts = verdict.state === "match" || verdict.state === "comparing";
  const text = counts ? verdict.text.replace(/\b\d{4,}\b/g, number_text) : verdict.text;
  const there = run === undefined || verdict.moment === undefined ? "" : [" ", element("a", { href: link_to({ run, at: verdict.moment }) }, "go there")];
  return element("span", { class: `verdict ${verdict.state.replaceAll(" ", "-")}` },
    name === null ? "" : element("span", { class: "run-name" }, `${name}: `), element("strong", {}, verdict.state), `: ${text}`, there);
}

/// That of a machine of several processors comes first.
function show_verdicts() {
  const of_machine = together.verdict === undefined ? [] : [verdict_of(together.verdict, "all processors", together.verdict.run)];
  fill(by_id("verdict"), of_machine, (is_first_screen() ? at_a_glance() : panes()).map((number) => {
    const { verdict } = runs[number - 1];
    const moment = verdict.state === "diverged" ? "divergence" : undefined;
    return verdict_of({ ...verdict, text: with_short_addresses(verdict.text, runs[number - 1].has), moment }, sources.length > 1 ? run_name(number) : null, number);
  }));
}

/// What is looked at.
function show_title() {
  const { name, processor } = chosen_run();
  const of_all = is_first_screen() && at_a_glance().length > 1;
  const names = together.compared ? together.runs.join(" and ") : of_all ? name.replace(/@\d+$/, "") : name;
  by_id("name").textContent = together.compared || processor === "unknown" ? names : `${names}, ${processor}`;
  document.title = `${names} - citcat`;
}

/// The screens, and the runs of which one is looked at.
function show_screens() {
  const place = current_place(), { at } = place;
  const link = (title, changes, is_here) => element("a", { href: link_to(changes), "aria-current": is_here ? "page" : false }, title);
  const screens = [link("At a glance", { at: null, screen: null }, at === undefined && place.screen === undefined)];
  if (figures !== null) screens.push(link("Figures", { screen: "figures" }, place.screen === "figures"));
  const first = at ?? (runs.length === 0 ? undefined : String(chosen_run().held?.[0] ?? chosen_run().from));
  if (first !== undefined) screens.push(link("Code", { at: first, screen: null }, at !== undefined && place.screen === undefined));
  const of_run = together.compared ? "Panels of " : is_machine() ? "Processor " : "Recording ";
  const chooser = sources.length === 1 ? "" : element("span", { class: "line", role: "group", "aria-label": of_run }, of_run,
    sources.map((_, i) => link(together.compared ? together.runs[i] : String(i), { run: i + 1 }, i + 1 === chosen())));
  fill(by_id("screens"), screens, chooser);
}

async function look_at_runs() {
  runs = await Promise.all(sources.map((source) => source.ask("run")));
  if (together.verdict?.state === "comparing") together = await sources[0].ask("runs");
  set_identities(runs.map((run) => run.identity));
  show_title();
  show_verdicts();
  show_screens();
  if (current_place().at === undefined) show_glance();
  await show_timelines();
  const complete = runs.every((run) => run.complete) && together.verdict?.state !== "comparing";
  document.body.dataset.known = complete ? "all" : "part";
  if (!complete) setTimeout(() => guarded(look_at_runs), LOOK_AGAIN);
}

function show_glance() {
  const parts = at_a_glance().map((number) => {
    const part = element("div", { class: "pane" });
    show_overview(part, runs[number - 1], number, sources[number - 1], figures !== null);
    if (at_a_glance().length > 1) part.prepend(element("h3", { class: "run-name" }, run_name(number)));
    return part;
  });
  fill(by_id("overview-content"), show_parting(together.parting), element("div", { class: parts.length > 1 ? "panes" : "" }, parts));
}

async function show_timelines() {
  const numbers = is_first_screen() ? at_a_glance() : panes();
  fill(by_id("timeline-picture"), numbers.map((number) =>
    [numbers.length > 1 ? element("h3", { class: "run-name" }, run_name(number)) : "", timelines[number - 1].target]));
  for (const number of numbers) await timelines[number - 1].show(runs[number - 1], moment_of(number));
}

// ---- a moment

/// Steps of runs side by side are made in each, if not told otherwise.
function moved_runs() {
  const only = by_id("only-chosen")?.checked;
  return together.compared && !only ? panes() : [chosen()];
}

async function move(how, parameters = {}) {
  if (document.body.dataset.moment === undefined) return;
  await guarded(async () => {
    const moments = {};
    let why = "moved";
    for (const number of moved_runs()) {
      const answer = await sources[number - 1].ask("move", { at: moment_of(number), how, ...parameters });
      moments[number] = answer.moment;
      why = answer.why === "moved" ? why : answer.why;
    }
    const of = sources[0].is_live ? "run" : "stretch of this page";
    say(why === "moved" ? null : { end: `The ${of} ends here.`, beginning: `The ${of} begins here.`, "took too long": "This took too long and was stopped on the way.",
      "no call": "No call that has not returned was seen on this stack." }[why]);
    go_to({ moments });
  });
}

function make_moves() {
  const form = element("form", { class: "line", submit: (event) => {
    event.preventDefault();
    const at = by_id("position").value.trim().replaceAll(",", "");
    go_to({ moments: Object.fromEntries(moved_runs().map((number) => [number, at])) });
  } }, element("label", {}, "Instruction ", element("input", { id: "position", size: 11, autocomplete: "off", spellcheck: "false" })), element("button", {}, "Go"));
  const run_form = element("form", { class: "line", submit: (event) => {
    event.preventDefault();
    const text = by_id("run-to").value, address = address_digits(text, chosen_run());
    if (address === undefined) return say(`Address: expected hexadecimal digits, found '${text}'`);
    move(event.submitter?.value ?? "run", { address });
  } }, element("label", {}, "Address ", element("input", { id: "run-to", size: 12, required: true, autocomplete: "off", spellcheck: "false" })),
  element("button", { value: "run", title: "Run on to it (r)" }, "Run to"), element("button", { value: "run-back", title: "Run back to it (R)" }, "Run back to"));
  const buttons = MOVES.map(([key, how, title, text]) => element("button", { type: "button", "data-how": how, title: `${title}: ${text} (${key})`, click: () => move(how) }, title));
  const only = together.compared ? element("label", {}, element("input", { id: "only-chosen", type: "checkbox" }), " only the run of the panels") : null;
  fill(by_id("moves"), form, element("div", { class: "line", role: "group", "aria-label": "Steps" }, buttons, only), run_form);
}

function make_tabs() {
  const panel = current_place().panel ?? "memory";
  fill(by_id("tabs"), PANELS.filter(([, , , there]) => there(chosen_run(), sources[chosen() - 1])).map(([name, title]) =>
    element("a", { role: "tab", id: `tab-${name}`, href: link_to({ panel: name }), "aria-selected": name === panel ? "true" : "false", "aria-controls": "panel" }, title)));
  by_id("panel").setAttribute("aria-labelledby", `tab-${panel}`);
}

async function show_panel(moment, number, state) {
  make_tabs();
  const panel = current_place().panel ?? "memory";
  const found = PANELS.find(([name]) => name === panel) ?? PANELS[0];
  const content = element("div");
  await found[2](content, sources[chosen() - 1], moment, chosen_run(), state);
  if (number === shown) keep_focus(by_id("panel"), () => by_id("panel").replaceChildren(content));
}

/// A part of a section for each run that is shown; one that is there stays, with the focus.
function make_panes(target, count, attributes) {
  while (target.childElementCount > count) target.lastElementChild.remove();
  while (target.childElementCount < count) target.append(element("div", { class: "pane" }));
  target.classList.toggle("panes", count > 1);
  const parts = [...target.children];
  parts.forEach((part, i) => { for (const [name, value] of Object.entries(attributes(i))) part.setAttribute(name, value); });
  return parts;
}

/// Marks registers that have other values in the other run.
function mark_differences(states) {
  if (states.length < 2) return;
  const values = states.map((state) => new Map(state.registers.map((r) => [r.name, r.value])));
  for (const row of document.querySelectorAll("#registers [data-register]")) {
    const name = row.dataset.register;
    row.classList.toggle("differs", values[0].get(name) !== values[1].get(name));
  }
}

async function show_moments(number) {
  const numbers = panes();
  const at = numbers.map((n) => moment_of(n) ?? position_of(current_place().at));
  const states = await Promise.all(numbers.map((n, i) => sources[n - 1].ask("state", { at: at[i] })));
  const moments = Object.fromEntries(numbers.map((n, i) => [n, states[i].moment]));
  if (number !== shown) return;
  if (numbers.some((n) => moment_of(n) !== moments[n])) replace_place({ moments });
  const moment = moments[chosen()];
  by_id("position").value = position_of(moment);
  make_panes(by_id("registers-content"), numbers.length, () => ({})).forEach((part, i) =>
    keep_focus(part, () => show_registers(part, states[i], sources[numbers[i] - 1], numbers[i], runs[numbers[i] - 1].has)));
  mark_differences(states);
  const codes = await Promise.all(numbers.map((n) => sources[n - 1].ask("code", { at: moments[n], before: 30, after: 40 })));
  if (number !== shown) return;
  make_panes(by_id("code-content"), numbers.length, (i) => ({ tabindex: 0, role: "region", "aria-label": `Code of ${together.runs[numbers[i] - 1]}` }))
    .forEach((part, i) => show_code(part, codes[i], numbers[i], runs[numbers[i] - 1].has));
  const { address, text, place } = states[numbers.indexOf(chosen())];
  by_id("now").textContent = `Instruction ${position_of(moment)}, ${place ?? address}: ${text}`;
  await show_panel(moment, number, states[numbers.indexOf(chosen())]);
  if (number !== shown) return;
  document.body.dataset.moment = moment;
  show_calls(by_id("calls-content"), await sources[chosen() - 1].ask("calls", { at: moment }));
  if (number !== shown) return;
  document.body.dataset.shown = moment;
}

/// Brings what a link or a form has led to into the window.
function reveal(place) {
  const differs = (name) => seen[name] !== place[name];
  const led = followed && !by_id("moment").hidden;
  const to_panel = ["panel", "space", "address", "text", "function"].some(differs), to_moment = differs("at");
  seen = place;
  followed = false;
  if (wanted_focus !== null) document.querySelector(wanted_focus)?.focus();
  wanted_focus = null;
  if (!led) return;
  const line = document.querySelector("#code .here")?.getBoundingClientRect();
  if (to_panel) by_id("panels").scrollIntoView({ block: "nearest" });
  else if (to_moment && line !== undefined && (line.top < 0 || line.bottom > innerHeight)) by_id("code").scrollIntoView({ block: "nearest" });
}

async function show_place() {
  const place = current_place();
  const number = ++shown;
  delete document.body.dataset.shown;
  if (!is_of_this_recording(place)) {
    say(`This link belongs to another recording (${place.id}), not to ${together.runs.join(" and ")}.`);
    return;
  }
  const screen = place.screen === "figures" && figures !== null ? "figures" : place.at === undefined ? "overview" : "moment";
  for (const name of ["figures", "overview", "moment"]) by_id(name).hidden = name !== screen;
  document.body.classList.toggle("compared", together.compared);
  show_title();
  show_verdicts();
  show_screens();
  if (screen !== "moment") {
    delete document.body.dataset.moment;
    if (screen === "overview") show_glance();
    else show_figures(by_id("figures-content"), figures, runs.map((run) => run.has), together.compared);
  } else if (await guarded(() => show_moments(number)) && number === shown) {
    say(null);
  }
  await guarded(show_timelines);
  if (number === shown) reveal(place);
  document.body.dataset.screen = screen;
}

// ---- keys

const FIND_FIELD = "#panel input[name=text]";

function press(key) {
  const found = MOVES.find(([of]) => of === key);
  if (found !== undefined) return move(found[1]), true;
  const run = chosen_run(), timeline = timelines[chosen() - 1];
  const middle = parseInt(current_place().at ?? run.from, 10);
  const select = (id) => {
    if (by_id("moment").hidden) return;
    by_id(id).select();
  };
  const acts = {
    r: () => select("run-to"),
    R: () => select("run-to"),
    g: () => select("position"),
    "/": () => {
      const { at, panel, screen } = current_place();
      if (at !== undefined && panel === "find" && screen === undefined) return document.querySelector(FIND_FIELD)?.focus();
      wanted_focus = FIND_FIELD;
      followed = true;
      go_to({ at: at ?? String(run.held?.[0] ?? run.from), panel: "find" });
    },
    b: () => go_to({ at: String(run.held?.[0] ?? run.from) }),
    e: () => go_to({ at: "end" }),
    h: () => { location.hash = ""; },
    f: () => figures !== null && go_to({ screen: "figures" }),
    "+": () => timeline.zoom(0.25, middle),
    "-": () => timeline.zoom(4, middle),
    "<": () => timeline.pan(-0.25),
    ">": () => timeline.pan(0.25),
    0: () => { replace_place({ from: null, to: null }); guarded(show_timelines); },
    "?": () => by_id("help").showModal(),
  };
  if (acts[key] === undefined) return false;
  acts[key]();
  return true;
}

function make_help() {
  const keys = OTHER_KEYS.filter(([key]) => key !== "f" || figures !== null);
  const rows = [...MOVES.map(([key, , title, text]) => [key, `${title}: ${text}`]), ...keys];
  fill(by_id("help-content"), element("table", {}, element("tbody", {}, rows.map(([key, text]) =>
    element("tr", {}, element("th", { scope: "row" }, element("kbd", {}, key)), element("td", {}, text))))));
}

async function begin() {
  if (!await guarded(async () => { ({ sources, together } = await open_sources()); })) return;
  figures = open_figures();
  // For scripts: citcat.ask("state", {at: "100"}), in an exported page too.
  globalThis.citcat = { ask: (question, parameters) => sources[chosen() - 1].ask(question, parameters) };
  timelines = sources.map((source, i) => new Timeline(element("div", { class: "timeline-picture" }), source, i + 1, () => guarded(show_timelines)));
  make_moves();
  make_help();
  if (!await guarded(look_at_runs)) return;
  await show_place();
  addEventListener("hashchange", show_place);
  addEventListener("click", (event) => { followed = event.target.closest?.("a[href^='#']") instanceof Element; }, true);
  addEventListener("submit", (event) => {
    followed = true;
    // At another moment one goes on with the keys.
    if (event.target.matches("#moves form, #find-call")) document.activeElement?.blur();
  }, true);
  addEventListener("resize", () => guarded(show_timelines));
  listen_to_keys(press);
  document.body.dataset.ready = "yes";
}

begin();
