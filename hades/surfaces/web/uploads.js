// Add documents: drop files or a folder into the page, choose them, or name a folder that the service may read.

import { get, post, put } from "./api.js";
import { card, el } from "./dom.js";

const POLL = 700;

export async function uploads(attempt, onReady) {
  const { folders, state } = await get("/uploads");
  const told = el("p", { class: "meta", role: "status" });
  const bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress" });
  const choose = (label, folder) => {
    const input = el("input", { type: "file", multiple: true, webkitdirectory: folder, class: "unseen", tabindex: -1, "aria-hidden": "true",
      onchange: () => send([...input.files].map((file) => [file.webkitRelativePath || file.name, file])) });
    return [input, el("button", { type: "button", onclick: () => input.click() }, label)];
  };
  const path = el("input", { name: "folder", list: "folders", "aria-label": "A folder of this machine", placeholder: folders[0] ?? "" });
  const zone = el("div", { class: "drop", ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
    ondragleave: () => zone.classList.remove("over"), ondrop: drop },
    el("p", {}, "Drop files or a folder here, or choose: "), el("p", { class: "row" }, choose("Files…", false), choose("Folder…", true)),
    folders.length > 0 && el("form", { class: "row", onsubmit: (event) => { event.preventDefault(); named(); } }, path,
      el("datalist", { id: "folders" }, folders.map((folder) => el("option", { value: folder }))), el("button", {}, "Read this folder")), bar, told);
  if (state === "reading") watch();
  return card("Add documents", zone);

  async function drop(event) {
    event.preventDefault();
    zone.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    send(entries.length ? (await Promise.all(entries.map((entry) => under(entry)))).flat() : [...event.dataTransfer.files].map((file) => [file.name, file]));
  }

  async function named() {
    if (await say(() => post("/uploads/folder", { path: path.value.trim() || path.placeholder }))) await watch();
  }

  // Names, types and sizes are checked before a byte is sent; a refusal keeps nothing.
  async function send(chosen) {
    const files = chosen.filter(([name]) => !name.split("/").some((part) => part.startsWith(".")));
    if (!files.length) return;
    const all = files.reduce((sum, [, file]) => sum + file.size, 0) || 1;
    await say(async () => {
      const { upload } = await post("/uploads", { files: Object.fromEntries(files.map(([name, file]) => [name, file.size])) });
      let done = 0;
      for (const [name, file] of files) {
        progress(`sending ${name}`, done / all);
        await put(`/uploads/${upload}/files/${name.split("/").map(encodeURIComponent).join("/")}`, file, (sent) => progress(`sending ${name}`, (done + sent) / all));
        done += file.size;
      }
      await post(`/uploads/${upload}/finish`);
      return true;
    }) && await watch();
  }

  async function watch() {
    for (;;) {
      const now = await attempt(() => get("/uploads"));
      if (!now) return;
      if (now.state === "reading") progress(`reading: ${now.stage}`, now.total ? now.done / now.total : null);
      else {
        bar.hidden = true;
        told.textContent = now.state === "failed" ? now.problem : "Read. Ask away.";
        if (now.state === "ready") onReady();
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, POLL));
    }
  }

  async function say(work) {
    told.classList.remove("refused");
    try {
      return await work();
    } catch (error) {
      bar.hidden = true;
      told.classList.add("refused");
      told.textContent = error.message;
      return null;
    }
  }

  function progress(text, share) {
    told.textContent = text;
    bar.hidden = false;
    if (share === null) bar.removeAttribute("value");
    else bar.value = share;
  }
}

// Every file under a dropped entry, with its path.
async function under(entry) {
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) return [[path, await new Promise((resolve, reject) => entry.file(resolve, reject))]];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    found.push(...some);
  }
  return (await Promise.all(found.map(under))).flat();
}
