// The pages can be read without this file. With it, code can be copied, calls
// can be tried, and pages that are files can be searched.
"use strict";

(() => {
  const make = (name, text, attributes = {}) => {
    const e = document.createElement(name);
    e.textContent = text;
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };

  // "/" and Ctrl-K go to the search field.
  document.addEventListener("keydown", (e) => {
    const field = document.getElementById("find");
    const typing = /INPUT|SELECT|TEXTAREA/.test(document.activeElement?.tagName ?? "");
    const asked = (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) || (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey));
    if (!field || !asked) return;
    e.preventDefault();
    field.focus();
    field.select();
  });

  // Whoever chose a language once sees it on every page.
  const language = localStorage.getItem("language");
  for (const d of document.querySelectorAll("details[data-language]")) {
    if (d.dataset.language === language) d.open = true;
    d.addEventListener("toggle", () => { if (d.open) localStorage.setItem("language", d.dataset.language); });
  }

  if (navigator.clipboard) {
    for (const pre of document.querySelectorAll("main pre")) {
      const box = make("div", "", { class: "copied" });
      const button = make("button", "Copy", { type: "button", class: "slim" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      });
      pre.replaceWith(box);
      box.append(pre, button);
    }
  }

  // The search of pages that are files, as Site.Search does it.
  const hits = document.getElementById("hits");
  if (hits && typeof tributaryIndex !== "undefined") {
    const query = (new URLSearchParams(location.search).get("q") ?? "").trim().slice(0, 200);
    document.getElementById("find").value = query;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 8);
    const found = [];
    for (const s of words.length ? tributaryIndex : []) {
      const title = (s.t + " " + (s.o ?? "")).toLowerCase();
      const text = s.x.toLowerCase();
      const also = s.w ?? "";
      if (!words.every((w) => also.includes(w) || title.includes(w) || text.includes(w))) continue;
      const rank = words.filter((w) => title.includes(w)).length + 2 * words.filter((w) => also.includes(w)).length;
      found.push({ s, rank, at: text.indexOf(words[0]) });
    }
    found.sort((a, b) => b.rank - a.rank);
    for (const { s, at } of found.slice(0, 40)) {
      const item = make("li", "");
      const from = Math.max(0, at - 60);
      item.append(make("a", s.t, { href: s.p + (s.a ? "#" + s.a : "") }));
      if (s.o && s.o !== s.t) item.append(" ", make("span", "in " + s.o, { class: "quiet" }));
      item.append(make("p", (from ? "… " : "") + s.x.slice(from, from + 220)));
      hits.append(item);
    }
    if (query) document.getElementById("found").textContent = found.length ? Math.min(found.length, 40) + " places for “" + query + "”" : "Nothing has all words of “" + query + "”.";
  }

  // Trying a call. Ids that an answer names are offered on the next page.
  const form = document.getElementById("tryform");
  if (!form) return;
  form.hidden = false;
  const remembered = ["operation_id", "job_id", "webhook_id", "resource_id"];
  for (const field of form.querySelectorAll("input[data-name]")) {
    if (!field.value && field.dataset.in === "path") field.value = sessionStorage.getItem("try:" + field.dataset.name) ?? "";
  }
  const remember = (value) => {
    if (!value || typeof value !== "object") return;
    for (const [key, inner] of Object.entries(value)) {
      if (remembered.includes(key) && typeof inner === "string") sessionStorage.setItem("try:" + key, inner);
      remember(inner);
    }
  };
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    const tried = document.getElementById("tried");
    let path = form.dataset.path;
    const query = new URLSearchParams();
    const call = { method: form.dataset.method, headers: {} };
    for (const field of form.querySelectorAll("[data-in]")) {
      const { in: place, name } = field.dataset;
      if (place === "path") path = path.replace("{" + name + "}", encodeURIComponent(field.value));
      if (place === "query" && field.value) query.set(name, field.value);
      if (place === "key" && field.value) call.headers.Authorization = "Bearer " + field.value;
      if (place === "body") {
        call.headers["Content-Type"] = "application/json";
        call.body = field.value;
      }
    }
    const at = new URL(".." + path, document.baseURI);
    at.search = query.toString();
    tried.replaceChildren(make("p", "Waiting for the answer"));
    try {
      const began = performance.now();
      const answer = await fetch(at, call);
      const media = answer.headers.get("Content-Type") ?? "";
      let text = /json|xml|text/.test(media) ? await answer.text() : "";
      if (/json/.test(media)) {
        const value = JSON.parse(text);
        remember(value);
        text = JSON.stringify(value, null, 2);
      }
      const took = Math.round(performance.now() - began);
      tried.replaceChildren(make("p", answer.status + " " + answer.statusText + " in " + took + " ms", { class: "status" }));
      if (text) tried.append(make("pre", text, { tabindex: "0" }));
      else if (media) tried.append(make("p", media));
    } catch (problem) {
      tried.replaceChildren(make("p", "There was no answer: " + problem.message));
    }
  });
})();
