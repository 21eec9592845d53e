// Ask: a question, its paths as a graph, what it cost, why, and when it is asked of.

import { get, offers, post, recipes, stream } from "./api.js";
import { card, el, fill } from "./dom.js";
import { draw, highlight, show } from "./drawing.js";
import { spent } from "./spent.js";

const DAY = 86_400_000;

export async function ask(view, { attempt }) {
  const { names, chosen } = await recipes();
  const judges = await offers("post", "/queries/{query_id}/feedback");
  const state = { answer: null, edges: new Map() };

  const question = el("input", { name: "query", required: true, autofocus: true, placeholder: "which method does it derive from?" });
  const recipe = el("select", { name: "recipe" }, names.map((name) => el("option", { selected: name === chosen }, name)));
  const hops = el("input", { name: "hops", type: "number", min: 0, max: 2, value: 1 });
  const form = el("form", { class: "row card", onsubmit: (event) => { event.preventDefault(); submit(); } },
    el("label", { class: "wide" }, "Question", question), el("label", {}, "Recipe", recipe), el("label", {}, "Hops", hops),
    el("button", { class: "main" }, "Ask"));
  const time = timeSlider(submit);
  const paths = el("ol", { class: "plain", "aria-label": "Paths" });
  const passages = el("ol", { class: "plain", "aria-label": "Passages" });
  const canvas = el("div", { class: "graph", id: "graph", role: "img", "aria-label": "The paths as a graph" });
  const chosenCard = card("Chosen", el("p", { class: "meta" }, "Choose a path, or a node of the graph."));
  const costs = card("Budget and stages");
  const about = card("Why");
  fill(view, form, time.element, el("div", { class: "columns" },
    el("div", {}, card("Paths", paths), card("Passages", passages)),
    el("div", {}, canvas, chosenCard, costs, about)));
  const graph = draw(canvas, { onNode: inspect });

  async function submit() {
    if (!question.value.trim()) return;
    const body = { query: question.value, recipe: recipe.value, plan: { graph: { hops: Number(hops.value) } }, as_of: time.moment() };
    const stages = [];
    fill(costs, el("h2", {}, "Budget and stages"), el("p", { class: "wait" }, "asking…"));
    const answer = await attempt(() => stream(body, (stage) => {
      stages.push(stage);
      fill(costs, el("h2", {}, "Budget and stages"), spent({ telemetry: { stages, reads: 0, ms: 0 } }));
    }));
    if (!answer) return fill(costs, el("h2", {}, "Budget and stages"));
    state.answer = answer;
    drawAnswer();
  }

  function drawAnswer() {
    const answer = state.answer;
    fill(paths, answer.paths.map((path) => pathItem(path)));
    if (!answer.paths.length) fill(paths, el("li", { class: "meta" }, "No paths. The passages may still answer."));
    fill(passages, answer.passages.map((passage) => passageItem(passage)));
    fill(costs, el("h2", {}, "Budget and stages"), spent(answer));
    fill(about, el("h2", {}, "Why"), reasons(answer), hierarchy(answer), explainMiss(answer));
    const nodes = new Map(answer.paths.flatMap((path) => path.nodes).map((node) => [node.id, node]));
    const edges = new Map(answer.paths.flatMap((path) => path.edges.map((edge, place) =>
      [edge.id, { ...edge, label: relations(path.text)[place]?.relation ?? edge.type }])));
    state.edges = edges;
    show(graph, [...nodes.values()], [...edges.values()]);
    canvas.setAttribute("aria-label", `${nodes.size} nodes and ${edges.size} edges of ${answer.paths.length} paths`);
    time.learn([...nodes.keys()]);
  }

  function pathItem(path) {
    const choose = el("button", { type: "button", class: "path", "aria-pressed": "false", onclick: () => choosePath(path, choose) },
      ...worded(path.text), el("small", {}, `score ${path.score.toFixed(3)} · reliability ${path.reliability.toFixed(3)} · confidence ${path.confidence.toFixed(2)}`));
    return el("li", {}, choose, judges && judge("paths", path.rank));
  }

  function passageItem(passage) {
    return el("li", { class: "passage" },
      el("strong", {}, passage.title || passage.document), el("span", { class: "meta" },
        `${passage.document} [${passage.span.join(":")}] · ${passage.score.toFixed(3)} from ${passage.from.join(", ")}`),
      el("p", {}, passage.text), judges && judge("passages", passage.rank));
  }

  function judge(kind, rank) {
    const says = (word) => async (event) => {
      const body = { good: {}, bad: {} };
      body[word] = { [kind]: [rank] };
      const kept = await attempt(() => post(`/queries/${state.answer.query_id}/feedback`, body));
      if (!kept) return;
      for (const button of event.target.parentElement.children) button.setAttribute("aria-pressed", button === event.target);
    };
    return el("span", { class: "judge" },
      el("button", { type: "button", "aria-pressed": "false", "aria-label": `${kind} ${rank} helped`, onclick: says("good") }, "helped"),
      el("button", { type: "button", class: "bad", "aria-pressed": "false", "aria-label": `${kind} ${rank} did not help`, onclick: says("bad") }, "did not"));
  }

  function choosePath(path, button) {
    for (const other of paths.querySelectorAll(".path")) other.setAttribute("aria-pressed", other === button);
    highlight(graph, path.nodes.map((node) => node.id), path.edges.map((edge) => edge.id));
    const told = relations(path.text);
    fill(chosenCard, el("h2", {}, `Path ${path.rank}`), el("p", {}, path.why), el("ol", {}, path.edges.map((edge, place) =>
      el("li", {}, el("code", {}, edge.from), ` ${told[place]?.relation ?? edge.type} `, el("code", {}, edge.to),
        el("span", { class: "meta" }, `weight ${edge.weight?.toFixed(2) ?? "–"} · ${edge.provenance.doc} ${edge.provenance.span ? `[${edge.provenance.span.join(":")}]` : ""}`),
        told[place]?.snippet && el("span", { class: "snippet" }, `“${told[place].snippet}”`)))));
  }

  async function inspect(id) {
    const node = await attempt(() => get(`/graph/nodes/${id}`));
    if (!node) return;
    const expand = el("button", { type: "button", onclick: async () => {
      const around = await attempt(() => get("/graph/neighbours", { id, fanout: 12, as_of: time.moment() }));
      if (around) show(graph, around.nodes, around.edges, { keep: true });
    } }, "Show what surrounds it");
    fill(chosenCard, el("h2", {}, node.name || node.id), el("p", { class: "meta" },
      `${node.kind} · ${node.type} · ${node.degree.out} out, ${node.degree.in} in${node.document ? ` · ${node.document}` : ""}`),
      el("p", {}, node.summary || (node.text ?? "").slice(0, 600)), el("p", { class: "mono" }, node.id), expand);
  }

  function reasons(answer) {
    const route = answer.why && el("p", {}, answer.why);
    return el("div", {}, route, answer.reasons.map((reason) => el("span", { class: "reason" }, reason)),
      !answer.reasons.length && el("p", { class: "meta" }, "Nothing was cut and nothing is missing."));
  }

  function hierarchy(answer) {
    if (!answer.hierarchy.length) return null;
    return el("div", {}, el("h3", {}, "Topics it was narrowed to"),
      el("ul", {}, answer.hierarchy.map((topic) => el("li", {}, `L${topic.level} ${topic.summary.slice(0, 140) || topic.id}`))));
  }

  function explainMiss(answer) {
    const told = el("div", { "aria-live": "polite" });
    const missing = el("input", { name: "missing", placeholder: "a name or an id", "aria-label": "A node that was expected" });
    return el("form", { onsubmit: async (event) => {
      event.preventDefault();
      const found = await attempt(() => get(`/queries/${answer.query_id}/explain`, { missing: missing.value }));
      if (found?.missing) fill(told, el("dl", {}, Object.entries(found.missing).flatMap(([name, value]) =>
        [el("dt", { class: "meta" }, name), el("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))])));
    } }, el("h3", {}, "Why is something not there?"), missing, " ", el("button", {}, "Explain"), told);
  }
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

