// Builds: what the next one would take, what each did and checked, the alerts, the snapshots, and going back to one.

import { get, offers, post } from "./api.js";
import { bar, card, count, el, fill } from "./dom.js";

const ORDER = ["sources", "embeddings", "edges", "topics", "weights", "bridges", "exam", "ranker", "contracts", "released"];
// A build is named by the time it began.
export const began = (run) => run.build.replace(/^.*?(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d).*$/, "$1-$2-$3 $4:$5");
const when = (text) => (text ?? "").slice(0, 16).replace("T", " ");
const together = (seconds) => Object.values(seconds).reduce((sum, one) => sum + (one ?? 0), 0);

export async function builds(view, { attempt, refresh }) {
  // Going back changes what everybody is answered from: the page offers it to administrators.
  const [{ runs, stages, alerts, next }, { snapshots }, isAdmin] = await Promise.all([
    get("/runs"), get("/snapshots"), offers("post", "/memory/erase"),
  ]);
  const slowest = Math.max(...runs.flatMap((run) => Object.values(run.seconds)), 0.001);
  const nights = runs.map((run) => buildDetails(run, slowest, run === runs[0]));
  const done = stages.filter((stage) => !/^(source|contract)-/.test(stage.stage ?? stage._key)).map((stage) => el("details", {}, el("summary", {}, `${stage.stage ?? stage._key} `, el("small", {}, (stage.as_of ?? "").slice(0, 10))),
    el("dl", { class: "facts" }, facts(stage.report).flatMap(([name, value]) => [el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, value)]))));
  const readable = snapshots.filter((one) => !one.problem);
  fill(view, el("div", { class: "columns" },
    el("div", {}, card("Builds", nights.length ? nights : el("p", { class: "meta" }, "No build yet. ", el("code", {}, "hades build"), " runs one.")),
      done.length > 0 && card("Stages, as last completed", done)),
    el("div", {}, nextCard(next), alerts.length > 0 && alertCard(alerts), snapshotCard(snapshots, runs, isAdmin, back),
      readable.length > 1 && compareCard(readable, runs, attempt))));

  async function back(snapshot) {
    if (!confirm(`Let ${snapshot} serve from now on?`)) return;
    const moved = await attempt(() => post("/snapshots/rollback", { what: "graph", to: snapshot }));
    if (moved) { refresh(); fill(view); await builds(view, { attempt, refresh }); }
  }
}

// One build: seconds of each stage with what it did, the contracts, and what was sent to paid models.
function buildDetails(run, slowest, open) {
  const broken = run.contracts.filter((one) => one.broken.length);
  const rules = run.contracts.reduce((sum, one) => sum + one.rules, 0);
  const ordered = Object.entries(run.seconds).sort(([one], [other]) => ORDER.indexOf(one) - ORDER.indexOf(other));
  const rows = ordered.flatMap(([name, seconds]) => [
    bar(name, seconds, slowest, run.skipped.includes(name) ? "nothing to do" : `${seconds.toFixed(2)} s`),
    run.log[name] && el("p", { class: "meta log" }, run.log[name]),
  ]);
  return el("details", { open, class: "build" },
    el("summary", {}, `${began(run)} · ${together(run.seconds).toFixed(1)} s · `, el("code", {}, run.snapshot.slice(0, 12))), rows,
    run.contracts.length > 0 && el("details", { class: "contracts" },
      el("summary", {}, "Contracts: ", broken.length ? el("b", { class: "bad" }, `${broken.length} broken`) : el("b", { class: "good" }, `${count(rules)} rules hold`)),
      el("ul", {}, run.contracts.map((one) => el("li", {}, `${one.contract}: ${count(one.rules)} rules`, one.broken.length > 0 && el("b", { class: "bad" }, ` broken: ${one.broken.join(", ")}`), one.note && el("small", {}, ` ${one.note}`))))),
    el("p", { class: "meta" }, `Cost: ${count(run.embedded ?? 0)} chunks embedded, ${run.model_calls ? `${count(run.model_calls)} calls of a language model` : "no language model called"}.`));
}

function nextCard(next) {
  if (!next?.stages) return false;
  const known = Object.values(next.stages).filter((one) => one !== null);
  const { price, embedding_tokens: tokens, calls } = next.cost;
  const cost = price === null ? "not known: set the prices of a million tokens (HADES_EMBEDDER_PRICE, HADES_LLM_INPUT_PRICE, HADES_LLM_OUTPUT_PRICE)"
    : !price ? "0" : `about ${price.toLocaleString("en", { maximumFractionDigits: 4 })} in the currency of your prices (${count(tokens)} tokens to embed, at most ${count(calls)} summaries)`;
  return card("Next build", el("dl", { class: "facts" },
    el("dt", {}, "time"), el("dd", {}, known.length ? `about ${together(next.stages).toFixed(0)} s, the median of ${next.runs} earlier ${next.runs === 1 ? "build" : "builds"}` : "not measured yet"),
    el("dt", {}, "cost"), el("dd", {}, cost),
    el("dt", {}, "stages"), el("dd", {}, Object.keys(next.stages).join(", ")),
    next.chunks_to_embed > 0 && [el("dt", {}, "waiting"), el("dd", {}, `${count(next.chunks_to_embed)} chunks without a vector`)]));
}

function alertCard(alerts) {
  return card("Alerts", el("ul", { class: "plain" }, alerts.map((one) => el("li", {}, el("b", { class: "bad" }, one.what), ` ${one.subject}`,
    el("small", { class: "meta" }, [when(one.at), one.detail].filter(Boolean).join(" · "))))));
}

// When a snapshot was built; one that was published without a build has only its own date.
function built(one, runs) {
  const run = runs.find((each) => each.snapshot === one.snapshot);
  return run ? began(run) : when(one.created_at);
}

function snapshotCard(snapshots, runs, isAdmin, back) {
  const rows = snapshots.map((one) => el("tr", {}, el("td", {}, el("code", {}, one.snapshot.slice(0, 14))),
    el("td", {}, built(one, runs)), el("td", {}, `${count(one.nodes)} nodes, ${count(one.edges)} edges`),
    el("td", {}, one.serves ? el("b", { class: "good" }, "serves") : one.problem ?? (isAdmin ? el("button", { type: "button", onclick: () => back(one.snapshot) }, "Roll back") : ""))));
  return card("Snapshots", rows.length ? el("table", {}, el("tbody", {}, rows)) : el("p", { class: "meta" }, "Nothing is published yet."),
    !isAdmin && snapshots.length > 1 && el("p", { class: "meta" }, "To go back to an older one: ", el("code", {}, "hades rollback graph --to SNAPSHOT"), " or ", el("code", {}, "hades serve --mode admin"), "."));
}

function compareCard(snapshots, runs, attempt) {
  const choice = (name, chosen) => el("select", { name }, snapshots.map((one) =>
    el("option", { value: one.snapshot, selected: one === chosen }, `${built(one, runs)} ${one.snapshot.slice(0, 8)}`)));
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
