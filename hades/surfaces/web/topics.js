// Topics: the hierarchy of the snapshot that serves, and what a topic holds.

import { get } from "./api.js";
import { bar, card, count, el, fill } from "./dom.js";
import { draw, show } from "./drawing.js";

export async function topics(view, { attempt }) {
  const found = await get("/hierarchy", { limit: 2000 });
  const supers = found.topics.filter((topic) => topic.level === 2);
  const below = new Map(supers.map((topic) => [topic.id, found.topics.filter((one) => one.parent === topic.id)]));
  const alone = found.topics.filter((topic) => topic.level === 1 && !below.has(topic.parent));
  const largest = Math.max(...found.topics.map((topic) => topic.size), 1);
  const canvas = el("div", { class: "graph", role: "img", "aria-label": "Members of the topic" });
  const about = card("A topic", el("p", { class: "meta" }, "Choose one to see its members."));
  const filter = el("input", { type: "search", placeholder: "filter by word", "aria-label": "Filter topics by word" });
  const list = el("div", {});
  fill(view, el("div", { class: "columns" },
    el("div", {}, card(`${count(found.total)} topics`, filter, list)), el("div", {}, canvas, about)));
  const graph = draw(canvas, { onNode: (id) => { location.hash = "#topics"; inspect(id); } });
  filter.addEventListener("input", list_topics);
  list_topics();

  function list_topics() {
    const word = filter.value.toLowerCase();
    const holds = (topic) => !word || `${topic.name} ${topic.summary}`.toLowerCase().includes(word);
    const one = (topic) => el("li", {}, el("button", { type: "button", class: "path", onclick: () => open(topic) },
      bar(topic.name || topic.id, topic.size, largest, `${count(topic.size)} members`)));
    const groups = supers.map((topic) => [topic, below.get(topic.id).filter((sub) => holds(topic) || holds(sub))])
      .filter(([topic, subs]) => holds(topic) || subs.length);
    fill(list, groups.slice(0, 60).map(([topic, subs]) => el("details", { open: Boolean(word) },
      el("summary", {}, `${topic.name || topic.id} (${count(topic.size)})`), el("ul", { class: "plain" }, [topic, ...subs].map(one)))),
      el("ul", { class: "plain" }, alone.filter(holds).slice(0, 60).map(one)));
  }

  async function open(topic) {
    fill(about, el("h2", {}, topic.name || topic.id), el("p", {}, topic.summary),
      el("p", { class: "meta" }, `level ${topic.level} · ${count(topic.size)} members · drift ${Number(topic.drift ?? 0).toFixed(3)}`));
    const around = await attempt(() => get("/graph/subgraph", { id: topic.id, hops: 1, fanout: 30 }));
    if (around) show(graph, around.nodes, around.edges);
  }

  async function inspect(id) {
    const node = await attempt(() => get(`/graph/nodes/${id}`));
    if (node) fill(about, el("h2", {}, node.name || node.id), el("p", { class: "meta" }, `${node.kind} · ${node.type}`), el("p", {}, node.summary ?? ""));
  }
}
