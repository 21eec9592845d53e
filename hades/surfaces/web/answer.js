// An answer: quoted blocks under their headings, or sentences with their citations; a citation leads to its source.

import { card, el } from "./dom.js";
import { markdown } from "./markdown.js";

export function answerCard(written, onSource) {
  if (!written.sentences.length) return card("Answer", el("p", {}, "The sources do not answer this. The passages below are the nearest."), written.absence && el("p", { class: "meta" }, written.absence.sentence));
  const byNumber = new Map(written.sources.map((source) => [source.number, source]));
  if (written.sentences[0].kind) return quotation(written, byNumber, onSource);
  const isPlace = (sentence) => written.mode === "extracted" && sentence.citations.every((number) => byNumber.get(number)?.code || byNumber.get(number)?.kind === "state");
  const kind = (sentence) => ["sentence", !sentence.is_supported && "unsupported", isPlace(sentence) && "place"].filter(Boolean).join(" ");
  const sentences = written.sentences.map((sentence) => el("span", { class: kind(sentence), title: sentence.problem || undefined },
    sentence.text, ...sentence.citations.map((number) => el("button", { type: "button", class: "cite", "aria-label": `source ${number}: ${byNumber.get(number)?.title ?? ""}`,
      title: place(byNumber.get(number)), onclick: () => onSource(byNumber.get(number)) }, String(number))),
    !sentence.is_supported && el("small", {}, ` not supported: ${sentence.problem}`), " "));
  const cited = [...new Set(written.sentences.flatMap((sentence) => sentence.citations))].sort((a, b) => a - b).map((number) => byNumber.get(number)).filter(Boolean);
  const how = written.mode === "written" ? `Written by ${written.model} and checked against its sources.` : "Taken from the sources; no language model wrote it.";
  const made = card("Answer", el("p", { class: "answer" }, sentences),
    el("ol", { class: "sources", "aria-label": "Sources" }, cited.map((source) => el("li", { value: source.number },
      el("button", { type: "button", class: "link", onclick: () => onSource(source) }, place(source))))),
    el("p", { class: "meta" }, how, written.problem && ` ${written.problem}`));
  made.classList.add("written");
  return made;
}

// What the sources say themselves, source by source.
function quotation(written, byNumber, onSource) {
  const blocks = written.sentences.flatMap((block) => {
    const source = byNumber.get(block.citations[0]);
    return [block.heading && el("p", { class: "where" }, el("button", { type: "button", class: "cite", "aria-label": `source ${source.number}: ${block.heading}`, onclick: () => onSource(source) }, String(source.number)),
      " ", el("strong", {}, block.heading), " ", el("span", { class: "meta" }, source.document, source.carries && " (said only here)")), markdown(block.text, { marks: block.marks })];
  });
  const made = card("Answer", written.changes && el("p", {}, written.changes.sentence), el("div", { class: "answer" }, ...blocks), el("p", { class: "meta" }, "Taken from the sources; no language model wrote it.", written.problem && ` ${written.problem}`));
  made.classList.add("written");
  return made;
}

function place(source) {
  if (!source) return "";
  const code = /:\d+$/.test(source.where);
  return [...new Set(code ? [source.where] : [source.title || source.document, source.where, source.document])].filter(Boolean).join(" · ");
}
