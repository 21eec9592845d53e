// Code in colours; lines that decide are marked. Everything is text nodes, never markup.

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

export function code(text, marks = []) {
  const lines = text.split("\n");
  const marked = lines.findIndex((line) => marks.includes(line.trim()));
  if (marked >= 0) {
    const piece = (from, to) => coloured(lines.slice(from, to).join("\n"));
    return el("pre", { class: "code" }, el("code", {}, ...piece(0, marked), marked ? "\n" : "",
      el("mark", { class: "quote" }, ...piece(marked, marked + 1)), marked + 1 < lines.length ? "\n" : "", ...piece(marked + 1)));
  }
  return el("pre", { class: "code" }, el("code", {}, ...coloured(text)));
}

function coloured(text) {
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(TOKEN)) {
    const kind = found[1] ? "string" : found[2] ? "comment" : found[3] ? "number" : KEYWORDS.has(found[4]) ? "keyword" : "";
    if (!kind) continue;
    parts.push(text.slice(last, found.index), el("span", { class: `code-${kind}` }, found[0]));
    last = found.index + found[0].length;
  }
  return [...parts, text.slice(last)];
}
