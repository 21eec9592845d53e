// Text for reading: question words and quoted sentences marked, code in colours. Everything is text nodes, never markup.

import { el } from "./dom.js";

const KEYWORDS = new Set(("and as assert async await break case catch class const continue def default del do elif else enum except export " +
  "extends False final finally fn for from func function global if impl import in interface is lambda let match mod new None nonlocal not null or " +
  "package pass private protected pub public raise return self static struct super switch this throw throws trait True true false try type use " +
  "var void while with yield").split(" "));
const TOKEN = /("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`\n]*`)|(#[^\n]*|\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(\b\d[\w.]*\b)|(\b[A-Za-z_]\w*\b)/g;
const CODE = /^\s*(?:def|class|import|from|async|function|const|let|var|public|private|func|fn|package|#include|@\w+)\b|[{};]\s*$|\)\s*:\s*$/m;

export function looksLikeCode(passage) {
  return ["code", "docstring"].includes(passage.kind) || (/\.(py|js|ts|java|go|rs|c|h|cpp|rb)\b/.test(passage.document) && CODE.test(passage.text));
}

export function code(text) {
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(TOKEN)) {
    const kind = found[1] ? "string" : found[2] ? "comment" : found[3] ? "number" : KEYWORDS.has(found[4]) ? "keyword" : "";
    if (!kind) continue;
    parts.push(text.slice(last, found.index), el("span", { class: `code-${kind}` }, found[0]));
    last = found.index + found[0].length;
  }
  return el("pre", { class: "code" }, el("code", {}, ...parts, text.slice(last)));
}

// Prose with whole sentences marked as quoted, and words of the question set off.
export function prose(text, { words = [], quotes = [] } = {}) {
  const flat = text.replace(/\s*\n\s*\n\s*/g, "\n\n");
  const paragraph = el("p", {});
  let rest = flat;
  for (const quote of quotes) {
    const at = find(rest, quote);
    if (!at) continue;
    paragraph.append(...marked(rest.slice(0, at.start), words), el("mark", { class: "quote" }, ...marked(rest.slice(at.start, at.end), words)));
    rest = rest.slice(at.end);
  }
  paragraph.append(...marked(rest, words));
  return paragraph;
}

export function contentWords(question) {
  const common = new Set("what which where when who whom whose why how does do did is are was were the a an of in on at to for from by with and or not this that it its be has have".split(" "));
  return [...new Set((question.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) ?? []).filter((word) => !common.has(word)))];
}

function find(text, quote) {
  const pattern = quote.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+");
  const found = pattern && pattern.length < 3000 ? new RegExp(pattern).exec(text) : null;
  return found && { start: found.index, end: found.index + found[0].length };
}

function marked(text, words) {
  if (!words.length) return [text];
  const stems = words.map((word) => word.slice(0, Math.max(4, word.length - 2)).replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\p{L}])(${stems.join("|")})[\\p{L}]*`, "giu");
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    parts.push(text.slice(last, found.index), el("b", {}, found[0]));
    last = found.index + found[0].length;
  }
  return [...parts, text.slice(last)];
}
