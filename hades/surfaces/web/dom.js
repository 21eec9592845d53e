// Elements from values, and nothing from text: what a document says is never parsed as markup.

export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter(Boolean));
  return parent;
}

export function card(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), ...children);
}

// A bar of `value` out of `most`, with the figures beside it.
export function bar(label, value, most, text) {
  const share = most > 0 ? Math.min(100, (100 * value) / most) : 0;
  const filled = el("i");
  filled.style.width = `${share}%`;
  const track = el("div", { class: "track", role: "img", "aria-label": `${label}: ${text}` }, filled);
  return el("div", { class: "bar" }, el("span", {}, label), track, el("span", { class: "value" }, text));
}

export function day(text) {
  return text ? String(text).slice(0, 10) : "";
}

export function count(number) {
  return Number(number).toLocaleString("en");
}

// A summary without the marks of Markdown.
export function plain(text) {
  return (text ?? "").replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*#]{1,3}/g, "").replace(/\s+/g, " ").trim();
}
