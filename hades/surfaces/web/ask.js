// Ask: the answer in sentences with its sources, the paths as a graph, the passages in full, and what it cost.

import { get, offers, post, recipes, stream } from "./api.js";
import { answerCard } from "./answer.js";
import { card, count, el, fill } from "./dom.js";
import { draw, highlight, show } from "./drawing.js";
import { code, looksLikeCode } from "./highlight.js";
import { contentWords, markdown } from "./markdown.js";
import { openSource } from "./source.js";
import { spent } from "./spent.js";

const DAY = 86_400_000;
const FILTERS = [["path", "Path", "docs/*.md"], ["type", "Kind of file", "markdown, pdf"], ["source", "Folder or corpus", ""], ["tag", "Tag", ""],
  ["author", "Author", ""], ["domain", "Domain", ""], ["since", "Since", "", "date"], ["until", "Until", "", "date"]];
const LISTS = new Set(["path", "type", "source", "tag", "author"]);
const WEAK = 0.05;  // reliability below which a path explains little: docs/paths.md
// Reasons a reader can act on; the others are in the details of the turn.
const ACTIONABLE = {
  timeout: "The search ran out of time. Ask again, or raise the time limit of the plan.",
  abstained: "The sources do not answer this; nearest:",
  unfinished: "The search did not end, so it is not known whether the sources answer this; nearest so far:",
  no_entity_match: null,
  embeddings_missing: "Some passages have no vectors: run `hades run embed`.",
  embedder_slow: "The embedder was too slow: words searched alone.",
  hierarchy_unavailable: "There are no topics yet: run `hades build`.",
  topics_later: "The topics also speak of what came later, so none is shown.",
  undated: "Some of what is shown has no date, so it may be later.",
  view_degraded: "An older graph serves, or part of it could not be read: run `hades doctor`.",
};

export async function ask(view, { attempt }) {
  const { names, chosen } = await recipes();
  const [judges, writes, shows] = await Promise.all([offers("post", "/queries/{query_id}/feedback"), offers("post", "/answer"), offers("get", "/graph/source/{id}")]);
  const state = { answer: null, judged: new Map(), follow: null, drop: [] };
  const asked = decodeURIComponent(location.hash.split("/").slice(1).join("/"));

  const question = el("input", { name: "query", required: true, autofocus: true, value: asked, placeholder: "Ask about the corpus" });
  const recipe = el("select", { name: "recipe" }, names.map((name) => el("option", { selected: name === chosen }, name)));
  const hops = el("input", { name: "hops", type: "number", min: 0, max: 2, placeholder: "auto" });
  const time = timeSlider(() => submit());
  const limits = FILTERS.map(([name, label, hint, type = "text"]) => [name, el("label", {}, label, el("input", { name, type, placeholder: hint }))]);
  const form = el("form", { class: "card ask", onsubmit: (event) => { event.preventDefault(); begin(); } },
    el("div", { class: "row" }, el("label", { class: "wide" }, el("span", {}, "Question"), question), el("button", { class: "main" }, "Ask")),
    el("details", { class: "limits" }, el("summary", {}, "Limit to a part of the corpus"), el("div", { class: "row" }, limits.map(([, label]) => label))),
    el("details", {}, el("summary", {}, "Recipe, hops and time"),
      el("div", { class: "row" }, el("label", {}, "Recipe", recipe), el("label", {}, "Hops", hops)), time.element));
  const earlier = el("ol", { class: "plain turns", "aria-label": "Earlier questions" });
  const place = el("div", { class: "result", "aria-live": "polite" });
  fill(view, form, earlier, place);
  if (asked) await begin();

  // A new conversation; a question that follows goes on from the answer on the page.
  function begin() {
    fill(earlier);
    Object.assign(state, { follow: null, drop: [] });
    return submit();
  }

  function followUp(text) {
    earlier.append(el("li", {}, question.value));
    question.value = text;
    Object.assign(state, { follow: state.answer.query_id, drop: [] });
    return submit();
  }

  function without(name) {
    state.drop.push(name);
    return submit();
  }

  async function submit() {
    const text = question.value.trim();
    if (!text) return;
    history.replaceState(null, "", `#ask/${encodeURIComponent(text)}`);
    const body = { query: text, recipe: recipe.value, as_of: time.moment() };
    if (state.follow) Object.assign(body, { follow: state.follow, drop: state.drop });
    for (const [name, label] of limits) {
      const value = label.querySelector("input").value.trim();
      if (value) body[name] = LISTS.has(name) ? value.split(/\s*,\s*/).filter(Boolean) : value;
    }
    if (hops.value !== "") body.plan = { graph: { hops: Number(hops.value) } };
    const wait = el("p", { class: "wait" }, "asking…");
    fill(place, wait);
    const answer = await attempt(() => stream(body, (stage) => { wait.textContent = `${stage.name} done…`; }));
    if (!answer) return fill(place);
    state.answer = answer;
    state.judged = new Map();
    const shown = drawAnswer();
    if (!writes) return;
    const { plan: _, ...same } = body;
    const written = await attempt(() => post("/answer", same));
    if (state.answer === answer) shown(written);
  }

  function drawAnswer() {
    const { answer } = state;
    const written = el("div", {}, writes && answer.passages.length > 0 && card("Answer", el("p", { class: "wait" }, "writing…")));
    const drawing = draw({ label: "The paths as a graph", onNode: inspect });
    drawing.element.id = "graph";
    const chosenPlace = el("div", {});
    const paths = el("ol", { class: "plain", "aria-label": "Paths" }, answer.paths.map((path) => pathItem(path)));
    const passages = el("ol", { class: "plain", "aria-label": "Passages" }, answer.passages.map((passage) => passageItem(passage, new Map())));
    const strong = answer.paths.some((path) => path.reliability >= WEAK);
    const told = answer.reasons.map((reason) => ACTIONABLE[reason]).filter(Boolean);
    const note = told.length > 0 && el("p", { class: "note" }, told.join(" "));
    fill(place,
      answer.carried && carriedChips(answer.carried),
      answer.excluded != null && el("p", { class: "note" }, `${count(answer.excluded)} documents are left out by the limits or the time of the question.`),
      written,
      (answer.passages.length > 0 || answer.paths.length > 0) && followForm(),
      note,
      !answer.paths.length && !answer.passages.length && card("Nothing was found", el("p", {}, "Try other words, or look at the ", el("a", { href: "#topics" }, "topics"), ".")),
      el("div", { class: "columns" },
        el("div", {}, answer.passages.length > 0 && card("Passages", passages)),
        el("div", {}, answer.paths.length > 0 && (strong ? card("Paths", drawing.element, chosenPlace, paths)
          : el("section", { class: "card" }, el("details", {}, el("summary", {}, `Weak paths (${answer.paths.length})`), paths))),
          card("This turn", turnDetails(answer)))));
    const nodes = new Map(answer.paths.flatMap((path) => path.nodes).map((node) => [node.id, node]));
    const edges = new Map(answer.paths.flatMap((path) => path.edges.map((edge, index) =>
      [edge.id, { ...edge, label: relations(path.text)[index]?.relation ?? edge.type }])));
    if (strong) show(drawing, [...nodes.values()], [...edges.values()]);
    time.learn([...nodes.keys()]);
    return (answered) => {
      if (answered?.sentences.length && answer.reasons.includes("abstained")) note.remove();  // all of the corpus was asked about
      fill(written, answered && (answered.sentences.length > 0 || answer.passages.length > 0) && answerCard(answered, jump));
      const quotes = rendered(answered);
      if (quotes.size) fill(passages, answer.passages.map((passage) => passageItem(passage, quotes)));
    };

    function pathItem(path) {
      const button = el("button", { type: "button", class: "path", id: `path-${path.rank}`, "aria-pressed": "false", onclick: () => choosePath(path, button) },
        ...worded(path.text), el("small", {}, path.why));
      return el("li", {}, button, judges && judge("paths", path.rank));
    }

    function choosePath(path, button) {
      for (const other of place.querySelectorAll(".path")) other.setAttribute("aria-pressed", other === button);
      highlight(drawing, path.nodes.map((node) => node.id), path.edges.map((edge) => edge.id));
      const said = relations(path.text);
      const name = (id) => path.nodes.find((node) => node.id === id)?.name ?? id;
      fill(chosenPlace, el("section", { class: "inset" }, el("h2", {}, `Path ${path.rank}`), el("ol", {}, path.edges.map((edge, index) =>
        el("li", {}, el("b", {}, name(edge.from)), ` ${(said[index]?.relation ?? edge.type).replaceAll("_", " ")} `, el("b", {}, name(edge.to)),
          said[index]?.snippet && el("q", { class: "snippet" }, said[index].snippet),
          el("span", { class: "meta" }, `${edge.provenance.doc}${edge.provenance.span ? ` [${edge.provenance.span.join(":")}]` : ""} · weight ${edge.weight?.toFixed(2) ?? "–"}`))))));
    }

    function jump(source) {
      const target = document.getElementById(`${source.kind}-${source.rank}`);
      target?.scrollIntoView({ block: "center", behavior: "smooth" });
      if (source.kind === "path") target?.click();
      target?.classList.add("flash");
      setTimeout(() => target?.classList.remove("flash"), 1600);
      if (hasPlace(source)) openSource(source.id, attempt);
    }

    async function inspect(id) {
      const [node, around] = await Promise.all([
        attempt(() => get(`/graph/nodes/${id}`)), attempt(() => get("/graph/neighbours", { id, fanout: 8, as_of: time.moment() })),
      ]);
      if (around) show(drawing, around.nodes, around.edges, { keep: true });
      if (node) fill(chosenPlace, nodeDetails(node));
    }
  }

  function followForm() {
    const next = el("input", { name: "follow", required: true, "aria-label": "A question that follows", placeholder: "and … ?" });
    return el("form", { class: "row follow", onsubmit: (event) => { event.preventDefault(); if (next.value.trim()) followUp(next.value.trim()); } },
      next, el("button", {}, "Follow up"));
  }

  // What the question has from the one before; choosing one asks again without it.
  function carriedChips({ words, filters }) {
    const chip = (name, label) => el("button", { type: "button", class: "chip", "aria-label": `leave out ${label}`, onclick: () => without(name) }, label, " ×");
    const chips = [...words.map((word) => chip(word, word)), ...Object.entries(filters).map(([name, value]) => chip(name, `${name}: ${value}`))];
    return el("p", { class: "chips carried", "aria-label": "Carried from the question before" }, el("small", {}, chips.length ? "Carried from the question before:" : "Nothing is carried from the question before."), chips);
  }

  function passageItem(passage, quotes) {
    const where = [passage.path && passage.lines ? `${passage.path}:${passage.lines[0]}` : passage.document, ...(passage.headings ?? []).slice(-2)].filter(Boolean);
    const { text: shown = passage.text, marks = [] } = quotes.get(passage.id) ?? {};
    const text = looksLikeCode(passage) ? code(passage.text) : markdown(shown, { words: contentWords(state.answer.query), marks });
    return el("li", { class: "passage", id: `passage-${passage.rank}` },
      el("strong", {}, `${passage.rank}. ${passage.title || passage.document}`), el("span", { class: "meta" }, where.join(" › ")), text,
      hasPlace(passage) && el("button", { type: "button", class: "link", onclick: () => openSource(passage.id, attempt) }, "show in its document"),
      el("span", { class: "meta" }, `score ${passage.score.toFixed(3)}, found by ${passage.from.join(", ")}`), judges && judge("passages", passage.rank));
  }

  // Passages of documents; paths and states of memory stand in none.
  function hasPlace(source) {
    return shows && source.id.startsWith("doc_chunks/");
  }

  function judge(kind, rank) {
    const says = (word) => async () => {
      const body = { good: {}, bad: {} };
      body[word] = { [kind]: [rank] };
      const kept = await attempt(() => post(`/queries/${state.answer.query_id}/feedback`, body));
      if (!kept) return;
      state.judged.set(`${kind}-${rank}`, word);  // passages are drawn again when the written answer arrives
      for (const shown of place.querySelectorAll(`[data-judge="${kind}-${rank}"]`))
        shown.setAttribute("aria-pressed", String(shown.dataset.word === word));
    };
    const button = (word, title, label) => el("button", {
      type: "button", class: word === "bad" ? "bad" : "", "data-judge": `${kind}-${rank}`, "data-word": word,
      "aria-pressed": String(state.judged.get(`${kind}-${rank}`) === word), "aria-label": `${kind} ${rank} ${title}`, onclick: says(word),
    }, label);
    return el("span", { class: "judge" }, button("good", "helped", "helped"), button("bad", "did not help", "did not"));
  }

  function turnDetails(answer) {
    return el("div", {}, answer.why && el("p", {}, answer.why), spent(answer),
      answer.hierarchy.length > 0 && el("details", {}, el("summary", {}, `Topics it was narrowed to (${answer.hierarchy.length})`),
        el("ul", {}, answer.hierarchy.map((topic) => el("li", {}, topic.summary.slice(0, 200) || topic.id)))),
      answer.reasons.length > 0 && el("details", {}, el("summary", {}, "What was cut"), el("p", {}, answer.reasons.map((reason) => el("span", { class: "reason" }, reason)))),
      explainMiss(answer));
  }

  function explainMiss(answer) {
    const told = el("div", { "aria-live": "polite" });
    const missing = el("input", { name: "missing", placeholder: "a name or an id", "aria-label": "A node that was expected" });
    return el("details", {}, el("summary", {}, "Why is something not there?"), el("form", { class: "row", onsubmit: async (event) => {
      event.preventDefault();
      const found = await attempt(() => get(`/queries/${answer.query_id}/explain`, { missing: missing.value }));
      if (found?.missing) fill(told, el("dl", {}, Object.entries(found.missing).flatMap(([name, value]) =>
        [el("dt", { class: "meta" }, name), el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))])));
    } }, missing, el("button", {}, "Explain"), told));
  }
}

function nodeDetails(node) {
  return el("section", { class: "inset" }, el("h2", {}, node.name || node.id), el("p", { class: "meta" },
    `${node.type.replaceAll("_", " ")} · ${node.degree.out} out, ${node.degree.in} in${node.document ? ` · ${node.document}` : ""}`),
    (node.summary || node.text) && el("p", {}, node.summary || node.text.slice(0, 600)));
}

// The passages as Markdown, with the words of each that the answer marks.
function rendered(written) {
  const marks = (source) => written.sentences.filter((one) => one.citations.includes(source.number)).flatMap((one) => one.marks);
  return new Map((written?.sources ?? []).filter((source) => source.kind === "passage").map((source) => [source.id, { text: source.markdown, marks: marks(source) }]));
}

// A moment to stand at: a slider between the first date the graph knows and today, and the day in figures.
function timeSlider(onChange) {
  const today = Math.floor(Date.now() / DAY);
  const range = el("input", { type: "range", name: "as_of", min: today - 3650, max: today + 1, value: today + 1, "aria-label": "As of which day" });
  const figure = el("input", { type: "date", "aria-label": "As of which day, in figures" });
  const told = el("output", {}, "any time");
  const toDay = (number) => new Date(number * DAY).toISOString().slice(0, 10);
  const set = () => {
    const open = Number(range.value) > today;
    told.textContent = open ? "any time" : `as of ${toDay(Number(range.value))}`;
    figure.value = open ? "" : toDay(Number(range.value));
  };
  range.addEventListener("input", set);
  range.addEventListener("change", onChange);
  figure.addEventListener("change", () => {
    const chosen = figure.value ? Math.floor(Date.parse(figure.value) / DAY) : today + 1;
    range.min = Math.min(Number(range.min), chosen);
    range.value = chosen;
    set();
    onChange();
  });
  return {
    element: el("div", { class: "card bar", id: "time" }, told, range, figure),
    moment: () => (Number(range.value) > today ? null : `${toDay(Number(range.value))}T00:00:00Z`),
    async learn(ids) {
      if (!ids.length) return;
      const around = await get("/graph/subgraph", { id: ids.slice(0, 16), hops: 1, fanout: 4 }).catch(() => null);
      const starts = (around?.edges ?? []).map((edge) => Date.parse(edge.valid_from)).filter(Number.isFinite);
      if (starts.length) range.min = Math.min(Number(range.min), Math.floor(Math.min(...starts) / DAY) - 1);
    },
  };
}

// The relations and snippets of a path in words: `A --[rel; snippet: "..."]--> B <--[rel]-- C`.
function relations(text) {
  return [...text.matchAll(/<?--\[(.*?)\]--(?:>|(?=\s))/g)].map(([, inner]) => {
    const [relation, snippet] = inner.split(/; snippet: "/);
    return { relation, snippet: snippet?.replace(/"$/, "") };
  });
}

function worded(text) {
  return text.split(/(<?--\[.*?\]--(?:>|(?=\s)))/).map((part) => {
    const inner = /^(<?)--\[(.*?)\]--(>?)$/.exec(part);
    if (!inner) return el("strong", {}, part);
    return el("span", { class: "relation" }, `${inner[1] ? "← " : "— "}${inner[2].split("; snippet:")[0]}${inner[3] ? " →" : " —"}`);
  });
}
