// A passage at its place: the text of its document with the lines marked, or the page of a PDF as a picture.

import { get } from "./api.js";
import { el } from "./dom.js";

export async function openSource(passage, attempt) {
  const found = await attempt(() => get(`/graph/source/${passage}`, { picture: true }));
  if (!found) return;
  const place = found.page ? `page ${found.page}` : `lines ${found.lines[0]} to ${found.lines[1]}`;
  const mark = el("mark", { tabindex: "-1" }, found.text);
  const shown = found.picture
    ? el("img", { src: found.picture, alt: `${place} of ${found.document}; the passage is marked` })
    : el("pre", { class: "source" }, found.before, mark, found.after);
  const close = el("button", { type: "button", onclick: () => dialog.close() }, "Close");
  const dialog = el("dialog", { class: "source", "aria-label": `${found.document}, ${place}`, onclose: () => dialog.remove() },
    el("header", {}, el("strong", {}, found.title || found.document), el("span", { class: "meta" }, `${found.document} · ${place}`), close),
    found.problem && el("p", { class: "note" }, found.problem), shown);
  document.body.append(dialog);
  dialog.showModal();
  if (!found.picture) mark.scrollIntoView({ block: "center" });
}
