// Topics: the hierarchy as a map and as a tree with sizes and summaries, and what a topic holds.

import { get } from "./api.js";
import { card, count, el, fill, plain } from "./dom.js";
import { draw, show } from "./drawing.js";
import { treemap } from "./treemap.js";

export async function topics(view, { attempt }) {
  const found = await get("/hierarchy", { limit: 2000 });
  if (!found.topics.length) return fill(view, card("No topics yet", el("p", {}, "Topics are made by a build: ", el("code", {}, "hades build"), ".")));
  const wanted = decodeURIComponent(location.hash.split("/").slice(1).join("/"));
  const supers = found.topics.filter((topic) => topic.level === 2);
  const below = new Map(supers.map((topic) => [topic.id, found.topics.filter((one) => one.parent === topic.id)]));
  const alone = found.topics.filter((topic) => topic.level === 1 && !below.has(topic.parent));
  const filter = el("input", { type: "search", placeholder: "filter by word", "aria-label": "Filter topics by word" });
  const list = el("div", { class: "tree" });
  const place = el("div", {});
  fill(view, el("div", { class: "columns" }, el("div", {}, card(`${count(found.total)} topics`, filter, list)), place));
  filter.addEventListener("input", listTopics);
  listTopics();
  const first = found.topics.find((topic) => topic.id === wanted);
  if (first) await open(first);
  else fill(place, card("Map", el("p", { class: "meta" }, "Area is the number of members. Choose a topic."),
    treemap(found.topics.filter((topic) => topic.level === 1).slice(0, 60).map((topic) => ({ name: topic.name || topic.id, size: topic.size, group: topic.parent, topic })), ({ topic }) => open(topic))));

  function listTopics() {
    const word = filter.value.toLowerCase();
    const holds = (topic) => !word || `${topic.name} ${topic.summary}`.toLowerCase().includes(word);
    const one = (topic) => el("li", {}, el("button", { type: "button", class: "path", "data-topic": topic.id, "aria-pressed": "false", onclick: () => open(topic) },
      el("b", {}, topic.name || topic.id), el("small", {}, `${count(topic.size)} members`), topic.summary && el("small", { class: "two-lines" }, plain(topic.summary))));
    const groups = supers.map((topic) => [topic, below.get(topic.id).filter((sub) => holds(topic) || holds(sub))]).filter(([topic, subs]) => holds(topic) || subs.length);
    fill(list, groups.slice(0, 60).map(([topic, subs], index) => el("details", { open: Boolean(word) || index === 0 },
      el("summary", {}, `${topic.name || topic.id} `, el("small", {}, `${subs.length} topics, ${count(topic.size)} members`)),
      topic.summary && el("p", { class: "meta two-lines" }, plain(topic.summary)), el("ul", { class: "plain" }, subs.map(one)))),
      el("ul", { class: "plain" }, alone.filter(holds).slice(0, 60).map(one)),
      !groups.length && !alone.some(holds) && el("p", { class: "meta" }, "No topic holds this word."));
  }

  async function open(topic) {
    for (const button of list.querySelectorAll(".path")) button.setAttribute("aria-pressed", button.dataset.topic === topic.id);
    history.replaceState(null, "", `#topics/${encodeURIComponent(topic.id)}`);
    const drawing = draw({ label: "Members of the topic", onNode: inspect });
    const members = el("p", { class: "chips" });
    const chosen = el("div", {});
    fill(place, card(topic.name || topic.id, el("p", {}, plain(topic.summary)),
      el("p", { class: "meta" }, `${topic.level === 2 ? "group of topics" : "topic"} · ${count(topic.size)} members · moved since the last full build ${(100 * Number(topic.drift ?? 0)).toFixed(1)} %`),
      drawing.element, chosen, members));
    const around = await attempt(() => get("/graph/subgraph", { id: topic.id, hops: 1, fanout: 30 }));
    if (!around) return;
    const ids = around.nodes.map((node) => node.id).filter((id) => id !== topic.id).slice(0, 30);
    const joined = ids.length ? await attempt(() => get("/graph/subgraph", { id: ids, hops: 1, fanout: 4, nodes: ids.length + 1 })) : null;
    const known = new Set(ids);
    const between = (joined?.edges ?? []).filter((edge) => known.has(edge.from) && known.has(edge.to));
    const ends = new Set(between.flatMap((edge) => [edge.from, edge.to]));  // members that nothing joins are listed below
    show(drawing, between.length > 3 ? around.nodes.filter((node) => ends.has(node.id)) : around.nodes, between.length > 3 ? between : around.edges);
    fill(members, around.nodes.filter((node) => known.has(node.id)).map((node) =>
      el("a", { class: "chip", href: `#ask/${encodeURIComponent(`What is ${node.name}?`)}` }, node.name)));

    async function inspect(id) {
      const [node, near] = await Promise.all([attempt(() => get(`/graph/nodes/${id}`)), attempt(() => get("/graph/neighbours", { id, fanout: 8 }))]);
      if (near) show(drawing, near.nodes, near.edges, { keep: true });
      if (node) fill(chosen, el("section", { class: "inset" }, el("h2", {}, node.name || node.id), el("p", { class: "meta" }, node.type.replaceAll("_", " ")),
        (node.summary || node.text) && el("p", {}, node.summary || node.text.slice(0, 400))));
    }
  }
}
