// The service behind the page. What the service's own description lists decides what the page offers.

const KEY = "hades.token";
let described = null;

export class Problem extends Error {
  constructor(status, body) {
    super([body.message ?? body.error ?? body.title ?? `status ${status}`, body.expectation, body.next].filter(Boolean).join("; "));
    this.status = status;
  }
}

export function useToken(token) {
  sessionStorage.setItem(KEY, token);
  described = null;
}

function headers(body) {
  const token = sessionStorage.getItem(KEY);
  return {
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
    ...(body === undefined ? {} : { "Content-Type": "application/json" }),
  };
}

async function call(method, path, body) {
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(path, { method, headers: headers(body), body: sent });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

export async function get(path, parameters = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null && one !== "") asked.append(name, one);
  }
  const text = asked.toString();
  return (await call("GET", `/v1${path}${text ? `?${text}` : ""}`)).json();
}

export async function post(path, body) {
  return (await call("POST", `/v1${path}`, body)).json();
}

// A file as it is; `onSent` hears how many bytes are on their way.
export function put(path, file, onSent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", `/v1${path}`);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onSent(event.loaded);
    request.onerror = () => reject(new Problem(0, { error: "the file was not sent", next: "try again" }));
    request.onload = () => {
      if (request.status < 300) return resolve();
      let body = {};
      try { body = JSON.parse(request.responseText); } catch { /* the status says enough */ }
      reject(new Problem(request.status, body));
    };
    request.send(file);
  });
}

// The stages of a turn as they end, then the answer.
export async function stream(body, onStage) {
  const response = await call("POST", "/v1/query/stream", body);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Problem(0, { error: "the answer broke off", next: "ask again" });
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const name = /^event: (.*)$/m.exec(event)?.[1];
      const data = JSON.parse(/^data: (.*)$/m.exec(event)[1]);
      if (name === "stage") onStage(data);
      if (name === "answer") return data;
      if (name === "problem") throw new Problem(data.status, data);
    }
  }
}

async function description() {
  described ??= await get("/openapi.json");
  return described;
}

export async function offers(method, path) {
  return method in ((await description()).paths[`/v1${path}`] ?? {});
}

export async function recipes() {
  const recipe = (await description()).components.schemas.QueryBody.properties.recipe;
  return { names: recipe.enum, chosen: recipe.enum.includes("auto") ? "auto" : recipe.default };
}
