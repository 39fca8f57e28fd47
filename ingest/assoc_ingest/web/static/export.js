(() => {
  const all = () => document.querySelectorAll("main details");
  const fold = document.getElementById("fold");
  fold.hidden = false;
  fold.onclick = () => {
    const open = fold.textContent === "Expand all";
    all().forEach((one) => { one.open = open; });
    fold.textContent = open ? "Collapse all" : "Expand all";
  };
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (let one = target; one; one = one.parentElement) {
      if (one.tagName === "DETAILS") one.open = true;
    }
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  reveal();
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...all()].filter((one) => !one.open && !one.matches(".ai-noise"));
    closed.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => { closed.forEach((one) => { one.open = false; }); });
})();
