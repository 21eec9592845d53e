// The page: which view stands, the token, the theme, and what serves.

import { get, Problem, useToken } from "./api.js";
import { fill } from "./dom.js";
import { ask } from "./ask.js";
import { builds } from "./builds.js";
import { home } from "./home.js";
import { memory } from "./memory.js";
import { topics } from "./topics.js";

const VIEWS = { home, ask, topics, memory, builds };
const view = document.getElementById("view");
const problem = document.getElementById("problem");
const token = document.getElementById("token");

// Whatever a view could not do is said in one place; a missing token asks for one.
export async function attempt(work) {
  problem.hidden = true;
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Problem) && !(error instanceof TypeError && /fetch|network/i.test(error.message))) throw error;
    if (error.status === 401) token.hidden = false;
    problem.textContent = error instanceof Problem ? error.message : `the service does not answer (${error.message})`;
    problem.hidden = false;
    return null;
  }
}

async function open() {
  const name = location.hash.slice(1).split("/")[0] || "home";
  const chosen = VIEWS[name] ? name : "home";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${chosen}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  fill(view);
  await attempt(() => VIEWS[chosen](view, { attempt, refresh: serves }));
}

async function serves() {
  const place = document.getElementById("serves");
  const found = await attempt(() => get("/snapshots"));
  const now = found?.snapshots.find((snapshot) => snapshot.serves);
  place.textContent = now ? `serves ${now.snapshot.slice(0, 12)}${now.created_at ? ` of ${now.created_at.slice(0, 16).replace("T", " ")}` : ""}` : found ? "nothing is published yet; run `hades build`" : "";
}

token.addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(new FormData(token).get("token"));
  token.hidden = true;
  serves();
  open();
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("hades.theme", root.dataset.theme);
  document.dispatchEvent(new Event("theme"));
});
if (localStorage.getItem("hades.theme")) document.documentElement.dataset.theme = localStorage.getItem("hades.theme");

// Keys for whoever does not use a mouse; none of them works while something is typed.
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) return;
  const name = Object.keys(VIEWS)[Number(event.key) - 1];
  if (name) location.hash = `#${name}`;
  if (event.key === "d") document.getElementById("theme").click();
  if (event.key === "/") {
    event.preventDefault();
    const field = document.querySelector("input[name=query]");
    if (field) field.focus();
    else location.hash = "#ask";
  }
  if (event.key === "j" || event.key === "k") {
    const paths = [...document.querySelectorAll("button.path")];
    const now = paths.findIndex((one) => one.getAttribute("aria-pressed") === "true");
    const next = paths[Math.min(Math.max(now + (event.key === "j" ? 1 : -1), 0), paths.length - 1)];
    next?.click();
    next?.scrollIntoView({ block: "nearest" });
  }
});

addEventListener("hashchange", open);
serves();
open();
