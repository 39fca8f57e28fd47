/* The page of a conversation works without this: it adds keys, and opens what a link leads into. */
(() => {
  const wide = matchMedia("(min-width: 900px)");
  const map = document.getElementById("map");
  const unfold = () => {
    if (!map || !wide.matches) return;
    map.open = true;
    const here = map.querySelector(".ai-here");
    if (here) here.parentElement.scrollTop = here.offsetTop - here.parentElement.offsetTop;
  };
  unfold();
  wide.addEventListener("change", unfold);

  const copy = document.getElementById("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.onclick = async () => {
      await navigator.clipboard.writeText(document.getElementById("resume").textContent);
      copy.textContent = "Copied";
    };
  }

  const reveal = (target, block) => {
    for (let one = target; one; one = one.parentElement) {
      if (one.tagName === "DETAILS") one.open = true;
    }
    target?.scrollIntoView({ block });
  };
  const named = () => document.getElementById(location.hash.slice(1));
  addEventListener("hashchange", () => reveal(named(), "start"));
  const found = document.querySelector(".ai-target mark");
  const [visit] = performance.getEntriesByType("navigation");
  if (visit?.type === "navigate") { // and not back to where the reader was
    if (found) reveal(found, "center");
    else reveal(named() || document.querySelector(".ai-target"), "start");
  }

  // j and k: the next prompt, and the one before; n and N: the next match, and the one before.
  const step = (forward) => {
    const prompts = [...document.querySelectorAll(".ai-typed")];
    const near = 8; // pixels by which a browser misses the place that it scrolled to
    const top = (one) =>
      one.getBoundingClientRect().top - parseFloat(getComputedStyle(one).scrollMarginTop);
    const current = prompts.filter((one) => top(one) < near).at(-1);
    if (!current) {
      if (forward && prompts[0]) prompts[0].scrollIntoView();
      else document.querySelector(forward ? "a[rel=next]" : "a[rel=prev]")?.click();
      return;
    }
    if (!forward && top(current) < -near) current.scrollIntoView();
    else current.querySelector(forward ? ".ai-next" : ".ai-previous")?.click();
  };
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j" || event.key === "k") step(event.key === "j");
    if (event.key === "n") document.getElementById("find-next")?.click();
    if (event.key === "N") document.getElementById("find-before")?.click();
  });
})();
