// A graph on a canvas, by cytoscape: labels of one size on the screen at every zoom, none over another, edges coloured by type.
// What it shows is also listed beside it, for whoever does not see a canvas.

import cytoscape from "./vendor/cytoscape.mjs";
import { el, fill } from "./dom.js";

const SHAPES = { entities: "ellipse", doc_chunks: "round-rectangle", clusters: "hexagon", funcs: "diamond", files: "tag", memory_states: "round-rectangle" };
const HUES = { refers_to: 245, related_to: 200, similar_to: 165, cites: 25, extends: 320, implements: 285, mentions: 90, contains: 50,
  imports: 0, belongs_to: 140, member_of: 140, coref: 220, derives_from: 340, next: 110, references: 60 };
const LABEL_PX = 12;

// A picture with its legend below: `graph` is the drawing, `element` what goes into the page.
export function draw({ label, onNode } = {}) {
  const canvas = el("div", { class: "graph", role: "img", "aria-label": label ?? "A graph" });
  const legend = el("p", { class: "legend", "aria-label": "Edge types" });
  const element = el("figure", { class: "drawing", hidden: true }, canvas, legend);
  const drawing = { graph: null, canvas, legend, element, onNode };
  const restyle = () => { drawing.graph?.style(style()); if (drawing.graph) fitLabels(drawing.graph); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
  document.addEventListener("theme", restyle);
  return drawing;
}

// The canvas can only be measured once it stands in the page.
function open(drawing) {
  const graph = cytoscape({ container: drawing.canvas, style: style(), layout: { name: "preset" }, minZoom: 0.15, maxZoom: 2.5 });
  graph.on("tap", "node", (event) => drawing.onNode?.(event.target.id(), drawing));
  graph.on("mouseover", "edge", (event) => event.target.addClass("named"));
  graph.on("mouseout", "edge", (event) => event.target.removeClass("named"));
  graph.on("zoom pan", () => requestAnimationFrame(() => fitLabels(graph)));
  return graph;
}

export function show(drawing, nodes, edges, { keep = false } = {}) {
  const { element, canvas } = drawing;
  element.hidden = nodes.length === 0 && !keep;
  if (element.hidden || !element.isConnected) return;
  const graph = drawing.graph ??= open(drawing);
  canvas.classList.toggle("small", !keep && nodes.length <= 4);
  graph.resize();
  graph.startBatch();
  if (!keep) graph.elements().remove();
  for (const node of nodes) {
    if (graph.getElementById(node.id).nonempty()) continue;
    const shape = SHAPES[node.id.split("/")[0]] ?? "ellipse";
    graph.add({ group: "nodes", data: { id: node.id, label: short(node.name || node.id.split("/")[1]), shape } });
  }
  for (const edge of edges) {
    const there = graph.getElementById(edge.from).nonempty() && graph.getElementById(edge.to).nonempty();
    if (!there || graph.getElementById(`e:${edge.id}`).nonempty()) continue;
    const data = { id: `e:${edge.id}`, source: edge.from, target: edge.to, label: edge.label || edge.type, hue: hue(edge.type), type: edge.type };
    graph.add({ group: "edges", data: { ...data, weight: edge.weight ?? 0.5 } });
  }
  graph.endBatch();
  graph.style(style());
  graph.layout(isStar(graph) ? { name: "concentric", animate: false, concentric: (node) => node.degree(), minNodeSpacing: 46, spacingFactor: 1.1, padding: 36 } : { name: "cose", animate: false, randomize: !keep, nodeDimensionsIncludeLabels: true, nodeRepulsion: 60_000, nodeOverlap: 30,
    idealEdgeLength: 130, edgeElasticity: 60, gravity: 0.4, componentSpacing: 90, numIter: 1500, padding: 36 }).run();
  refit(graph, graph.elements());
  tell(drawing);
  canvas.setAttribute("aria-label", `${graph.nodes().length} nodes and ${graph.edges().length} edges`);
}

export function highlight(drawing, nodeIds, edgeIds) {
  const { graph } = drawing;
  if (!graph) return;
  const chosen = new Set([...nodeIds, ...edgeIds.map((id) => `e:${id}`)]);
  graph.elements().forEach((element) => {
    element.toggleClass("faded", chosen.size > 0 && !chosen.has(element.id()));
    element.toggleClass("onpath", chosen.has(element.id()));
  });
  refit(graph, graph.elements().not(".faded"));
}

// One node that nearly all edges meet: rings around it read better than springs.
function isStar(graph) {
  return graph.nodes().length > 6 && graph.nodes().max((node) => node.degree()).value >= 0.7 * graph.edges().length;
}

function refit(graph, elements) {
  if (elements.empty()) return;
  graph.fit(elements, 46);
  if (graph.zoom() > 1.15) { graph.zoom(1.15); graph.center(elements); }
  fitLabels(graph);
}

function tell({ graph, legend }) {
  const types = [...new Set(graph.edges().map((edge) => edge.data("type")))].sort();
  fill(legend, types.map((type) => {
    const line = el("i");
    line.style.background = `hsl(${hue(type)} 60% 50%)`;
    return el("span", {}, line, type.replaceAll("_", " ").toLowerCase());
  }));
}

// Labels keep their size on the screen; one that would cover another label or another node is left out, the less connected node's first.
function fitLabels(graph) {
  const zoom = graph.zoom();
  const size = LABEL_PX / zoom;
  const taken = [];
  const circles = graph.nodes().map((node) => ({ id: node.id(), ...node.renderedPosition() }));
  const ranked = graph.nodes().toArray().sort((a, b) => rank(b) - rank(a));
  graph.startBatch();
  for (const node of ranked) {
    const { x, y } = node.renderedPosition();
    const width = Math.min(node.data("label").length * 6.4, 150) + 6;
    const lines = Math.ceil((node.data("label").length * 6.4) / 150);
    const box = { left: x - width / 2, right: x + width / 2, top: y + 10, bottom: y + 14 + 14 * lines };
    const free = taken.every((other) => box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom);
    const covers = circles.some((one) => one.id !== node.id() && one.x > box.left - 6 && one.x < box.right + 6 && one.y > box.top - 6 && one.y < box.bottom + 6);
    const shown = node.hasClass("onpath") || (free && !covers);
    if (shown) taken.push(box);
    node.style({ "font-size": size, "text-opacity": shown ? 1 : 0, "text-max-width": `${150 / zoom}px`, "text-margin-y": 4 / zoom,
      width: 16 / Math.sqrt(zoom), height: 16 / Math.sqrt(zoom) });
  }
  graph.edges().forEach((edge) => edge.style({ "font-size": 11 / zoom, "arrow-scale": 0.9 / Math.sqrt(zoom) }));
  graph.endBatch();
}

function rank(node) {
  return (node.hasClass("onpath") ? 1000 : 0) + node.degree();
}

function hue(type) {
  if (type in HUES) return HUES[type];
  return [...type].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
}

function short(name) {
  return name.length > 40 ? `${name.slice(0, 38)}…` : name;
}

function style() {
  const probe = document.createElement("i");
  document.body.append(probe);
  const real = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const [ink, accent, card] = ["--ink", "--accent", "--card"].map(real);
  const isDark = Number(ink.match(/\d+/)?.[0] ?? 0) > 128;  // light ink stands on a dark page
  const coloured = (edge) => `hsl(${edge.data("hue")}, 60%, ${isDark ? 68 : 48}%)`;
  probe.remove();
  const backed = { "text-background-color": card, "text-background-opacity": 0.85, "text-background-padding": 2 };
  return [
    { selector: "node", style: { color: ink, label: "data(label)", shape: "data(shape)", "background-color": accent, "text-wrap": "wrap",
      "text-valign": "bottom", ...backed } },
    { selector: "edge", style: { color: ink, width: "mapData(weight, 0, 1, 1.2, 4)", "curve-style": "bezier", opacity: 0.75,
      "line-color": coloured, "target-arrow-color": coloured,
      "target-arrow-shape": "triangle" } },
    { selector: "edge.named, edge.onpath", style: { label: "data(label)", opacity: 1, "text-rotation": "autorotate", ...backed } },
    { selector: "node.onpath", style: { "border-width": 3, "border-color": ink } },
    { selector: "edge.onpath", style: { width: 5 } },
    { selector: ".faded", style: { opacity: 0.35 } },
  ];
}
