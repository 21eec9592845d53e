// Memory: a topic's versions, what was true and known at a moment, and what joins it to others.

import { get } from "./api.js";
import { card, day, el, fill } from "./dom.js";
import { draw, show } from "./drawing.js";

export async function memory(view, { attempt }) {
  const named = decodeURIComponent(location.hash.split("/").slice(1).join("/"));
  const prefix = el("input", { type: "search", placeholder: "topics that begin with…", "aria-label": "Topics that begin with" });
  const list = el("ul", { class: "plain" });
  const place = el("div", {}, card("A topic", el("p", { class: "meta" }, "Choose one to read its trace.")));
  fill(view, el("div", { class: "columns" }, el("div", {}, card("Topics", prefix, list)), place));
  prefix.addEventListener("input", listed);
  await listed();
  if (named) await open(named);

  async function listed() {
    const found = await attempt(() => get("/memory/topics", { prefix: prefix.value, limit: 200 }));
    if (!found) return;
    fill(list, found.topics.map((topic) => el("li", {}, el("button", { type: "button", class: "path", onclick: () => open(topic) }, topic))));
    if (!found.total) fill(list, el("li", { class: "meta" }, "Nothing is remembered yet: hades memory add TOPIC TEXT"));
  }

  async function open(topic) {
    const path = topic.split("/").map(encodeURIComponent).join("/");
    const told = await attempt(async () => ({
      history: (await get(`/memory/${path}/history`, { limit: 200 })).states,
      edges: (await get(`/memory/${path}/edges`, { everything: true })).edges,
    }));
    if (!told) return;
    const trace = el("ol", { class: "plain trace", "aria-label": "Versions" });
    const edges = el("div", {});
    const canvas = el("div", { class: "graph", role: "img", "aria-label": "What the topic is joined to" });
    const moments = told.history.map((state) => Date.parse(state.valid_from ?? state.timestamp));
    const now = Date.now();
    const first = Math.min(...moments, now) - 86_400_000;
    const slider = el("input", { type: "range", name: "moment", min: first, max: now, value: now, step: 1000, "aria-label": "At which moment" });
    const moment = el("output", {}, "now");
    slider.addEventListener("input", () => at(Number(slider.value)));
    fill(place, card(topic, el("div", { class: "bar" }, moment, slider, el("span", {})), trace), card("Edges", canvas, edges));
    const graph = draw(canvas);
    at(now);
    show(graph, ...asGraph(told));

    function at(time) {
      const open = time >= now - 1000;
      moment.textContent = open ? "now" : new Date(time).toISOString().slice(0, 16).replace("T", " ");
      const true_then = (one) => Date.parse(one.valid_from ?? one.timestamp) <= time && (!one.valid_until || time < Date.parse(one.valid_until));
      const standing = told.history.filter(true_then).at(-1);
      fill(trace, told.history.map((state) => el("li", { class: state === standing ? "" : "other", "aria-current": state === standing ? "true" : undefined },
        el("strong", {}, `v${state.version}`), " ", state.content,
        el("span", { class: "meta" }, `${day(state.valid_from ?? state.timestamp)} · confidence ${state.confidence}${state.tags?.length ? ` · ${state.tags.join(", ")}` : ""}`))));
      fill(edges, el("table", {}, el("thead", {}, el("tr", {}, ["relation", "from", "to", "true", "known"].map((name) => el("th", {}, name)))),
        el("tbody", {}, told.edges.map((edge) => el("tr", { class: true_then(edge) && !edge.retracted_at ? "" : "ended" },
          el("td", {}, edge.relationship_type), el("td", {}, el("code", {}, edge._from)), el("td", {}, el("code", {}, edge._to)),
          el("td", {}, `${day(edge.valid_from)} – ${day(edge.valid_until)}`), el("td", {}, `${day(edge.recorded_at)} – ${day(edge.retracted_at)}`))))));
    }
  }
}

function asGraph({ history, edges }) {
  const nodes = new Map(history.map((state) => [`memory_states/${state._key}`, { id: `memory_states/${state._key}`, name: `${state.topic} v${state.version}` }]));
  for (const edge of edges) for (const id of [edge._from, edge._to]) if (!nodes.has(id)) nodes.set(id, { id, name: id.split("/")[1] });
  const drawn = edges.filter((edge) => !edge.retracted_at).map((edge) =>
    ({ id: edge._key, from: edge._from, to: edge._to, type: edge.relationship_type, weight: edge.strength }));
  return [[...nodes.values()], drawn];
}
