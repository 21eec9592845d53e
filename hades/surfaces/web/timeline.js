// Versions and edges of a topic as bars along time, with a line at the chosen moment.

import { day } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const ROW = 30, LEFT = 8, RIGHT = 8, TOP = 20;

export function timeline(rows, first, last, onMoment) {
  const width = 760;
  const height = TOP + rows.length * ROW + 24;
  const x = (time) => LEFT + ((Math.min(Math.max(time, first), last) - first) / Math.max(last - first, 1)) * (width - LEFT - RIGHT);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img", "aria-label": `${rows.length} periods between ${day(new Date(first).toISOString())} and today` });
  for (let step = 0; step <= 4; step += 1) {
    const time = first + ((last - first) * step) / 4;
    svg.append(node("line", { x1: x(time), x2: x(time), y1: TOP, y2: height - 20, class: "tick" }),
      node("text", { x: x(time), y: height - 4, "text-anchor": step === 0 ? "start" : step === 4 ? "end" : "middle" }, new Date(time).toISOString().slice(0, 10)));
  }
  rows.forEach((row, index) => {
    const y = TOP + index * ROW;
    const end = row.until ?? last;
    svg.append(node("rect", { x: x(row.from), y: y + 4, width: Math.max(x(end) - x(row.from), 3), height: ROW - 10, rx: 4, class: row.kind }),
      node("text", { x: Math.min(x(row.from) + 6, width - 160), y: y + 19, class: "name" }, row.label.length > 70 ? `${row.label.slice(0, 68)}…` : row.label));
  });
  const now = node("line", { x1: x(last), x2: x(last), y1: 4, y2: height - 20, class: "now" });
  svg.append(now);
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    onMoment(Math.round(first + ((at - LEFT) / (width - LEFT - RIGHT)) * (last - first)));
  });
  return { element: svg, move: (time) => { now.setAttribute("x1", x(time)); now.setAttribute("x2", x(time)); } };
}

function node(name, attributes, text) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
