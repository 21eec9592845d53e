// Builds: the nights and what they took, the snapshots, and going back to one of them.

import { get, offers, post } from "./api.js";
import { bar, card, count, el, fill } from "./dom.js";

export async function builds(view, { attempt, refresh }) {
  const [{ runs, stages }, { snapshots }, canGoBack] = await Promise.all([
    get("/runs"), get("/snapshots"), offers("post", "/snapshots/rollback"),
  ]);
  const slowest = Math.max(...runs.flatMap((run) => Object.values(run.seconds)), 0.001);
  const nights = runs.map((run) => el("details", { open: run === runs[0] },
    el("summary", {}, `${run.as_of.slice(0, 16).replace("T", " ")} · ${run.snapshot}`),
    Object.entries(run.seconds).map(([name, seconds]) => bar(name, seconds, slowest, `${seconds.toFixed(2)} s`))));
  const back = (snapshot) => el("button", { type: "button", onclick: async () => {
    if (!confirm(`Let ${snapshot} serve from now on?`)) return;
    const done = await attempt(() => post("/snapshots/rollback", { what: "graph", to: snapshot }));
    if (done) { refresh(); fill(view); await builds(view, { attempt, refresh }); }
  } }, "Serve this one");
  const rows = snapshots.map((one) => el("tr", {}, el("td", {}, el("code", {}, one.snapshot)),
    el("td", {}, one.created_at ?? ""), el("td", {}, `${count(one.nodes)} nodes, ${count(one.edges)} edges`),
    el("td", {}, one.serves ? "serves" : one.problem ?? (canGoBack ? back(one.snapshot) : ""))));
  const done = stages.map((stage) => el("tr", {}, el("td", {}, stage._key ?? stage.stage), el("td", {}, stage.as_of ?? ""),
    el("td", {}, el("code", {}, String(stage.generation ?? "").slice(0, 16)))));
  fill(view, card("Nights", nights.length ? nights : el("p", { class: "meta" }, "No night was run here: hades run nightly")),
    card("Snapshots", el("table", {}, el("tbody", {}, rows))),
    card("Stages", el("table", {}, el("tbody", {}, done))));
}
