/* An open page of a conversation offers the lines that came since. Nothing on it moves. */
(() => {
  const note = document.getElementById("news");
  if (!note) return;
  const SOON = 4_000, LATE = 60_000; // milliseconds from question to question
  let delay = SOON, lines = 0, timer = 0;

  const offer = (news) => {
    lines = news.lines;
    const link = document.createElement("a");
    link.href = news.address;
    link.textContent = "show";
    const count = news.lines.toLocaleString("en") + (news.is_more ? " or more" : "");
    note.replaceChildren(`${count} new ${news.lines === 1 ? "line" : "lines"}, `, link);
    note.hidden = false;
  };

  const ask = async () => {
    timer = 0;
    if (document.visibilityState !== "visible") return; // until the reader is back
    try {
      const answer = await fetch(note.dataset.address, { cache: "no-store" });
      if (answer.status === 404) return; // the conversation is gone: nothing to wait for
      const news = answer.ok ? await answer.json() : { lines: 0 };
      if (news.lines > lines) {
        offer(news);
        delay = SOON;
      }
    } catch {
      delay = LATE; // the server may come back
    }
    delay = Math.min(delay * 1.3, LATE);
    wait();
  };
  const wait = () => { timer ||= setTimeout(ask, delay); };

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return;
    delay = SOON;
    wait();
  });
  wait();
})();
