"use strict";
// A fact at a time, labelled by keys. All text is set as text, never as markup. Labels are kept in the browser by the
// sample's own key, and saved as the lines of the labels file.
(() => {
  const byId = (id) => document.getElementById(id);
  const { key, file, facts } = JSON.parse(byId("data").textContent);
  const WORDS = { y: "right", n: "wrong", u: "unknown" };
  let labels = {}, at = 0, kept = true;

  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "{}");
    facts.forEach(({ line }) => {
      if (Object.hasOwn(WORDS, stored?.[line.fact])) labels[line.fact] = stored[line.fact];
    });
    localStorage.setItem(key, JSON.stringify(labels));
  } catch {
    kept = false;
  }
  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify(labels));
    } catch {
      kept = false;
    }
  };

  const element = (name, text = "", className = "") => {
    const made = document.createElement(name);
    if (text !== "") made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const link = (text, address, id = "") => {
    if (!address) return document.createTextNode(text);
    const made = element("a", text);
    made.href = address;
    made.target = "_blank";
    made.rel = "noopener noreferrer";
    if (id) made.id = id;
    return made;
  };
  const entry = (name, ...content) => {
    const made = element("div"), value = element("dd");
    value.append(...content);
    made.append(element("dt", name), value);
    return made;
  };
  const written = ({ replies, unseen }) => {
    if (!replies.length) return [];
    const box = element("details");
    box.append(element("summary", `What the model wrote (${(replies.length + unseen).toLocaleString("en")})`));
    replies.forEach(([model, text]) => {
      const own = element("pre", text);
      own.tabIndex = 0; // a long text scrolls, also by keys
      box.append(element("p", model, "muted"), own);
    });
    if (unseen) box.append(element("p", `and ${unseen.toLocaleString("en")} more, in the base's folder replies`));
    return [box];
  };
  const label = (place) => labels[facts[place].line.fact];
  const unlabelled = (from) => {
    const order = facts.map((_, place) => (from + place) % facts.length);
    return order.find((place) => !label(place));
  };

  const draw = () => {
    const fact = facts[at], own = label(at), count = { y: 0, n: 0, u: 0 };
    Object.values(labels).forEach((one) => { count[one] += 1; });
    const done = count.y + count.n + count.u;
    byId("progress").value = done;
    byId("status").textContent = `${done} of ${facts.length} labelled: ${count.y} right, ${count.n} wrong, `
      + `${count.u} unknown${kept ? "" : ". This browser keeps no labels: save them before you leave"}`;
    byId("place").textContent = `Fact ${at + 1} of ${facts.length}${own ? `: ${WORDS[own]}` : ""}`;
    const claim = element("p", "", "claim");
    claim.append(link(...fact.subject, "subject"), element("span", ` ${fact.relation[0]} `, "muted"), link(...fact.object));
    const about = element("dl", "", "facts");
    about.append(
      entry("look up", link("search the web", fact.search, "search"), ", ", fact.relation[1] ? link("the property", fact.relation[1]) : ""),
      entry("confidence", fact.confidence), entry("sources", fact.sources || "–"), entry("model", fact.model || "–"));
    const others = element("ul");
    fact.others.forEach((text) => others.append(element("li", text)));
    if (fact.further) others.append(element("li", `and ${fact.further.toLocaleString("en")} more`));
    byId("fact").replaceChildren(claim, ...(fact.definition ? [element("p", fact.definition, "muted")] : []), about,
      ...written(fact), element("h3", fact.others.length ? "Other facts of the subject" : "No other fact of the subject"), others);
    if (!fact.others.length) others.remove();
    document.querySelectorAll("[data-label]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.label === own));
    });
    byId("before").disabled = at === 0;
    byId("after").disabled = at + 1 === facts.length;
    byId("next").disabled = unlabelled(at) === undefined;
  };
  const go = (place) => {
    if (place === undefined || place < 0 || place >= facts.length) return;
    at = place;
    draw();
  };
  const set = (value) => {
    if (value) labels[facts[at].line.fact] = value;
    else delete labels[facts[at].line.fact];
    keep();
    draw();
    if (value) go(at + 1);
  };
  const save = () => {
    const lines = facts.map(({ line }) => `${JSON.stringify({ ...line, label: labels[line.fact] ?? null })}\n`);
    const made = element("a");
    made.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
    made.download = file;
    made.click();
    setTimeout(() => URL.revokeObjectURL(made.href), 60000);
  };
  const next = () => go(unlabelled(at));
  const keys = {
    y: () => set("y"), n: () => set("n"), u: () => set("u"), x: () => set(null), s: save, " ": next,
    ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1),
    w: () => byId("subject")?.click(), g: () => byId("search").click(),
  };
  document.addEventListener("keydown", (event) => {
    const isPressed = event.key === " " && event.target.closest("a, button");
    if (event.ctrlKey || event.metaKey || event.altKey || isPressed || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.querySelectorAll("[data-label]").forEach((button) => {
    button.addEventListener("click", () => set(button.dataset.label));
  });
  byId("clear").addEventListener("click", () => set(null));
  byId("before").addEventListener("click", () => go(at - 1));
  byId("after").addEventListener("click", () => go(at + 1));
  byId("next").addEventListener("click", next);
  byId("save").addEventListener("click", save);
  go(unlabelled(0) ?? 0);
  document.body.dataset.ready = "true";
})();
