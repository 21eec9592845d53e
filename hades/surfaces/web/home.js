// Home: the corpus at a glance. Topics as a map, questions to begin with, what it speaks of, the last builds.

import { get, offers } from "./api.js";
import { began } from "./builds.js";
import { bar, card, count, el, fill } from "./dom.js";
import { treemap } from "./treemap.js";
import { uploads } from "./uploads.js";

const FORMATS = {
  "text/markdown": "Markdown", "text/plain": "text", "text/html": "HTML", "application/pdf": "PDF", "text/x-python": "Python",
  "text/csv": "tables", "application/x-ipynb+json": "notebooks", "message/rfc822": "mail", "application/mbox": "mail",
  "application/epub+zip": "books", "text/vtt": "subtitles", "application/x-subrip": "subtitles",
};
const TILES = [["documents", "documents"], ["doc_chunks", "passages"], ["entities", "names"], ["relations", "relations"],
  ["funcs", "functions"], ["clusters", "topics"], ["memory_states", "memories"]];

export async function home(view, { attempt, refresh }) {
  const [overview, { topics }, { runs }] = await Promise.all([
    get("/overview"), get("/hierarchy", { limit: 200 }).catch(() => ({ topics: [] })), get("/runs", { limit: 5 }),
  ]);
  const again = () => { refresh(); if (/^#?(home)?$/.test(location.hash)) home(view, { attempt, refresh }); };
  const adding = (await offers("post", "/uploads")) && await uploads(attempt, again);
  if (!overview.counts.documents && !overview.counts.memory_states) return fill(view, nothing(), adding);
  const question = el("input", { name: "query", required: true, autofocus: true, "aria-label": "Question",
    placeholder: overview.questions[0] ?? "Ask about the corpus" });
  const ask = (text) => { location.hash = `#ask/${encodeURIComponent(text)}`; };
  const form = el("form", { class: "hero", onsubmit: (event) => { event.preventDefault(); ask(question.value.trim() || question.placeholder); } },
    el("h2", {}, "Ask the corpus"), el("div", { class: "row" }, question, el("button", { class: "main" }, "Ask")),
    overview.questions.length > 0 && el("p", { class: "chips", "aria-label": "Example questions" }, overview.questions.map((text) =>
      el("button", { type: "button", class: "chip", onclick: () => ask(text) }, text))));
  const tiles = el("dl", { class: "tiles" }, TILES.filter(([name]) => overview.counts[name]).map(([name, label]) =>
    el("div", {}, el("dt", {}, label), el("dd", {}, count(overview.counts[name])))));
  const shown = topics.filter((topic) => topic.level === 1);
  const map = shown.length > 0 && card("Topics", el("p", { class: "meta" }, "Area is the number of members. Choose one to open it."),
    treemap(shown.slice(0, 40).map((topic) => ({ name: topic.name || topic.id, size: topic.size, group: topic.parent, topic })),
      ({ topic }) => { location.hash = `#topics/${encodeURIComponent(topic.id)}`; }));
  const names = overview.names.length > 0 && card("Named most often", el("p", { class: "chips" }, overview.names.map((one) =>
    el("button", { type: "button", class: `chip type-${one.type}`, title: one.summary || `${one.type}, ${count(one.mentions)} mentions`,
      onclick: () => ask(one.type === "code_symbol" ? `What does ${one.name} do?` : `What is ${one.name}?`) },
      one.name, el("small", {}, ` ${count(one.mentions)}`)))));
  fill(view, form, tiles, el("div", { class: "columns" }, el("div", {}, map, last(runs)), el("div", {}, adding, names, formats(overview))));
}

function formats(overview) {
  const named = new Map();
  for (const [mime, rows] of Object.entries(overview.formats)) {
    const name = FORMATS[mime] ?? mime.replace(/^(text|application)\/(x-)?/, "").replace(/^vnd\..*word.*/, "Word").replace(/^vnd\..*present.*/, "slides").replace(/^vnd\..*sheet.*/, "sheets");
    named.set(name, (named.get(name) ?? 0) + rows);
  }
  const most = Math.max(...named.values(), 1);
  return card("Documents", [...named].map(([name, rows]) => bar(name, rows, most, count(rows))));
}

function last(runs) {
  if (!runs.length) return card("Builds", el("p", { class: "meta" }, "No build yet. Run ", el("code", {}, "hades build"), "."));
  const total = (run) => Object.values(run.seconds).reduce((sum, seconds) => sum + seconds, 0);
  const most = Math.max(...runs.map(total), 0.001);
  return card("Last builds", runs.map((run) => bar(began(run).slice(5), total(run), most, `${total(run).toFixed(1)} s`)),
    el("p", {}, el("a", { href: "#builds" }, "Builds, snapshots and what changed")));
}

function nothing() {
  return card("Nothing is here yet", el("p", {}, "Bring a folder and build the graph:"),
    el("pre", {}, "hades ingest documents PATH\nhades build"), el("p", {}, "Then reload this page."));
}
