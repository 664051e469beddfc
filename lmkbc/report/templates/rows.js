"use strict";
// The table of all rows: unpacked once, part by part, filtered and sorted in memory, a page of it in the document at a time. All text
// is set as text, never as markup.
(async () => {
  const SIZE = 50, FEW = 20;
  const byId = (id) => document.getElementById(id);
  const unpacked = (script) => {
    const packed = Uint8Array.from(atob(script.textContent), (char) => char.charCodeAt(0));
    script.remove();
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };
  const { relations, errors, marks, links } = JSON.parse(byId("data").textContent), rows = [];
  for (const script of document.querySelectorAll("script.part")) {
    const { rows: raw, ...part } = await unpacked(script);
    raw.forEach(([subject, id, relation, score, counts, flags, gold, kept, dropped, nothing, reason, lost, marked, prompts, replies]) => rows.push({
      subject, id, relation: relations[relation], p: score[0], r: score[1], f1: score[2], gold: counts[2], kept: counts[1],
      dropped: counts[3], flags, objects: { gold, kept, dropped }, nothing, reason, lost, marks: marked, prompts, replies, text: null, part,
      errors: flags.toString(2).replaceAll("0", "").length,
    }));
    byId("status").textContent = `${rows.length.toLocaleString("en")} rows are unpacked …`;
  }
  const haystack = (row) => row.text ??= [
    row.subject, row.id, ...row.objects.gold.flatMap((one) => one.slice(0, 2)),
    ...[...row.objects.kept, ...row.objects.dropped].flatMap((one) => one.slice(0, 2)), ...row.lost.map(([text]) => text), ...row.replies.flat(),
  ].join("\n").toLocaleLowerCase();

  const element = (name, text = "", className = "") => {
    const made = document.createElement(name);
    if (text !== "") made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const option = (value, text) => {
    const made = element("option", text);
    made.value = value;
    return made;
  };
  const scored = (value) => (value === null ? "–" : value.toFixed(3));
  relations.forEach((name) => byId("relation").append(option(name, name)));
  errors.forEach((name, place) => byId("error").append(option(String(place), name)));
  const others = element("optgroup");
  others.label = "objects dropped, calls failed";
  others.append(...Object.entries(marks).map(([mark, text]) => option(mark, text)));
  if (others.children.length) byId("error").append(others);

  let shown = rows, page = 0, key = null, down = false, opened = null;

  const select = () => {
    const relation = byId("relation").value, error = byId("error").value;
    const words = byId("search").value.toLocaleLowerCase().trim();
    const wanted = error === "" ? () => true : error === "any" ? ({ flags }) => flags > 0
      : error === "none" ? ({ flags }) => flags === 0 : Object.hasOwn(marks, error) ? (row) => row.marks.includes(error)
      : ({ flags }) => (flags >> Number(error)) & 1;
    shown = rows.filter((row) => (relation === "" || row.relation === relation) && wanted(row)
      && (words === "" || haystack(row).includes(words)));
    if (key !== null) {
      const sign = down ? -1 : 1;
      const order = typeof rows[0]?.[key] === "string" ? new Intl.Collator().compare : (one, other) => one - other;
      shown.sort((one, other) => sign * order(one[key], other[key]));
    }
  };
  // What is shown, as the fragment of the page's address: a link with it shows the same again.
  const save = () => {
    const state = {
      relation: byId("relation").value, error: byId("error").value, search: byId("search").value.trim(),
      sort: key ?? "", down: down ? "1" : "", page: page ? String(page + 1) : "",
      subject: opened?.subject ?? "", of: opened?.relation ?? "",
    };
    const said = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== "")).toString();
    history.replaceState(null, "", location.href.split("#")[0] + (said && `#${said}`));
  };
  const filter = () => {
    select();
    page = 0;
    opened = null;
    draw();
    save();
  };

  const linked = (id, text) => {
    if (!/^Q[0-9]+$/.test(id)) return document.createTextNode(text ?? id);
    const made = element("a", text ?? id);
    made.href = `https://www.wikidata.org/wiki/${id}`;
    made.rel = "noreferrer";
    return made;
  };
  const table = (title, heads, lines, all) => {
    const part = element("div", "", "inner");
    if (all > lines.length) title += `: the first ${lines.length} of ${all.toLocaleString("en")} objects`;
    if (!lines.length) {
      part.append(element("p", `${title}: none`, "muted"));
      return part;
    }
    const made = element("table");
    made.append(element("caption", title));
    const head = made.createTHead().insertRow();
    heads.forEach((name) => {
      const cell = element("th", name);
      cell.scope = "col";
      head.append(cell);
    });
    const body = made.createTBody();
    lines.forEach((line) => {
      const row = body.insertRow();
      line.forEach((cell) => {
        const made = row.insertCell();
        made.append(cell instanceof Node ? cell : document.createTextNode(cell));
      });
    });
    if (lines.length <= FEW) {
      part.append(made);
      return part;
    }
    const folded = element("details");
    folded.append(element("summary", all > lines.length ? title : `${title}: ${lines.length} objects`), made);
    part.append(folded);
    return part;
  };
  const verdict = (good, yes, no) => element("span", good ? `✓ ${yes}` : `✗ ${no}`, good ? "right" : "wrong");
  const known = ({ entities }, id, text) => {
    const [label, description] = Object.hasOwn(entities, id) ? entities[id] : ["", ""];
    return [label === text ? "" : label, description].filter(Boolean).join(": ");
  };
  const entity = (part, id, text, more = "") => {
    const about = [known(part, id, text), more].filter(Boolean).join(", ");
    const made = element("span");
    made.append(linked(id), about && ` ${about}`);
    return made;
  };
  const evidence = (part, id, text, place) => {
    const made = element("div");
    made.append(id ? entity(part, id, text) : "no link");
    if (place === null) return made;
    const [how, others] = part.traces[place];
    made.append(element("div", how, "why"));
    if (others.length) {
      const folded = element("details", "", "why");
      const list = element("ul");
      others.forEach(([other, weight]) => {
        const item = element("li");
        item.append(entity(part, other, "", weight));
        list.append(item);
      });
      folded.append(element("summary", `on offer too: ${others.length}`), list);
      made.append(folded);
    }
    return made;
  };
  const judged = (right, due) => {
    const made = element("div");
    made.append(verdict(right, "right", due ? "wrong link" : "wrong"));
    if (due) {
      const meant = element("div", "gold has ", "why");
      meant.append(linked(due));
      made.append(meant);
    }
    return made;
  };
  const named = (text, source) => {
    const made = element("div", text);
    if (source) made.append(element("div", source, "why"));
    return made;
  };
  const heads = ["object", ...(links ? ["link"] : []), "score", "is"];
  const objects = (part, list) => list.map(([text, id, score, source, right, verified, place, due]) => [
    named(text, source), ...(links ? [evidence(part, id, text, place)] : []),
    scored(score) + (verified === null ? "" : ` (verification score ${scored(verified)})`), judged(right, due),
  ]);

  const boxed = (text, label) => {
    const box = element("pre", text);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    return box;
  };
  const detail = (row) => {
    const cell = element("td");
    cell.colSpan = 6;
    const facts = element("p", `${row.relation}: precision ${scored(row.p)}, recall ${scored(row.r)}, F1 ${scored(row.f1)}`);
    if (row.id) facts.append("; subject ", linked(row.id));
    if (row.nothing !== null) facts.append(`; score of answering nothing ${scored(row.nothing)}`);
    if (row.reason) facts.append(`; ${row.reason}`);
    cell.append(facts);
    cell.append(
      table("Gold", ["object", ...(links ? ["id"] : []), "is"], row.objects.gold.map(([name, id, found]) => [
        name, ...(links ? [id ? entity(row.part, id, name) : "–"] : []), verdict(found, "found", "missed")]), row.gold),
      table("Kept", heads, objects(row.part, row.objects.kept), row.kept),
      table("Dropped", heads, objects(row.part, row.objects.dropped), row.dropped),
    );
    if (row.lost.length) cell.append(table("Left out before linking", ["object", "is"], row.lost.map(([text, rule]) => [text, marks[rule] ?? rule]), row.lost.length));
    if (row.prompts.length) {
      const asked = element("details");
      asked.append(element("summary", `Asked: ${row.prompts.length} ${row.prompts.length === 1 ? "prompt" : "prompts"}`));
      row.prompts.forEach(([of, text]) => asked.append(element("p", of, "muted"), boxed(text, `Prompt of ${of}`)));
      cell.append(asked);
    }
    row.replies.forEach(([name, text]) => cell.append(element("p", `Reply of ${name}`, "muted"), boxed(text, `Reply of ${name}`)));
    const made = element("tr", "", "detail");
    made.append(cell);
    return made;
  };

  const line = (row) => {
    const made = element("tr");
    const open = element("button", row.subject || "(no name)", "open");
    open.type = "button";
    open.setAttribute("aria-expanded", "false");
    open.addEventListener("click", () => {
      const isOpen = open.getAttribute("aria-expanded") === "true";
      if (isOpen) made.nextSibling.remove();
      else made.after(detail(row));
      open.setAttribute("aria-expanded", String(!isOpen));
      opened = isOpen ? null : row;
      save();
    });
    const head = element("th");
    head.scope = "row";
    head.append(open);
    const tags = errors.filter((_, place) => (row.flags >> place) & 1).join("; ");
    const relation = element("td", "", "side"), pick = element("a", row.relation);
    pick.href = `#${new URLSearchParams({ relation: row.relation })}`;
    relation.append(pick);
    made.append(head, relation, element("td", scored(row.f1), "n"),
      element("td", row.gold, "n side"), element("td", row.kept, "n side"), element("td", tags || "–", "tags"));
    return made;
  };

  const draw = () => {
    const pages = Math.max(1, Math.ceil(shown.length / SIZE));
    byId("body").replaceChildren(...shown.slice(page * SIZE, (page + 1) * SIZE).map(line));
    byId("status").textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
    byId("page").textContent = `Page ${page + 1} of ${pages}`;
    byId("before").disabled = page === 0;
    byId("after").disabled = page + 1 >= pages;
  };
  const turn = (by) => {
    page += by;
    opened = null;
    draw();
    save();
    byId("table").scrollIntoView({ block: "start" });
  };

  let waiting;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  byId("relation").addEventListener("change", filter);
  byId("error").addEventListener("change", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  byId("before").addEventListener("click", () => turn(-1));
  byId("after").addEventListener("click", () => turn(1));
  const mark = () => document.querySelectorAll("[data-sort]").forEach((button) => {
    if (button.dataset.sort !== key) button.parentElement.removeAttribute("aria-sort");
    else button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
  });
  document.querySelectorAll("[data-sort]").forEach((button) => button.addEventListener("click", () => {
    down = key === button.dataset.sort ? !down : false;
    key = button.dataset.sort;
    mark();
    filter();
  }));
  const choose = (id, value) => {
    const box = byId(id);
    box.value = value;
    if (box.selectedIndex < 0) box.value = "";
  };
  const restore = (fragment) => {
    const state = new URLSearchParams(fragment.slice(1));
    choose("relation", state.get("relation") ?? "");
    choose("error", state.get("error") ?? "");
    byId("search").value = state.get("search") ?? "";
    key = [...document.querySelectorAll("[data-sort]")].map((one) => one.dataset.sort)
      .find((name) => name === state.get("sort")) ?? null;
    down = key !== null && state.get("down") === "1";
    mark();
    select();
    const [subject, of] = [state.get("subject"), state.get("of")];
    const place = of === null ? -1 : shown.findIndex((row) => row.subject === (subject ?? "") && row.relation === of);
    const last = Math.max(0, Math.ceil(shown.length / SIZE) - 1);
    page = place < 0 ? Math.min(last, Math.max(0, (parseInt(state.get("page"), 10) || 1) - 1)) : Math.floor(place / SIZE);
    opened = null;
    draw();
    if (place >= 0) {
      const button = byId("body").children[place % SIZE].querySelector(".open");
      button.click();
      button.scrollIntoView({ block: "center" });
    } else {
      byId("rows").scrollIntoView({ block: "start" });
    }
  };
  // Links to rows are fragments too. A click on one shows them, and adds no step to the browser's history.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#"]');
    if (!link?.hash.includes("=") || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    restore(link.hash);
    save();
    byId("status").focus();
  });
  addEventListener("hashchange", () => {
    if (location.hash.includes("=")) restore(location.hash);
  });
  if (location.hash.includes("=")) restore(location.hash);
  else draw();
  document.body.dataset.ready = "true";
})();
