/* The page of a conversation works without this. It adds keys, finds while you type, loads other
   parts of the conversation into the page, and adds the messages that come while it is open. */
(() => {
  const byId = (id) => document.getElementById(id);
  const PARTS = ["facts", "state", "found", "messages", "map-lines"];
  const ENTRIES =
    "#entries > :is(article, details, .ai-copies, .ai-compacted), .ai-group > details";
  const seek = byId("seek"), form = seek.form, note = byId("news"), help = byId("keys");
  let shown = location.pathname + location.search;

  // -- what a link leads into is opened ----------------------------------------------------------

  const reveal = (target, block, holds = true) => {
    for (let one = target; one; one = one.parentElement) {
      if (one.tagName === "DETAILS") one.open = true;
    }
    target?.scrollIntoView({ block });
    if (target && holds && document.activeElement !== seek) hold(target.closest(ENTRIES));
  };
  const hold = (entry) => { // keys go on from here
    if (!entry) return;
    const target = entry.querySelector(":scope > summary") || entry;
    if (target === entry) entry.tabIndex = -1;
    target.focus({ preventScroll: true });
  };
  const named = () => byId(location.hash.slice(1));
  const arrive = () => {
    const match = document.querySelector(".ai-target mark");
    const target = named() || document.querySelector(".ai-target");
    const holds = !document.querySelector(".ai-target[autofocus]"); // else the browser does
    if (match) reveal(match, "center", holds);
    else if (target) reveal(target, "start", holds);
    return match || target;
  };
  const [visit] = performance.getEntriesByType("navigation");
  if (visit?.type === "navigate") arrive(); // and not back to where the reader was
  addEventListener("hashchange", () => reveal(named(), "start"));

  const wide = matchMedia("(min-width: 900px)");
  const unfold = () => {
    const map = byId("map"), here = map.querySelector(".ai-here");
    if (!wide.matches) return;
    map.open = true;
    if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop;
  };
  unfold();
  wide.addEventListener("change", unfold);

  const copy = byId("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.onclick = async () => {
      await navigator.clipboard.writeText(byId("resume").textContent);
      copy.textContent = "Copied";
    };
  }

  // -- other parts of the conversation are loaded into this page ---------------------------------

  const read = async (address, signal) => {
    const answer = await fetch(address, { signal, cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return answer.ok && page.getElementById("messages") ? { page, address: answer.url } : null;
  };
  const replace = (page, id) => {
    const fresh = page.getElementById(id);
    fresh.querySelectorAll("[autofocus]").forEach((one) => one.removeAttribute("autofocus"));
    byId(id).replaceChildren(...fresh.childNodes);
  };
  let loading = new AbortController(), asked = seek.value;
  const load = async (address, remember = "pushState") => {
    loading.abort();
    loading = new AbortController();
    const { hash } = new URL(address, location);
    let loaded = null;
    try {
      loaded = await read(address, loading.signal);
    } catch (error) {
      if (error.name === "AbortError") return false; // another one is asked for meanwhile
    }
    if (!loaded || new URL(loaded.address).pathname !== location.pathname) {
      location.assign(loaded?.address || address); // a subagent, or what is wrong
      return false;
    }
    if (remember) history[remember](null, "", loaded.address + hash);
    shown = location.pathname + location.search;
    const { news } = loaded.page.getElementById("messages").dataset;
    byId("messages").dataset.news = news || "";
    PARTS.forEach((id) => replace(loaded.page, id));
    if (document.activeElement !== seek) {
      seek.value = asked = new URLSearchParams(location.search).get("find") || "";
    }
    note.hidden = true;
    begin(location.href);
    unfold();
    if (!arrive()) scrollTo(0, 0);
    return true;
  };
  document.querySelector(".ai-session").addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    const isOther = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || isOther || link.closest(".ai-beside")) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || to.pathname !== location.pathname) return;
    if (to.pathname + to.search === shown) return; // a place on this page
    event.preventDefault();
    load(link.href);
  });
  addEventListener("popstate", () => {
    if (location.pathname + location.search !== shown) load(location.href, "");
  });

  // -- find while you type -----------------------------------------------------------------------

  const PAUSE = 200; // milliseconds without a key
  let typed = 0;
  const ask = async () => {
    clearTimeout(typed);
    const values = new FormData(form), text = seek.value.trim();
    if (text === asked) return;
    // The last word is not yet whole.
    values.set("find", /[\p{L}\p{N}]{2}$/u.test(text) && !text.includes('"') ? `${text}*` : text);
    const query = [...values].filter(([name, value]) => value && (text || name !== "go"));
    const remember = asked ? "replaceState" : "pushState";
    asked = text;
    await load(`${form.action}?${new URLSearchParams(query)}`, remember);
  };
  seek.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(ask, PAUSE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (seek.value.trim() !== asked) ask();
    else byId("find-next")?.click();
  });
  seek.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      byId("find-before")?.click();
    }
    if (event.key === "Escape") {
      seek.value = "";
      ask();
      seek.blur();
    }
  });

  // -- keys --------------------------------------------------------------------------------------

  const NEAR = 8; // pixels by which a browser misses the place that it scrolled to
  const top = (one) =>
    one.getBoundingClientRect().top - parseFloat(getComputedStyle(one).scrollMarginTop);
  const go = (one) => {
    hold(one);
    one.scrollIntoView();
  };
  const step = (selector, forward) => {
    const all = [...document.querySelectorAll(selector)];
    const held = document.activeElement.closest(selector);
    const seen = held?.getBoundingClientRect();
    const isSeen = seen && seen.bottom > 0 && seen.top < innerHeight;
    const current = isSeen ? all.indexOf(held) : all.findLastIndex((one) => top(one) < NEAR);
    const isBegun = current >= 0 && !isSeen && top(all[current]) < -NEAR;
    const next = all[forward ? current + 1 : isBegun ? current : current - 1];
    if (next) go(next);
    return { current: all[current], isDone: Boolean(next) };
  };
  const way = (name) => document.querySelector(`#state [data-way=${name}]`);
  const message = async (forward) => {
    if (step(ENTRIES, forward).isDone) return;
    const link = way(forward ? "later" : "earlier");
    if (!link || !(await load(link.href))) return;
    const all = [...document.querySelectorAll(ENTRIES)];
    if (all.length) go(all.at(forward ? 0 : -1));
  };
  const prompt = async (forward) => {
    const { current, isDone } = step(".ai-typed", forward);
    if (isDone) return;
    const link = current?.querySelector(forward ? ".ai-next" : ".ai-previous"); // on another page
    const other = link || way(forward ? "later" : "earlier");
    if (!other || !(await load(other.href))) return;
    const target = document.querySelector("#entries > .ai-target");
    if (target) go(target);
  };
  const end = async (name, place) => {
    const link = way(name);
    if (!link || (await load(link.href))) scrollTo(0, place());
  };
  const KEYS = {
    j: () => message(true),
    k: () => message(false),
    n: () => prompt(true),
    p: () => prompt(false),
    g: () => end("beginning", () => 0),
    G: () => end("end", () => document.body.scrollHeight),
    "/": () => seek.select(),
    "?": () => help.showModal(),
  };
  const uses = byId("uses-keys"), NAME = "assoc-keys-off";
  uses.checked = localStorage.getItem(NAME) === null;
  uses.addEventListener("change", () => {
    if (uses.checked) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, "1");
  });
  byId("help").hidden = false;
  byId("help").onclick = () => help.showModal();
  byId("keys-close").onclick = () => help.close();
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable], dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!uses.checked || !(event.key in KEYS)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // -- messages that come while the page is open -------------------------------------------------
  // The last page is asked for again, and what is new is put behind the rest: nothing else moves.

  const SOON = 4_000, LATE = 60_000; // milliseconds from question to question
  const MOST = 3_000; // entries: a page that is open for days has an end, too
  let delay = SOON, timer = 0, tail = "", start = 0;

  const merge = (fresh) => {
    const box = byId("entries"), old = [...box.children].slice(start), added = [];
    [...fresh.children].forEach((entry, place) => {
      const now = old[place];
      if (!now) {
        box.append(entry);
        added.push(entry);
      } else if (now.textContent !== entry.textContent) { // a call has its result
        const folds = (one) => [one, ...one.querySelectorAll("details")];
        const opened = folds(now).map((one) => one.open);
        folds(entry).forEach((one, number) => { if (opened[number]) one.open = true; });
        const isHeld = now.contains(document.activeElement);
        now.replaceWith(entry);
        if (isHeld) (entry.querySelector("summary") || entry).focus({ preventScroll: true });
      }
    });
    return added;
  };
  const grow = async () => {
    const added = [];
    for (let address = tail; ; ) {
      const loaded = await read(address);
      if (!loaded || tail !== address) break; // the reader has gone to another part
      const { page } = loaded;
      added.push(...merge(page.getElementById("entries")));
      for (const id of ["facts", "map-lines"]) replace(page, id);
      const { news } = page.getElementById("messages").dataset;
      if (news) byId("messages").dataset.news = news;
      const later = page.querySelector("#state [data-way=later]");
      if (!later) break;
      address = tail = new URL(later.getAttribute("href"), location).href;
      start = byId("entries").children.length;
    }
    return added;
  };
  const announce = (added) => {
    const messages = added.filter((one) => !one.matches("p, .ai-rule:not(.ai-compacted)"));
    if (!messages.length) return;
    const link = document.createElement("a");
    messages[0].id ||= "new";
    link.href = `#${messages[0].id}`;
    link.textContent = "show";
    link.onclick = () => { note.hidden = true; };
    const count = messages.length.toLocaleString("en");
    note.replaceChildren(`${count} new ${messages.length === 1 ? "entry" : "entries"}, `, link);
    note.hidden = false;
  };
  const poll = async () => {
    timer = 0;
    const { news } = byId("messages").dataset;
    if (document.visibilityState !== "visible" || !news) return; // until the reader is back
    delay = Math.min(delay * 1.3, LATE);
    try {
      const answer = await fetch(news, { cache: "no-store" });
      if (answer.status === 404) return; // the conversation is gone: nothing to wait for
      if (answer.ok && (await answer.json()).lines) {
        announce(await grow());
        delay = SOON;
      }
    } catch {
      delay = LATE; // the server may come back
    }
    if (byId("entries").children.length < MOST) wait();
  };
  const wait = () => { timer ||= setTimeout(poll, delay); };
  const begin = (address) => {
    tail = address;
    start = 0;
    delay = SOON;
    if (byId("messages").dataset.news) wait();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return;
    delay = SOON;
    wait();
  });
  begin(location.href);
})();
