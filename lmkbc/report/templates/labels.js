"use strict";
// A fact at a time, labelled by keys. All text is set as text, never as markup. Labels, and what is given with them, are
// kept in the browser by the sample's own key, and saved as the lines of the labels file.
(() => {
  const byId = (id) => document.getElementById(id);
  const { key, file, facts } = JSON.parse(byId("data").textContent);
  const WORDS = { y: "right", n: "wrong", u: "unknown" };
  const FIELDS = ["value", "value_id", "source", "quote", "date"];
  let labels = {}, more = {}, reviewer = "", at = 0, kept = true;

  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? "{}");
    facts.forEach(({ line }) => {
      if (Object.hasOwn(WORDS, stored?.[line.fact])) labels[line.fact] = stored[line.fact];
    });
    const given = JSON.parse(localStorage.getItem(`${key}-more`) ?? "{}"), texts = (own) =>
      Object.fromEntries(FIELDS.filter((name) => typeof own?.[name] === "string").map((name) => [name, own[name]]));
    facts.forEach(({ line }) => {
      if (given?.facts?.[line.fact]) more[line.fact] = texts(given.facts[line.fact]);
    });
    if (typeof given?.reviewer === "string") reviewer = given.reviewer;
    localStorage.setItem(key, JSON.stringify(labels));
  } catch {
    kept = false;
  }
  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify(labels));
      localStorage.setItem(`${key}-more`, JSON.stringify({ facts: more, reviewer }));
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

  const complain = () => {
    const wrong = FIELDS.find((name) => !byId(name).checkValidity());
    byId("invalid").textContent = wrong ? `This is no ${document.querySelector(`label[for=${wrong}]`).textContent}` : "";
    return wrong;
  };

  const tell = () => {
    const own = label(at), count = { y: 0, n: 0, u: 0 };
    Object.values(labels).forEach((one) => { count[one] += 1; });
    const done = count.y + count.n + count.u;
    byId("progress").value = done;
    byId("status").textContent = `${done} of ${facts.length} labelled: ${count.y} right, ${count.n} wrong, `
      + `${count.u} unknown${kept ? "" : ". This browser keeps no labels: save them before you leave"}`;
    byId("place").textContent = `Fact ${at + 1} of ${facts.length}${own ? `: ${WORDS[own]}` : ""}`;
    document.querySelectorAll("[data-label]").forEach((button) => {
      button.setAttribute("aria-pressed", String(button.dataset.label === own));
    });
    byId("next").disabled = unlabelled(at) === undefined;
    complain();
  };

  const draw = () => {
    const fact = facts[at];
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
    FIELDS.forEach((name) => { byId(name).value = more[fact.line.fact]?.[name] ?? ""; });
    byId("reviewer").value = reviewer;
    byId("before").disabled = at === 0;
    byId("after").disabled = at + 1 === facts.length;
    tell();
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
    const filled = (own) => Object.fromEntries(Object.entries(own).filter(([, text]) => text.trim()));
    const lines = facts.map(({ line }) => {
      const label = labels[line.fact] ?? null, given = filled(more[line.fact] ?? {});
      return `${JSON.stringify({ ...line, ...given, ...(label ? filled({ reviewer }) : {}), label })}\n`;
    });
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
    if (event.target.closest("input, textarea")) return;
    const isPressed = event.key === " " && event.target.closest("a, button, summary");
    if (event.ctrlKey || event.metaKey || event.altKey || isPressed || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.querySelectorAll("[data-label]").forEach((button) => {
    button.addEventListener("click", () => set(button.dataset.label));
  });
  FIELDS.forEach((name) => {
    byId(name).addEventListener("input", () => {
      const fact = facts[at].line.fact, own = (more[fact] ??= {});
      own[name] = byId(name).value;
      if (own.value?.trim() && !labels[fact]) labels[fact] = "n"; // a right value stands in place of a wrong one
      keep();
      tell();
    });
  });
  byId("reviewer").addEventListener("input", () => {
    reviewer = byId("reviewer").value;
    keep();
  });
  byId("clear").addEventListener("click", () => set(null));
  byId("before").addEventListener("click", () => go(at - 1));
  byId("after").addEventListener("click", () => go(at + 1));
  byId("next").addEventListener("click", next);
  byId("save").addEventListener("click", save);
  go(unlabelled(0) ?? 0);
  document.body.dataset.ready = "true";
})();
