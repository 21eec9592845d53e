// Markdown as a page: paragraphs, lists, tables and code, with the words that decide marked. Text nodes only, never markup.

import { el } from "./dom.js";
import { code } from "./highlight.js";

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|(?<![\w*])\*([^\s*][^*]*?)\*(?![\w*])|(?<!\w)_([^\s_][^_]*?)_(?!\w)/g;

// `marks` are sentences that decide; `words` are those of the question.
export function markdown(text, { marks = [], words = [] } = {}) {
  const parts = [];
  for (const block of blocks(text)) {
    const fence = /^(`{3,})([\w+-]*)\n([^]*?)\n?\1\s*$/.exec(block.trim());
    const item = /^(\s*)(-|\d+[.)])\s+([^]*)$/.exec(block);
    if (fence) parts.push(code(fence[3], marks));
    else if (item) add(parts, item[2] === "-" ? "ul" : "ol", el("li", item[2] === "-" ? {} : { value: parseInt(item[2], 10) }, ...inline(item[3], marks, words)));
    else if (/^\s*\|.*\|\s*(\n|$)/.test(block)) parts.push(table(block, marks, words));
    else if (block.trim()) parts.push(el("p", {}, ...inline(block, marks, words)));
  }
  return el("div", { class: "markdown" }, ...parts);
}

// Pieces between blank lines; a blank line inside a fence parts nothing.
function blocks(text) {
  const found = [[]];
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^\s*(`{3,})/.exec(line)?.[1] ?? "";
    if (!fence && !line.trim()) found.push([]);
    else found.at(-1).push(line);
    if (mark) fence = fence ? (mark.length >= fence.length ? "" : fence) : mark;
  }
  return found.map((lines) => lines.join("\n")).filter((block) => block.trim());
}

function add(parts, kind, item) {
  const last = parts.at(-1);
  if (last?.localName === kind) last.append(item);
  else parts.push(el(kind, {}, item));
}

function table(block, marks, words) {
  const rows = block.trim().split("\n").map((line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim()));
  const head = rows.length > 1 && rows[1].every((cell) => /^:?-+:?$/.test(cell)) ? rows.splice(0, 2)[0] : null;
  const line = (cells, name) => el("tr", {}, cells.map((cell) => el(name, {}, ...inline(cell, marks, words))));
  return el("table", {}, head && el("thead", {}, line(head, "th")), el("tbody", {}, rows.map((cells) => line(cells, "td"))));
}

function inline(text, marks, words) {
  const mark = marks.find((one) => text.includes(one));
  if (mark) {
    const at = text.indexOf(mark);
    return [...inline(text.slice(0, at), marks, words), el("mark", { class: "quote" }, ...styled(mark, words)), ...inline(text.slice(at + mark.length), marks, words)];
  }
  return styled(text, words);
}

function styled(text, words) {
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(...spoken(text.slice(last, found.index), words));
    if (found[2] !== undefined) parts.push(el("code", {}, found[2]));
    else parts.push(el(found[3] !== undefined ? "strong" : "em", {}, ...spoken(found[3] ?? found[4] ?? found[5], words)));
    last = found.index + found[0].length;
  }
  return [...parts, ...spoken(text.slice(last), words)];
}

export function contentWords(question) {
  const common = new Set("what which where when who whom whose why how does do did is are was were the a an of in on at to for from by with and or not this that it its be has have".split(" "));
  return [...new Set((question.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? []).filter((word) => !common.has(word)))];
}

function spoken(text, words) {
  if (!words.length || !text) return [text];
  const stems = words.map((word) => word.slice(0, Math.max(4, word.length - 2)).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(new RegExp(`(?<![\\p{L}])(${stems.join("|")})[\\p{L}]*`, "giu"))) {
    parts.push(text.slice(last, found.index), el("b", {}, found[0]));
    last = found.index + found[0].length;
  }
  return [...parts, text.slice(last)];
}
