// A graph on a canvas, by cytoscape. What it shows is also listed beside it, for whoever does not see a canvas.

import cytoscape from "./vendor/cytoscape.mjs";

const SHAPES = { entities: "ellipse", doc_chunks: "round-rectangle", clusters: "hexagon", funcs: "diamond", files: "tag" };

export function draw(container, { onNode, onEdge } = {}) {
  const graph = cytoscape({ container, style: style(), minZoom: 0.2, maxZoom: 3 });
  graph.on("tap", "node", (event) => onNode?.(event.target.id()));
  graph.on("tap", "edge", (event) => onEdge?.(event.target.data()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => graph.style(style()));
  document.addEventListener("theme", () => graph.style(style()));
  return graph;
}

export function show(graph, nodes, edges, { keep = false } = {}) {
  graph.startBatch();
  if (!keep) graph.elements().remove();
  for (const node of nodes) {
    if (graph.getElementById(node.id).nonempty()) continue;
    const shape = SHAPES[node.id.split("/")[0]] ?? "ellipse";
    graph.add({ group: "nodes", data: { id: node.id, label: short(node.name || node.id), shape } });
  }
  for (const edge of edges) {
    const there = graph.getElementById(edge.from).nonempty() && graph.getElementById(edge.to).nonempty();
    if (!there || graph.getElementById(`e:${edge.id}`).nonempty()) continue;
    const data = { id: `e:${edge.id}`, source: edge.from, target: edge.to, label: edge.label || edge.type };
    graph.add({ group: "edges", data: { ...data, weight: edge.weight ?? 0.5, path: edge.path ?? "" } });
  }
  graph.endBatch();
  graph.layout({ name: "cose", animate: false, randomize: true, nodeRepulsion: 9000, idealEdgeLength: 110, padding: 30 }).run();
}

export function highlight(graph, nodeIds, edgeIds) {
  const chosen = new Set([...nodeIds, ...edgeIds.map((id) => `e:${id}`)]);
  graph.elements().forEach((element) => element.toggleClass("faded", chosen.size > 0 && !chosen.has(element.id())));
  const shown = graph.elements().not(".faded");
  if (shown.nonempty()) graph.fit(shown, 50);
}

function short(name) {
  return name.length > 34 ? `${name.slice(0, 32)}…` : name;
}

function style() {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const probe = document.createElement("i");
  document.body.append(probe);
  const real = (name) => {
    probe.style.color = colour(name);
    return getComputedStyle(probe).color;
  };
  const [ink, accent, line, card] = ["--ink", "--accent", "--quiet", "--card"].map(real);
  probe.remove();
  const text = { color: ink, "font-size": 11, "text-wrap": "wrap", "text-max-width": 110 };
  const backed = { "text-background-color": card, "text-background-opacity": 0.85, "text-background-padding": 2 };
  return [
    { selector: "node", style: { ...text, label: "data(label)", shape: "data(shape)", "background-color": accent,
      width: 22, height: 22, "text-valign": "bottom", "text-margin-y": 4 } },
    { selector: "edge", style: { ...text, ...backed, label: "data(label)", "font-size": 9, width: "mapData(weight, 0, 1, 1, 4)",
      "line-color": line, "target-arrow-color": line, "target-arrow-shape": "triangle", "curve-style": "bezier" } },
    { selector: ".faded", style: { opacity: 0.15 } },
  ];
}
