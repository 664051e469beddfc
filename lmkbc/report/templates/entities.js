"use strict";
// Search, and a view of one entity: `#Q64` in the page's address shows it. Pieces of the base are scripts beside the
// page, loaded when they are wanted, and named by a number alone. All text is set as text, never as markup.
(() => {
  const SIZE = 50, HITS = 30, WIDTH = 3, KEPT = 30, START = 40, FEW = 6;
  const [OUT, IN, NOTHING, MISSING, GIVEN] = [0, 1, 2, 3, 4];
  const byId = (id) => document.getElementById(id);
  const { pieces, starts, relations, columns: given, links } = JSON.parse(byId("data").textContent);
  const count = (number) => number.toLocaleString("en");

  // Pieces.
  const arrived = new Map(), loaded = new Map();
  window.piece = (name, packed) => arrived.set(name, packed);
  const fetched = (name) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${name}.js`;
    script.addEventListener("load", resolve);
    script.addEventListener("error", reject);
    document.head.append(script);
  }).then(async () => {
    const packed = atob(arrived.get(name)), bytes = new Uint8Array(packed.length);
    for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
    arrived.delete(name);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }).catch(() => {
    loaded.delete(name);
    throw new Error(`The file ${name}.js beside this page is missing or damaged. Copy the folder as a whole, or write it again.`);
  });
  const load = (name) => {
    if (!loaded.has(name)) {
      if (loaded.size >= KEPT) loaded.delete(loaded.keys().next().value);
      loaded.set(name, fetched(name));
    }
    return loaded.get(name);
  };
  const utf8 = (text) => new TextEncoder().encode(text);
  const crc32 = (text) => {
    let crc = ~0;
    utf8(text).forEach((byte) => {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
    });
    return ~crc >>> 0;
  };

  // Elements.
  const element = (name, text = "", className = "") => {
    const made = document.createElement(name);
    if (text !== "") made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const link = (href, text, className = "") => {
    const made = element("a", text, className);
    made.href = href;
    if (!href.startsWith("#")) made.rel = "noreferrer";
    return made;
  };
  const noQid = links ? "no QID" : "";
  const isQid = (key) => /^Q[1-9][0-9]*$/.test(key);
  const entity = (key, text) => link(`#${encodeURIComponent(key)}`, text || "(no name)");
  const property = (id, key) => (!/^P[1-9][0-9]*$/.test(id) ? "" : isQid(key) ? link(`https://www.wikidata.org/wiki/${key}#${id}`, id, "p") : element("span", id, "muted"));
  const framed = (table, id) => {
    const wide = element("div", "", "wide");
    wide.tabIndex = 0;
    wide.setAttribute("role", "region");
    wide.setAttribute("aria-labelledby", id);
    wide.append(table);
    return wide;
  };
  const spaced = (...parts) => parts.filter(Boolean).flatMap((part, at) => (at ? [" ", part] : [part]));

  // A table of rows, a page of it at a time. columns: name, and for a sortable one the value of a row. filters: name,
  // value of a row, and whether rows with at least a value are wanted. csv: columns of a file with the rows shown.
  const STEPS = [0.9, 0.8, 0.7, 0.6, 0.5];
  // An apostrophe stands before a text that a spreadsheet would run as a formula, as in files/tables.py.
  const risky = (value) => /^'*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(value) && Number.isNaN(Number(value));
  const inert = (value) => (risky(value) ? `'${value}` : value);
  const quoted = (value) => (/[",\n\r]/.test(value) ? `"${String(inert(value)).replaceAll('"', '""')}"` : inert(value));
  const saved = (rows, columns) => {
    const lines = [columns.map(([name]) => name), ...rows.map((row) => columns.map(([, of]) => quoted(of(row) ?? "")))];
    const made = link(URL.createObjectURL(new Blob([lines.map((line) => `${line.join(",")}\r\n`).join("")], { type: "text/csv" })), "");
    made.download = "facts.csv";
    made.click();
    URL.revokeObjectURL(made.href);
  };
  const listing = (id, title, columns, rows, filters, line, csv) => {
    const section = element("section"), heading = element("h3", `${title}: ${count(rows.length)}`);
    heading.id = id;
    const body = element("tbody"), table = element("table"), row = element("tr"), head = element("thead");
    const before = element("button", "Previous"), after = element("button", "Next"), where = element("span");
    const chosen = new Map(), hasMany = rows.length > FEW;
    let shown = rows, page = 0, order = null, down = false;
    const draw = () => {
      const pages = Math.max(1, Math.ceil(shown.length / SIZE));
      body.replaceChildren(...shown.slice(page * SIZE, (page + 1) * SIZE).map((at) => {
        const made = element("tr");
        line(at).forEach((parts, column) => {
          const cell = element("td", "", columns[column][0].startsWith("conf") ? "n" : "");
          cell.append(...parts);
          made.append(cell);
        });
        return made;
      }));
      heading.textContent = `${title}: ${shown === rows ? "" : `${count(shown.length)} of `}${count(rows.length)}`;
      where.textContent = `Page ${count(page + 1)} of ${count(pages)}`;
      before.disabled = page === 0;
      after.disabled = page + 1 >= pages;
    };
    const select = () => {
      const tests = [...chosen.values()];
      shown = tests.length ? rows.filter((at) => tests.every((test) => test(at))) : rows;
      if (order) {
        const sign = down ? -1 : 1, compare = new Intl.Collator("en").compare;
        shown = [...shown].sort((one, other) => {
          const [a, b] = [order(one), order(other)];
          return sign * (typeof a === "number" ? a - b : compare(a, b));
        });
      }
      page = 0;
      draw();
    };
    columns.forEach(([name, of]) => {
      const cell = element("th", "", name.startsWith("conf") ? "n" : "");
      cell.scope = "col";
      if (of && hasMany) {
        const button = element("button", name);
        button.type = "button";
        button.addEventListener("click", () => {
          down = order === of ? !down : typeof of(rows[0]) === "number";
          order = of;
          [...row.cells].forEach((other) => other.removeAttribute("aria-sort"));
          cell.setAttribute("aria-sort", down ? "descending" : "ascending");
          select();
        });
        cell.append(button);
      } else cell.textContent = name;
      row.append(cell);
    });
    head.append(row);
    table.append(head, body);
    section.append(heading, framed(table, id));
    const turn = (by) => () => {
      page += by;
      draw();
      section.scrollIntoView({ block: "start" });
    };
    before.addEventListener("click", turn(-1));
    after.addEventListener("click", turn(1));
    const bar = element("div", "", "filters");
    (hasMany ? filters : []).forEach(([name, of, isLeast]) => {
      const own = new Map(), label = element("label", `${name} `), box = element("select");
      if (isLeast) STEPS.forEach((step) => own.set(step, rows.reduce((sum, at) => sum + (of(at) >= step), 0)));
      else rows.forEach((at) => own.set(of(at), (own.get(of(at)) ?? 0) + 1));
      if (own.size < 2) return;
      const values = isLeast ? [...own.keys()] : [...own.keys()].sort(new Intl.Collator("en").compare);
      box.append(new Option("all", ""), ...values.map((value, at) => new Option(`${isLeast ? "at least " : ""}${value} (${count(own.get(value))})`, at)));
      box.addEventListener("change", () => {
        const value = values[box.value];
        if (box.value === "") chosen.delete(name);
        else chosen.set(name, isLeast ? (at) => of(at) >= value : (at) => of(at) === value);
        select();
      });
      label.append(box);
      bar.append(label);
    });
    if (csv) {
      const button = element("button", "Download CSV");
      button.type = "button";
      button.addEventListener("click", () => saved(shown, csv));
      bar.append(button);
    }
    if (bar.children.length) heading.after(bar);
    if (rows.length > SIZE) {
      const pager = element("nav", "", "pager");
      pager.setAttribute("aria-label", `Pages of ${title}`);
      pager.append(before, where, after);
      section.append(pager);
    }
    draw();
    return section;
  };

  const range = (start, end) => Array.from({ length: end - start }, (_, at) => start + at);
  const described = (nouns) => {
    const often = new Map();
    nouns.filter(Boolean).forEach((noun) => often.set(noun, (often.get(noun) ?? 0) + 1));
    const ordered = [...often].sort(([, one], [, other]) => other - one).slice(0, FEW);
    return ordered.map(([noun, times]) => `${noun} (${count(times)})`).join(", ");
  };
  const view = (key, piece, place) => {
    const { kind, relation, other, text, confidence, source, sources } = piece.rows;
    const start = piece.len.slice(0, place).reduce((sum, size) => sum + size, 0);
    const all = range(start, start + piece.len[place]), of = (wanted) => all.filter((at) => kind[at] === wanted);
    const [label, ...others] = piece.names[place];
    const ofRelation = ["relation", (at) => relations[relation[at]][0]], byRelation = [["Relation", ofRelation[1]]];
    const ofText = (at) => text[at], ofConfidence = ["confidence", (at) => confidence[at]], ofSource = ["source", (at) => sources[source[at]]];
    const about = (at) => [relations[relation[at]][0]];
    const sure = (at) => {
      const made = element("span", (confidence[at] / 1000).toFixed(3), "sure");
      made.style.setProperty("--sure", confidence[at] / 1000);
      return [made];
    };
    const mention = (at) => (other[at] === null ? [text[at], relations[relation[at]][2] && ` ${relations[relation[at]][2]}`].filter(Boolean)
      : spaced(entity(other[at], text[at]), element("span", isQid(other[at]) ? other[at] : noQid, "muted")));
    const [out, named, nothing, missing, stated] = [OUT, IN, NOTHING, MISSING, GIVEN].map(of);
    const heading = element("h2", label || "(no name)");
    heading.tabIndex = -1;
    const head = element("p");
    const classes = described([...[...out, ...nothing, ...missing].map((at) => relations[relation[at]][3]), ...named.map((at) => relations[relation[at]][4])]);
    head.append(...spaced(isQid(key) ? link(`https://www.wikidata.org/wiki/${key}`, key) : noQid, classes && element("span", `taken for: ${classes}`, "muted")));
    const made = [link("#overview", "← Overview"), heading, head];
    if (others.length) made.push(element("p", `Also called: ${others.join(" · ")}`, "muted"));
    if (!out.length && !nothing.length && !missing.length) made.push(element("p", `It was asked nothing${named.length ? ": facts only name it" : ""}.`, "muted"));
    if (stated.length) {
      made.push(listing("given", "In the file of subjects", [["column", (at) => given[relation[at]]], ["value", ofText]], stated, [], (at) => [[given[relation[at]]], [text[at]]]));
    }
    if (out.length) {
      made.push(listing("out", "Facts", [ofRelation, ["object", ofText], ofConfidence, ofSource], out, byRelation, (at) => [
        spaced(...about(at), property(relations[relation[at]][1], key)), mention(at), sure(at), [element("span", sources[source[at]], "muted")]]));
    }
    if (named.length) {
      made.push(listing("in", "Facts that name it", [["subject", ofText], ofRelation, ofConfidence, ofSource], named, byRelation, (at) => [
        mention(at), spaced(...about(at), property(relations[relation[at]][1], other[at])), sure(at), [element("span", sources[source[at]], "muted")]]));
    }
    [[nothing, "Answered with nothing", "nothing"], [missing, "Without an answer", "missing"]].forEach(([rows, title, id]) => {
      if (rows.length) {
        made.push(listing(id, title, [ofRelation, ["reason", ofText]], rows, byRelation, (at) => [
          spaced(...about(at), property(relations[relation[at]][1], key)), [text[at]]]));
      }
    });
    return [label, made];
  };

  // All facts, and those of a relation or a class. Every piece is read, once.
  let every = null;
  const gathered = async () => {
    const all = [];
    for (let first = 0; first < pieces; first += FEW) {
      byId("status").textContent = `Facts: ${count(first)} of ${count(pieces)} files are read`;
      (await Promise.all(range(first, Math.min(pieces, first + FEW)).map((at) => load(`facts/${at}`)))).forEach(({ key, names, len, rows }) => {
        let at = 0;
        key.forEach((own, place) => {
          for (const end = at + len[place]; at < end; at += 1) {
            if (rows.kind[at] !== OUT) continue;
            all.push({
              key: own, name: names[place][0], relation: rows.relation[at], other: rows.other[at], text: rows.text[at],
              confidence: rows.confidence[at] / 1000, known: rows.known[at] ? "known" : "new", source: rows.sources[rows.source[at]],
            });
          }
        });
      });
    }
    byId("status").textContent = "";
    return all;
  };
  const NAMED = ([name]) => name, NOUN = ([, , , noun]) => noun || "unknown class";
  const part = (id, title, test) => {
    const copy = byId(id).cloneNode(true), heading = element("h3", title);
    copy.removeAttribute("id");
    heading.id = `${id}-part`;
    [...copy.tBodies[0].rows].forEach((row) => test(row.dataset) || row.remove());
    const section = element("section");
    section.append(heading, framed(copy, heading.id));
    return section;
  };
  const lists = async (what, value) => {
    every ??= await gathered();
    const of = { relation: NAMED, class: NOUN }[what], wanted = value || "unknown class";
    const rows = every.filter((one) => !of || of(relations[one.relation]) === wanted).sort((one, other) => other.confidence - one.confidence);
    const heading = element("h2", of ? wanted : "All facts");
    heading.tabIndex = -1;
    const made = [link("#overview", "← Overview"), heading];
    const about = what === "relation" && relations.find((one) => one[0] === value);
    if (about) {
      const [, id, , noun, object, definition] = about;
      const head = element("p"), subjects = noun && link(`#class=${encodeURIComponent(noun)}`, noun);
      head.append(...spaced(/^P[1-9][0-9]*$/.test(id) ? link(`https://www.wikidata.org/wiki/Property:${id}`, id) : "", "of a ", subjects || "subject", object && `to a ${object}`));
      made.push(head);
      if (definition) made.push(element("p", definition));
    }
    if (what === "class") made.push(part("of-classes", "As subjects", (data) => data.class === value));
    if (of) made.push(part("of-relations", "What was asked", (data) => data[what] === value));
    const ofRelation = ["relation", (one) => NAMED(relations[one.relation])], id = (key) => (isQid(key ?? "") ? key : "");
    const columns = [["conf.", (one) => one.confidence], ["subject", (one) => one.name], ofRelation, ["object", (one) => one.text], ["known", (one) => one.known], ["source", (one) => one.source]];
    const filters = [["Relation", ofRelation[1]], ["Class", (one) => NOUN(relations[one.relation])], ["Confidence", columns[0][1], true], ["Known or new", columns[4][1]]];
    const csv = [...columns.slice(1, 4), ["subject_id", (one) => id(one.key)], ["property", (one) => relations[one.relation][1]],
      ["object_id", (one) => id(one.other)], ["confidence", columns[0][1]], ...columns.slice(4)];
    made.push(element("p", "Known: labelled rows state the fact too, so it is no knowledge of a model. New: no labelled row states it.", "muted"));
    const isShown = (_, at) => what !== "relation" || at !== 2;
    made.push(listing("all", "Facts", columns.filter(isShown), rows, filters, (one) => {
      const unit = relations[one.relation][2];
      return [[one.confidence.toFixed(3)], [entity(one.key, one.name)], spaced(link(`#relation=${encodeURIComponent(ofRelation[1](one))}`, ofRelation[1](one)), property(relations[one.relation][1], one.key)),
        one.other === null ? spaced(one.text, unit) : [entity(one.other, one.text)], [one.known], [element("span", one.source, "muted")]].filter(isShown);
    }, csv));
    return [heading.textContent, made];
  };

  // What the page's address says.
  const title = document.title;
  let left = 0, latest = 0;
  const isKey = (key) => isQid(key) || key.startsWith(":");
  const fragment = () => {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  };
  const alone = (name, text) => {
    const heading = element("h2", name);
    heading.tabIndex = -1;
    return [name, [link("#overview", "← Overview"), heading, element("p", text)]];
  };
  const listed = (key) => /^(?:facts|(relation|class)=(.*))$/s.exec(key);
  const entityOf = async (key) => {
    const piece = await load(`facts/${crc32(key) % pieces}`), place = piece.key.indexOf(key);
    return place < 0 ? alone(isQid(key) ? key : key.slice(1), "The base holds nothing of it.") : view(key, piece, place);
  };
  const found = async (key) => {
    try {
      return await (isKey(key) ? entityOf(key) : lists(...listed(key).slice(1)));
    } catch (error) {
      return alone("Nothing can be shown", error.message);
    }
  };
  const show = async () => {
    const key = fragment(), turn = latest += 1;
    if (isKey(key) || listed(key)) {
      const [label, parts] = await found(key);
      if (turn !== latest) return;
      if (!byId("overview").hidden) left = scrollY;
      clear();
      byId("entity").replaceChildren(...parts);
      byId("overview").hidden = !(byId("entity").hidden = false);
      document.title = `${label} – ${title}`;
      scrollTo(0, 0);
      byId("entity").querySelector("h2").focus({ preventScroll: true });
    } else {
      const back = byId("overview").hidden;
      byId("overview").hidden = !(byId("entity").hidden = true);
      byId("entity").replaceChildren();
      document.title = title;
      if (back && ["", "overview"].includes(key)) scrollTo(0, left);
      else if (key) byId(key)?.scrollIntoView();
    }
    document.body.dataset.shown = key;
  };

  // Search, by the beginning of a name or of its last word. The page knows where each piece of names begins.
  const fold = (text) => text.replace(/['’‘ʻʼʹ`´]/g, "").normalize("NFKD").toLowerCase().replace(/ß/g, "ss")
    .replace(/\p{M}/gu, "").replace(/[\p{P}$+<=>|~^]/gu, " ").trim().replace(/\s+/g, " ");
  const turned = (folded) => folded.replace(/^(.*) (\S+)$/, "$2 $1");
  const isBefore = (one, other) => {
    const [a, b] = [utf8(one), utf8(other)], at = a.findIndex((byte, place) => byte !== b[place]);
    return at < 0 ? a.length < b.length : at < b.length && a[at] < b[at];
  };
  const hits = async (words) => {
    const cut = [...words].slice(0, START).join("");
    const first = Math.max(0, starts.findLastIndex((start) => isBefore(start, cut)));
    let last = first;
    while (last + 1 < starts.length && starts[last + 1].startsWith(cut)) last += 1;
    const numbers = range(first, Math.min(last + 1, first + WIDTH)), kept = new Map();
    const parts = await Promise.all([0, ...numbers.map((number) => number + 1)].map((number) => load(`names/${number}`)));
    parts.forEach((part, number) => {
      part.folds ??= part.name.map(fold);
      part.folds.forEach((folded, at) => {
        if (folded.startsWith(words) || turned(folded).startsWith(words) || (!number && folded.includes(` ${words}`))) {
          const before = kept.get(part.key[at]), hit = { name: part.name[at], key: part.key[at], facts: part.facts[at], isWhole: folded === words };
          if (!before || (hit.isWhole && !before.isWhole)) kept.set(hit.key, hit);
        }
      });
    });
    const order = (one, other) => other.isWhole - one.isWhole || other.facts - one.facts || (one.name < other.name ? -1 : 1);
    return [[...kept.values()].sort(order), last + 1 > first + WIDTH];
  };
  const clear = () => {
    byId("search").value = "";
    byId("results").replaceChildren();
    byId("status").textContent = "";
  };
  const search = async () => {
    const typed = byId("search").value.trim(), words = fold(typed), turn = latest += 1;
    if (!words) {
      clear();
      return;
    }
    try {
      const [list, isMore] = /^q[1-9][0-9]*$/i.test(typed) ? [[{ name: typed.toUpperCase(), key: typed.toUpperCase() }], false] : await hits(words);
      if (turn !== latest) return;
      byId("results").replaceChildren(...list.slice(0, HITS).map(({ name, key, facts }) => {
        const item = element("li");
        item.append(...spaced(entity(key, name), facts !== undefined && element("span", [isQid(key) ? key : noQid, `${count(facts)} ${facts === 1 ? "fact" : "facts"}`].filter(Boolean).join(", "), "muted")));
        return item;
      }));
      const more = isMore || list.length > HITS ? `; the first ${Math.min(HITS, list.length)} are shown: type more of the name` : "";
      byId("status").textContent = list.length ? `${count(list.length)}${isMore ? " or more" : ""} ${list.length === 1 ? "entity" : "entities"}${more}` : "No entity has a name that begins like this.";
    } catch (error) {
      byId("status").textContent = error.message;
    }
    document.body.dataset.found = typed;
  };
  let waiting;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 80);
  });
  byId("find").addEventListener("submit", async (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    await search();
    byId("results").querySelector("a")?.click();
  });
  addEventListener("hashchange", show);
  history.scrollRestoration = "manual";
  show();
  document.body.dataset.ready = "true";
})();
