// Memory: a topic's versions, what was true and known at a moment, and what joins it to others.

import { get } from "./api.js";
import { card, day, el, fill } from "./dom.js";
import { draw, show } from "./drawing.js";
import { timeline } from "./timeline.js";

export async function memory(view, { attempt }) {
  const named = decodeURIComponent(location.hash.split("/").slice(1).join("/"));
  const prefix = el("input", { type: "search", placeholder: "topics that begin with…", "aria-label": "Topics that begin with" });
  const list = el("ul", { class: "plain" });
  const place = el("div", {});
  fill(view, el("div", { class: "columns" }, el("div", {}, card("Topics", el("div", { class: "row filter" }, prefix), list)), place));
  prefix.addEventListener("input", listed);
  const first = await listed();
  if (named || first) await open(named || first);

  async function listed() {
    const found = await attempt(() => get("/memory/topics", { prefix: prefix.value, limit: 200 }));
    if (!found) return;
    fill(list, found.topics.map((topic) => el("li", {}, el("button", { type: "button", class: "path", onclick: () => open(topic) }, topic))));
    if (!found.total) fill(list, el("li", { class: "meta" }, "Nothing is remembered yet. ", el("code", {}, "hades memory add TOPIC TEXT"), " adds the first."));
    return found.topics[0];
  }

  // Names of the versions that edges lead to.
  function namesOf({ history, edges }) {
    const known = new Map(history.map((state) => [`memory_states/${state._key}`, `${state.topic} v${state.version}`]));
    for (const edge of edges) {
      known.set(edge._from, edge.source_topic);
      known.set(edge._to, edge.target_topic);
    }
    return (id) => known.get(id) ?? id;
  }

  async function open(topic) {
    const path = topic.split("/").map(encodeURIComponent).join("/");
    const told = await attempt(async () => ({
      history: (await get(`/memory/${path}/history`, { limit: 200 })).states.map((state) => ({ ...state, _key: state.id })),
      edges: (await get(`/memory/${path}/edges`, { everything: true })).edges
        .map((edge) => ({ ...edge, _from: edge.source_state_id, _to: edge.target_state_id })),
    }));
    if (!told) return;
    const names = namesOf(told);
    const trace = el("ol", { class: "plain trace", "aria-label": "Versions" });
    const edges = el("div", {});
    const drawing = draw({ label: "What the topic is joined to" });
    const moments = told.history.map((state) => Date.parse(state.valid_from ?? state.timestamp));
    const now = Date.now();
    const first = Math.min(...moments, now) - 86_400_000;
    const slider = el("input", { type: "range", name: "moment", min: first, max: now, value: now, step: 1000, "aria-label": "At which moment" });
    const moment = el("output", {}, "now");
    slider.addEventListener("input", () => at(Number(slider.value)));
    const bars = timeline(periods(told, names), first, now, at);
    fill(place, card(topic, bars.element, el("div", { class: "moment" }, moment, slider), trace),
      told.edges.length > 0 && card("Edges", drawing.element, edges));
    at(now);
    show(drawing, ...asGraph(told, names));

    function at(time) {
      const open = time >= now - 1000;
      slider.value = time;
      bars.move(time);
      moment.textContent = open ? "now" : new Date(time).toISOString().slice(0, 16).replace("T", " ");
      const true_then = (one) => Date.parse(one.valid_from ?? one.timestamp) <= time && (!one.valid_until || time < Date.parse(one.valid_until));
      const standing = told.history.filter(true_then).at(-1);
      fill(trace, told.history.map((state) => el("li", { class: state === standing ? "" : "other", "aria-current": state === standing ? "true" : undefined },
        el("strong", {}, `v${state.version}`), " ", state.content,
        el("span", { class: "meta" }, `${day(state.valid_from ?? state.timestamp)} · confidence ${state.confidence}${state.tags?.length ? ` · ${state.tags.join(", ")}` : ""}`))));
      fill(edges, el("table", {}, el("thead", {}, el("tr", {}, ["relation", "from", "to", "true", "known"].map((name) => el("th", {}, name)))),
        el("tbody", {}, told.edges.map((edge) => el("tr", { class: true_then(edge) && !edge.retracted_at ? "" : "ended" },
          el("td", {}, edge.relationship_type.replaceAll("_", " ")), el("td", {}, names(edge._from)), el("td", {}, names(edge._to)),
          el("td", {}, `${day(edge.valid_from)} – ${day(edge.valid_until)}`), el("td", {}, `${day(edge.recorded_at)} – ${day(edge.retracted_at)}`))))));
    }
  }
}

// A version holds until the next one begins.
function periods({ history, edges }, names) {
  const from = (one) => Date.parse(one.valid_from ?? one.timestamp);
  const starts = history.map(from).sort((a, b) => a - b);
  const of = (one, kind, label) => ({ kind, label, from: from(one), until: one.valid_until ? Date.parse(one.valid_until) : null });
  return [...history.map((state) => {
    const bar = of(state, "state", `v${state.version} ${state.content}`);
    return { ...bar, until: bar.until ?? starts.find((start) => start > bar.from) ?? null };
  }), ...edges.map((edge) => of(edge, edge.retracted_at ? "edge retracted" : "edge", `${edge.relationship_type.replaceAll("_", " ")} ${names(edge._to)}`))];
}

function asGraph({ history, edges }, names) {
  const versions = new Map(history.map((state) => [`memory_states/${state._key}`, `${state.topic} v${state.version}`]));
  const nodes = new Map(edges.flatMap((edge) => [edge._from, edge._to]).map((id) => [id, { id, name: versions.get(id) ?? names(id) }]));
  const drawn = edges.filter((edge) => !edge.retracted_at).map((edge) =>
    ({ id: edge._key, from: edge._from, to: edge._to, type: edge.relationship_type, weight: edge.strength }));
  return [[...nodes.values()], drawn];
}
