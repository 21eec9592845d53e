// A treemap in plain elements: area is size, colour is the group where there are several. Keyboard and screen reader see a list of buttons.

import { count, el } from "./dom.js";

const HUES = [245, 165, 25, 320, 85, 205, 285, 50, 130, 0];

export function treemap(items, onChoose) {
  const sorted = items.filter((item) => item.size > 0).sort((a, b) => b.size - a.size);
  const groups = [...new Set(sorted.map((item) => item.group))];
  const map = el("div", { class: "treemap", role: "list" });
  const rem = Math.min(22, 5 + 2.2 * sorted.length);
  map.style.height = `${rem}rem`;
  for (const { item, x, y, width, height } of squarify(sorted, 0, 0, 100, 100)) {
    const cell = el("button", { type: "button", role: "listitem", class: "cell", title: `${item.name}: ${count(item.size)}`, onclick: () => onChoose(item) },
      el("span", { class: "name" }, item.name), el("small", {}, count(item.size)));
    const room = (height / 100) * rem - 1.1;  // rem inside the border; a line of the name takes 1.05, the size 0.95
    cell.lastChild.hidden = room < 2;
    cell.firstChild.style.webkitLineClamp = Math.max(1, Math.floor((room - (cell.lastChild.hidden ? 0 : 0.95)) / 1.05));
    Object.assign(cell.style, { left: `${x}%`, top: `${y}%`, width: `${width}%`, height: `${height}%` });
    cell.style.setProperty("--hue", HUES[Math.max(groups.length > 1 ? groups.indexOf(item.group) : sorted.indexOf(item), 0) % HUES.length]);
    map.append(cell);
  }
  return map;
}

// Rows of cells that are as square as they can be (Bruls, Huizing and van Wijk, 2000).
function squarify(items, x, y, width, height) {
  const total = items.reduce((sum, item) => sum + item.size, 0);
  const cells = [];
  let rest = items.map((item) => ({ item, area: (item.size / total) * width * height }));
  while (rest.length) {
    const side = Math.min(width, height);
    let taken = 1;
    while (taken < rest.length && worst(rest.slice(0, taken + 1), side) <= worst(rest.slice(0, taken), side)) taken += 1;
    const row = rest.slice(0, taken);
    const area = row.reduce((sum, one) => sum + one.area, 0);
    const thick = area / side;
    let along = 0;
    for (const { item, area: own } of row) {
      const length = own / thick;
      cells.push(width >= height ? { item, x, y: y + along, width: thick, height: length } : { item, x: x + along, y, width: length, height: thick });
      along += length;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    rest = rest.slice(taken);
  }
  return cells;
}

function worst(row, side) {
  const area = row.reduce((sum, one) => sum + one.area, 0);
  return Math.max(...row.map((one) => Math.max((side * side * one.area) / (area * area), (area * area) / (side * side * one.area))));
}
