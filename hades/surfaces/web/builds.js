// Builds: the nights and what they took, the snapshots, and going back to one of them.

import { get, offers, post } from "./api.js";
import { bar, card, count, el, fill } from "./dom.js";

export async function builds(view, { attempt, refresh }) {
  const [{ runs, stages }, { snapshots }, canGoBack] = await Promise.all([
    get("/runs"), get("/snapshots"), offers("post", "/snapshots/rollback"),
  ]);
  const slowest = Math.max(...runs.flatMap((run) => Object.values(run.seconds)), 0.001);
  const nights = runs.map((run) => el("details", { open: run === runs[0] },
    el("summary", {}, `${run.as_of.slice(0, 16).replace("T", " ")} · ${run.snapshot} · ${Object.values(run.seconds).reduce((sum, one) => sum + one, 0).toFixed(1)} s`),
    Object.entries(run.seconds).map(([name, seconds]) => bar(name, seconds, slowest, `${seconds.toFixed(2)} s`))));
  const back = (snapshot) => el("button", { type: "button", onclick: async () => {
    if (!confirm(`Let ${snapshot} serve from now on?`)) return;
    const done = await attempt(() => post("/snapshots/rollback", { what: "graph", to: snapshot }));
    if (done) { refresh(); fill(view); await builds(view, { attempt, refresh }); }
  } }, "Serve this one");
  const done = stages.filter((stage) => !/^source-/.test(stage.stage ?? stage._key)).map((stage) => el("details", {}, el("summary", {}, `${stage.stage ?? stage._key} `, el("small", {}, (stage.as_of ?? "").slice(0, 10))),
    el("dl", { class: "facts" }, facts(stage.report).flatMap(([name, value]) => [el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, value)]))));
  const rows = snapshots.map((one) => el("tr", {}, el("td", {}, el("code", {}, one.snapshot.slice(0, 14))),
    el("td", {}, (one.created_at ?? "").slice(0, 16).replace("T", " ")), el("td", {}, `${count(one.nodes)} nodes, ${count(one.edges)} edges`),
    el("td", {}, one.serves ? el("b", { class: "good" }, "serves") : one.problem ?? (canGoBack ? back(one.snapshot) : ""))));
  const readable = snapshots.filter((one) => !one.problem);
  fill(view, el("div", { class: "columns" },
    el("div", {}, card("Nights", nights.length ? nights : el("p", { class: "meta" }, "No build yet. ", el("code", {}, "hades run nightly"), " runs one.")),
      done.length > 0 && card("Stages, as last completed", done)),
    el("div", {}, card("Snapshots", rows.length ? el("table", {}, el("tbody", {}, rows)) : el("p", { class: "meta" }, "Nothing is published yet.")),
      readable.length > 1 && compareCard(readable, attempt))));
}

function compareCard(snapshots, attempt) {
  const choice = (name, chosen) => el("select", { name }, snapshots.map((one) =>
    el("option", { value: one.snapshot, selected: one === chosen }, `${(one.created_at ?? "").slice(0, 16).replace("T", " ")} ${one.snapshot.slice(0, 8)}`)));
  const before = choice("before", snapshots[1]), after = choice("after", snapshots[0]);
  const place = el("div", { "aria-live": "polite" });
  return card("What changed", el("form", { class: "row", onsubmit: async (event) => {
    event.preventDefault();
    const found = await attempt(() => get("/snapshots/compare", { before: before.value, after: after.value }));
    if (found) fill(place, comparison(found));
  } }, el("label", {}, "From", before), el("label", {}, "To", after), el("button", { class: "main" }, "Compare")), place);
}

const NAMES = { doc_chunks: "passages", entities: "names", clusters: "topics", funcs: "functions", files: "files" };

function comparison(found) {
  const kinds = Object.entries(found.nodes).filter(([, row]) => row.before || row.after);
  const listed = (word, kind, row) => row[`${word}_names`].length > 0 && el("details", {}, el("summary", {}, `${word} ${NAMES[kind] ?? kind} (${count(row[word])})`),
    el("ul", {}, row[`${word}_names`].map((name) => el("li", {}, name.slice(0, 100)))));
  return el("div", {}, el("table", { class: "figures" }, el("thead", {}, el("tr", {}, ["", "before", "after", "added", "removed"].map((name) => el("th", {}, name)))),
    el("tbody", {}, kinds.map(([kind, row]) => el("tr", {}, el("td", {}, NAMES[kind] ?? kind), ["before", "after", "added", "removed"].map((part) => el("td", {}, count(row[part]))))),
      Object.entries(found.edges).filter(([, row]) => row.before || row.after).map(([kind, row]) => el("tr", {}, el("td", {}, kind.replaceAll("_", " ")), el("td", {}, count(row.before)), el("td", {}, count(row.after)), el("td", {}), el("td", {}))))),
    kinds.flatMap(([kind, row]) => [listed("added", kind, row), listed("removed", kind, row)]));
}

// The plain figures of a stage's report; lists and nested parts are left to `hades status --json`.
function facts(report) {
  return Object.entries(report ?? {}).filter(([name, value]) => ["number", "string", "boolean"].includes(typeof value) && value !== "" && !/hash|generation|params|build$/.test(name))
    .map(([name, value]) => [name, typeof value === "number" ? count(value) : String(value)]).slice(0, 18);
}
