// The console works without this file. With it, pages follow what happens: the
// server sends the changed part of a page as HTML it has made itself, and this
// script puts it in place without losing focus or opened details.
"use strict";

(() => {
  const region = document.querySelector("[data-live]");
  const pulse = document.getElementById("pulse");
  const announcer = document.getElementById("announcer");

  const say = (text, state) => {
    if (!pulse) return;
    pulse.textContent = text;
    pulse.className = "pulse " + state;
  };

  // Times come in UTC. Lists show how long ago; the exact time, in UTC or in the
  // reader's own zone, is what the reader has chosen.
  const local = localStorage.getItem("zone") === "local";
  const pad = (n) => String(n).padStart(2, "0");
  const inZone = (d, utc) => {
    const day = d.getFullYear() + "-" + pad(d.getMonth() + 1) + "-" + pad(d.getDate());
    const clock = pad(d.getHours()) + ":" + pad(d.getMinutes()) + ":" + pad(d.getSeconds());
    if (/^\d{4}-/.test(utc)) return day + " " + clock;
    if (/^\d\d:/.test(utc)) return clock + "." + String(d.getMilliseconds()).padStart(3, "0");
    return day.slice(5) + " " + clock;
  };
  const gone = (d) => {
    const s = Math.round((Date.now() - d) / 1000);
    if (s < 0) return null;
    if (s < 60) return s + " s ago";
    if (s < 3600) return Math.floor(s / 60) + " min ago";
    if (s < 86400) return Math.floor(s / 3600) + " h ago";
    return Math.floor(s / 86400) + " d ago";
  };
  const tellTimes = () => {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const utc = (t.dataset.utc ??= t.textContent);
      const d = new Date(t.dateTime);
      const exact = local ? inZone(d, utc) : utc;
      t.title = exact + (local ? "" : " UTC");
      const text = (t.classList.contains("ago") && gone(d)) || exact;
      if (t.textContent !== text) t.textContent = text;
    }
  };
  tellTimes();
  setInterval(tellTimes, 10000);
  const zone = document.getElementById("zone");
  if (zone) {
    const name = local ? "Times are " + Intl.DateTimeFormat().resolvedOptions().timeZone : "Times are UTC";
    zone.hidden = false;
    zone.textContent = name + ": change";
    for (const e of document.querySelectorAll("[data-zone]")) e.textContent = "";
    zone.addEventListener("click", () => { localStorage.setItem("zone", local ? "utc" : "local"); location.reload(); });
  }

  const showCopies = () => {
    for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = !navigator.clipboard;
  };

  // What is ticked stays ticked on the other pages of a list until it is acted on.
  // The order of a list makes no other list of it.
  const chooser = document.getElementById("choose");
  const elsewhere = document.getElementById("elsewhere");
  let ticked = new Set();
  let tickedAs = "";
  const ticks = () => [...document.querySelectorAll('input[type=checkbox][form="choose"]')];
  const showTicks = () => {
    if (!chooser) return;
    const boxes = ticks();
    for (const box of boxes) box.checked = ticked.has(box.value);
    const here = new Set(boxes.map((box) => box.value));
    const others = [...ticked].filter((id) => !here.has(id)).length;
    elsewhere.hidden = others === 0;
    elsewhere.firstElementChild.textContent = others + " more selected on other pages";
  };
  const keepTicks = () => {
    for (const box of ticks()) ticked[box.checked ? "add" : "delete"](box.value);
    sessionStorage.setItem(tickedAs, JSON.stringify([...ticked]));
    showTicks();
  };
  if (chooser) {
    const at = new URL(chooser.elements.namedItem("back").value, location.origin);
    at.searchParams.delete("sort");
    tickedAs = "ticked:" + at.pathname + at.search;
    ticked = new Set(JSON.parse(sessionStorage.getItem(tickedAs) ?? "[]"));
    document.addEventListener("change", (e) => { if (e.target.getAttribute?.("form") === "choose") keepTicks(); });
    chooser.addEventListener("formdata", (e) => {
      const sent = new Set(e.formData.getAll(elsewhere.dataset.field));
      for (const id of ticked) if (!sent.has(id)) e.formData.append(elsewhere.dataset.field, id);
    });
    elsewhere.querySelector("button").addEventListener("click", () => { ticked.clear(); sessionStorage.removeItem(tickedAs); showTicks(); });
    showTicks();
    window.addEventListener("pageshow", showTicks); // a browser may bring back what was ticked when the page was left
  }
  document.getElementById("do")?.form.addEventListener("submit", () => {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith("ticked:")) sessionStorage.removeItem(name);
  });

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE && (node.id || (node.dataset.row ?? "").split(":")[0])) || "";

  // morph makes a node equal to another with as few changes as it can: what
  // stays the same stays in place, with its focus, its selection and a click
  // that is under way. Rows are known by their key wherever they move.
  const morph = (node, next) => {
    if (node.isEqualNode(next)) return;
    if (node.nodeType !== next.nodeType || node.nodeName !== next.nodeName) {
      node.replaceWith(next);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE) {
      node.nodeValue = next.nodeValue;
      return;
    }
    const kept = node.nodeName === "DETAILS" ? "open" : ""; // the reader's choice
    for (const { name } of [...node.attributes]) if (name !== kept && !next.hasAttribute(name)) node.removeAttribute(name);
    for (const { name, value } of next.attributes) if (name !== kept && node.getAttribute(name) !== value) node.setAttribute(name, value);
    morphChildren(node, next);
  };
  const morphChildren = (node, next) => {
    const keyed = new Map([...node.childNodes].map((c) => [keyOf(c), c]));
    let at = node.firstChild;
    for (const child of [...next.childNodes]) {
      const key = keyOf(child);
      const match = key ? keyed.get(key) : at && !keyOf(at) && at.nodeName === child.nodeName ? at : null;
      if (!match) {
        node.insertBefore(child, at);
        continue;
      }
      if (match === at) at = at.nextSibling;
      else node.insertBefore(match, at);
      morph(match, child);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };

  // place puts a new version of the region into the page, marks the rows that
  // are new or changed, and tells a screen reader the one sentence of news.
  const place = (html) => {
    const rows = () => [...region.querySelectorAll("[data-row]")];
    const before = new Set(rows().map((e) => e.dataset.row));
    const heard = region.querySelector("[data-announce]")?.textContent;
    morphChildren(region, new DOMParser().parseFromString(html, "text/html").body);
    tellTimes();
    showCopies();
    showTicks();
    for (const e of rows()) if (!before.has(e.dataset.row)) e.classList.add("fresh");
    const news = region.querySelector("[data-announce]")?.textContent;
    if (announcer && news && news !== heard) announcer.textContent = news;
  };

  // busy is true while somebody writes or presses a button in the region: what
  // they do is worth more than our news, which waits.
  let pressed = false;
  const busy = () => {
    const e = document.activeElement;
    return pressed || (e && region.contains(e) && /^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName));
  };

  if (region && window.EventSource) {
    let source = null;
    let waiting = null;
    const settle = () => setTimeout(() => {
      if (waiting === null || busy()) return;
      place(waiting);
      waiting = null;
    }, 0);
    const open = () => {
      source = new EventSource(region.dataset.live);
      source.onopen = () => say("Live", "on");
      source.onerror = () => say(source.readyState === EventSource.CLOSED ? "Not live: reload the page" : "Reconnecting", "lost");
      source.addEventListener("page", (e) => { waiting = e.data; settle(); });
      source.addEventListener("over", (e) => { source.close(); source = null; say(e.data, "lost"); });
    };
    const close = () => { source?.close(); source = null; };
    region.addEventListener("pointerdown", () => { pressed = true; });
    document.addEventListener("pointerup", () => { pressed = false; settle(); });
    document.addEventListener("pointercancel", () => { pressed = false; settle(); });
    region.addEventListener("focusout", settle);
    // A browser has few connections to one host: a page nobody sees gives its own back.
    document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else if (!source) open(); });
    window.addEventListener("pagehide", close);
    if (!document.hidden) open();
  }

  // A notice belongs to one view of the page, not to its address.
  const here = new URL(location.href);
  if (here.searchParams.has("notice")) {
    here.searchParams.delete("notice");
    history.replaceState(null, "", here);
  }

  // A form that asks first.
  document.addEventListener("submit", (e) => {
    const question = e.submitter?.dataset.ask ?? e.target.dataset.ask;
    if (question && !window.confirm(question)) e.preventDefault();
  });

  // Searches do not carry empty fields in their address.
  for (const form of document.querySelectorAll("form[data-tidy]")) {
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
      window.addEventListener("pageshow", () => { for (const field of form.elements) field.disabled = false; }, { once: true });
    });
  }

  // The preview of a document follows the form beside it.
  const look = document.querySelector("form[data-preview]");
  const sheet = document.getElementById("preview");
  if (look && sheet) {
    let timer = 0;
    const draw = () => {
      const query = new URLSearchParams();
      for (const name of ["accent", "ink", "font", "placement", "display_name", "template", "footer"]) {
        const field = look.elements.namedItem(name);
        if (field) query.set(name, field.value);
      }
      const fresh = sheet.cloneNode(false); // an object does not reload by itself
      const at = look.dataset.preview + "?" + query;
      fresh.data = at + "#toolbar=0&navpanes=0&view=FitH";
      document.getElementById("preview").replaceWith(fresh);
      const link = document.getElementById("preview-link");
      if (link) link.href = at;
    };
    look.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(draw, 350); });
  }
  for (const picker of document.querySelectorAll("input[type=color][data-for]")) {
    const field = document.getElementById(picker.dataset.for);
    picker.addEventListener("input", () => { field.value = picker.value.toUpperCase(); });
    field.addEventListener("input", () => { if (/^#[0-9a-f]{6}$/i.test(field.value)) picker.value = field.value; });
  }
  // Copying: by one listener, because a live page brings new buttons.
  showCopies();
  document.addEventListener("click", async (e) => {
    const button = e.target.closest?.("button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    if (announcer) announcer.textContent = "Copied";
    button.textContent = "Copied";
  });

  // One box ticks all of a list; a live page keeps what is ticked.
  for (const box of document.querySelectorAll("input[data-all]")) {
    box.closest("label").hidden = false;
    box.addEventListener("change", () => {
      for (const one of document.querySelectorAll('input[type=checkbox][form="' + box.dataset.all + '"]')) one.checked = box.checked;
      keepTicks();
    });
  }

  // Finding within one body: what is found is marked, the first place is shown.
  if (window.Highlight && CSS.highlights) {
    for (const label of document.querySelectorAll("label.within")) label.hidden = false;
    document.addEventListener("input", (e) => {
      const at = e.target.dataset?.within;
      if (!at) return;
      const words = e.target.value.toLowerCase();
      const ranges = [];
      const walker = document.createTreeWalker(document.getElementById(at), NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); words && node; node = walker.nextNode()) {
        const text = node.data.toLowerCase();
        for (let i = text.indexOf(words); i >= 0; i = text.indexOf(words, i + words.length)) {
          const range = new Range();
          range.setStart(node, i);
          range.setEnd(node, i + words.length);
          ranges.push(range);
        }
      }
      CSS.highlights.set("found", new Highlight(...ranges));
      ranges[0]?.startContainer.parentElement.scrollIntoView({ block: "nearest" });
    });
  }

  // "/" and Ctrl-K go to the one search field.
  document.addEventListener("keydown", (e) => {
    const field = document.getElementById("find");
    const typing = /INPUT|SELECT|TEXTAREA/.test(document.activeElement?.tagName ?? "");
    const asked = (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) || (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey));
    if (!field || !asked) return;
    e.preventDefault();
    field.focus();
    field.select();
  });
})();
