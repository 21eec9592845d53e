// Versions and edges of a topic as bars along time, with a line at the chosen moment.

import { day } from "./dom.js";

const SPACE = "http://www.w3.org/2000/svg";
const ROW = 30, LEFT = 8, RIGHT = 8, TOP = 20;

export function timeline(rows, first, last, onMoment) {
  const isNarrow = innerWidth < 700;  // the drawing is scaled to its place; on a phone its letters must stay readable
  const width = isNarrow ? 380 : 760;
  const steps = isNarrow ? 2 : 4;
  const height = TOP + rows.length * ROW + 24;
  const x = (time) => LEFT + ((Math.min(Math.max(time, first), last) - first) / Math.max(last - first, 1)) * (width - LEFT - RIGHT);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img", "aria-label": `${rows.length} periods between ${day(new Date(first).toISOString())} and today` });
  for (let step = 0; step <= steps; step += 1) {
    const time = first + ((last - first) * step) / steps;
    svg.append(node("line", { x1: x(time), x2: x(time), y1: TOP, y2: height - 20, class: "tick" }),
      node("text", { x: x(time), y: height - 4, "text-anchor": step === 0 ? "start" : step === steps ? "end" : "middle" }, new Date(time).toISOString().slice(0, 10)));
  }
  rows.forEach((row, index) => {
    const y = TOP + index * ROW;
    const end = row.until ?? last;
    const start = x(row.from);
    const isLate = start > width * 0.6;  // no room for words to the right of where the bar begins
    const room = Math.floor((isLate ? start - LEFT - 8 : width - start - 14) / 6.3);
    svg.append(node("rect", { x: x(row.from), y: y + 4, width: Math.max(x(end) - x(row.from), 3), height: ROW - 10, rx: 4, class: row.kind }),
      node("text", { x: isLate ? start - 6 : start + 6, y: y + 19, class: "name", "text-anchor": isLate ? "end" : "start" }, row.label.length > room ? `${row.label.slice(0, room - 1)}…` : row.label));
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
