// The pages of the site: what is chosen stands in the address after "#", data are scripts, nothing is fetched or computed.
"use strict";

const site = (() => {
  const data = new Map();
  const loading = new Map();
  const controls = new Map();
  const pages = {};

  /** Keep what a data script brings. */
  function put(name, value) {
    data.set(name, value);
  }

  /** The same of a text of base64 that holds JSON, packed by gzip; the value is a promise. */
  function unpack(name, text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    put(name, new Response(unzipped).json());
  }

  /** Load a data script once; resolves to its value. One that failed may be tried again. */
  function load(name, source) {
    if (!loading.has(name)) {
      loading.set(name, new Promise((resolve, reject) => {
        const script = element("script", { src: source });
        script.onload = () => resolve(data.get(name));
        script.onerror = () => {
          loading.delete(name);
          reject(new Error(`${source} cannot be read; build the site again.`));
        };
        document.head.append(script);
      }));
    }
    return loading.get(name);
  }

  function element(tag, attributes = {}, ...children) {
    const spaces = { svg: 1, use: 1 };
    const made = spaces[tag] ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  /** What is chosen: the part of the address after "#". */
  const state = () => new URLSearchParams(location.hash.slice(1));

  /** Have the address say what is chosen, and draw it; what then no longer applies leaves the address. */
  function choose(key, ...values) {
    const chosen = state();
    chosen.delete(key);
    values.filter(Boolean).forEach((value) => chosen.append(key, value));
    history.pushState(null, "", `#${chosen}`);
    const mine = show();
    mine.then(() => mine === drawing && tidy());
  }

  /** The control of a key in the form, made anew where it was one of another kind. */
  function control(key, kind, make) {
    const known = controls.get(key);
    if (known?.tagName === kind) return known;
    const made = make();
    if (known) known.replaceWith(made);
    else document.getElementById("choose").append(made);
    controls.set(key, made);
    return made;
  }

  /** A list to choose from; returns what is chosen, by default the first of the options. */
  function offer(key, label, options) {
    const select = control(key, "LABEL", () => {
      const made = element("select", { name: key });
      made.addEventListener("change", () => choose(key, made.value));
      return element("label", {}, label, made);
    }).querySelector("select");
    const wanted = state().getAll(key).find((name) => options.some(([value]) => value === name)) ?? options[0]?.[0] ?? "";
    const same = select.options.length === options.length && options.every(([value, text], i) => select.options[i].value === value && select.options[i].text === text);
    if (!same) select.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    select.value = wanted;
    return wanted;
  }

  /** Boxes of which any may be ticked; returns what is: by default, and where nothing is, all. */
  function several(key, label, names) {
    const set = control(key, "FIELDSET", () => element("fieldset"));
    const inputs = () => [...set.querySelectorAll("input")];
    const pick = () => {
      const ticked = inputs().filter((each) => each.checked);
      choose(key, ...(ticked.length === names.length ? [] : ticked.map((each) => each.value)));
    };
    const box = (name) => {
      const made = element("input", { type: "checkbox", name: key, value: name });
      made.addEventListener("change", pick);
      return element("label", {}, made, name);
    };
    const same = inputs().length === names.length && inputs().every((each, i) => each.value === names[i]);
    if (!same) set.replaceChildren(element("legend", {}, label), ...names.map(box));
    const wanted = state().getAll(key).filter((name) => names.includes(name));
    for (const each of inputs()) each.checked = !wanted.length || wanted.includes(each.value);
    return inputs().filter((each) => each.checked).map((each) => each.value);
  }

  /** What an object itself has by a name, which may be any text: undefined where it has nothing. */
  const get = (object, name) => (Object.hasOwn(object ?? {}, name) ? object[name] : undefined);

  /** A number to three digits, up to a million in full, and 1 only where it is 1. */
  function digits(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const text = size >= 100 && size < 1e6 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
    return text === "1" && value < 1 ? "0.999" : text;
  }

  /** A number with its interval, if it has one. */
  function interval([value, low, high]) {
    const ends = low === null || low === undefined ? null : element("span", { class: "ci" }, ` (${digits(low)} to ${digits(high)})`);
    return element("span", {}, digits(value), ends);
  }

  /** A method's name after its sample, starred where it sees what others do not; it leads to what the method is. */
  function method(study, place, starred = false) {
    const sample = element("svg", { class: "look", viewBox: "0 0 26 10", "aria-hidden": "true" }, element("use", { href: `#look-${place}` }));
    return element("span", {}, sample, element("a", { href: `methods.html?${new URLSearchParams({ study: study.name })}#${study.kinds[place]}` }, study.methods[place]), starred ? " *" : null);
  }

  /** The samples that names refer to. */
  function looks(study) {
    document.getElementById("looks")?.remove();
    document.body.prepend(element("div", { id: "looks" }));
    document.getElementById("looks").innerHTML = study.looks;
  }

  /** A table; a cell is a text or an element, or a pair of it and what it is sorted by. The first rows may be fixed. */
  function table(columns, rows, classes = [], fixed = 0) {
    const head = columns.map((column) => element("th", { scope: "col", ...(column.number ? { class: "n" } : {}) }, column.text, column.note ? element("small", {}, element("br"), column.note) : null));
    const lines = rows.map((row, i) => element("tr", { class: classes[i] ?? "" }, ...row.map((cell, j) => {
      const [shown, key] = Array.isArray(cell) ? cell : [cell, null];
      const made = element("td", { "data-label": columns[j].label ?? columns[j].text, class: `${columns[j].number ? "n" : ""} ${columns[j].changed?.[i] ? "changed" : ""}`.trim() });
      if (shown !== "") made.append(element("span", {}, shown));
      if (key !== null) made.dataset.key = key;
      return made;
    })));
    const made = element("table", {}, element("thead", {}, element("tr", {}, ...head)), ...(fixed ? [element("tbody", {}, ...lines.slice(0, fixed))] : []), element("tbody", {}, ...lines.slice(fixed)));
    sortable(made);
    return element("div", { class: columns.length >= 12 ? "wide many" : "wide" }, made);
  }

  const NUMBER = /^(?:[=≈?▲▼≠→≥≤<>] )?([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?)(?=$|[\s(;×%])/;

  /** The number that a cell begins with, behind the mark of a verdict; NaN where it is a text. */
  const leading = (text) => Number(NUMBER.exec(text)?.[1].replaceAll(",", "") ?? NaN);

  /** Whether a cell has no number of its own, though perhaps a published one beside it. */
  const empty = (text) => text === "" || text.startsWith("–") || /^✗( \(|$)/.test(text);

  /** Give each heading a button that sorts the table: first upwards, then downwards. */
  function sortable(made) {
    const key = (row, place) => row.cells[place]?.dataset.key ?? row.cells[place]?.textContent.trim() ?? "";
    [...made.tHead.rows[0].cells].forEach((head, place) => {
      const button = element("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of made.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = [...made.tBodies].at(-1);
        const rows = [...body.rows].map((row) => [row, key(row, place)]);
        const numbers = rows.every(([, text]) => empty(text) || !Number.isNaN(leading(text)));
        rows.sort(([, a], [, b]) => {
          if (empty(a) || empty(b)) return empty(a) - empty(b); // last, both ways
          return (down ? -1 : 1) * (numbers ? leading(a) - leading(b) : a.localeCompare(b, undefined, { numeric: true }));
        });
        body.append(...rows.map(([row]) => row));
      });
    });
  }

  /** Choose a study, of those that a page can show, and load it. */
  async function study() {
    const all = data.get("studies");
    const name = offer("study", "study", all.map((each) => [each.name, `${each.name} (${each.text})`]));
    const place = all.findIndex((each) => each.name === name);
    return [await load(`board ${place}`, `data/${place}/board.js`), place];
  }

  pages.index = async () => {
    const [shown, place] = await study();
    const datasets = shown.choices[0];
    const models = [...new Set(shown.tasks.map((task) => task.model))];
    const listed = (names) => [...(names.length > 1 ? [["", `all ${names.length}`]] : []), ...names.map((name) => [name, name])];
    const one = (names) => [offer("dataset", "data set", listed(names))].flatMap((name) => name || names);
    const chosen = shown.choices.length > datasets.length + 1 ? several("dataset", "data sets", datasets) : one(datasets);
    const model = offer("model", "model", listed(models));
    const by = offer("by", "requirement", Object.keys(shown.criteria).map((name) => [name, name]));
    const number = shown.choices.findIndex((each) => each.join("\n") === chosen.join("\n"));
    const view = (await load(`view ${place} ${number}`, `data/${place}/view${number}.js`))[model];
    const tasks = shown.tasks.filter((task) => chosen.includes(task.dataset) && (!model || task.model === model));
    looks(shown);
    board(shown, view, by, new Set(tasks.flatMap((task) => task.sees.map(([method]) => method))));
    pairs(shown, view?.by[by]);
    notes(shown, view, tasks);
    await chart(shown, view, by);
  };

  /** Whose rank stands beside others' as it is: 0; 1 where it is of some of these tasks only, 2 where too few are answered. */
  const apart = (line, tasks) => (line.few ? 2 : Number(line.ranked < tasks));

  const worded = (counts) => Object.entries(counts).map(([word, n]) => `${n} ${word}`).join(", ");
  const total = (counts) => Object.values(counts).reduce((all, n) => all + n, 0);

  /** The methods of a view by a requirement: those of some tasks only, and who answers too few, come last. */
  function board(shown, view, by, seeing) {
    const { better, meaning } = shown.criteria[by];
    const ranked = view?.by[by] ?? { how: "no two methods have a number here, so there is nothing to compare", tasks: 0, lines: [] };
    document.getElementById("meaning").textContent = `${by}, ${better} is better: ${meaning}; ${ranked.how}.`;
    const own = view?.methods ?? {};
    const rest = Object.keys(own).filter((place) => !ranked.lines.some((line) => line.method === Number(place)));
    const unranked = rest.map((place) => ({ method: Number(place), rank: [null], place: "–", first: "", blocks: "", ranked: 0 }));
    const lines = [...ranked.lines, ...unranked].map((line) => ({ ...own[line.method], ...line }));
    lines.sort((a, b) => apart(a, ranked.tasks) - apart(b, ranked.tasks));
    const single = view?.tasks === 1;
    const plain = (text, key) => ({ text, number: true, cell: (line) => [digits(line[key]), line[key] ?? ""] });
    const cover = ({ coverage, least }) => element("span", {}, interval(coverage), least === coverage[0] ? "" : `, least ${digits(least)}`);
    const columns = [
      { text: "method", cell: (line) => [method(shown, line.method, seeing.has(line.method)), shown.methods[line.method]] },
      { text: "coverage", number: true, cell: (line) => [cover(line), line.coverage[0]] },
      plain("questions", "n"),
      { text: "place", cell: (line) => (line.few ? "answers too few" : line.place) },
      { text: "rank", number: true, note: "0 best, 1 last", cell: (line) => [interval(line.rank), line.rank[0] ?? ""] },
    ];
    if (single && ranked.lines.length) {
      const mean = ({ mean, best }) => (mean ? [best ? element("b", {}, interval(mean)) : interval(mean), mean[0]] : "–");
      columns.push({ text: "common mean", number: true, note: ranked.enough ? `n = ${ranked.n}` : `n = ${ranked.n ?? 0}, too few`, cell: mean });
    } else if (!single) {
      const partly = (line) => ranked.tasks > 0 && line.ranked < line.took;
      const tasks = (line) => [line.took, partly(line) ? `rank in ${line.ranked}` : "", line.blocks].filter(Boolean).join(", ");
      columns.push({ text: "tasks", number: true, cell: (line) => [tasks(line), partly(line) ? line.ranked : line.took] });
      if (lines.some((line) => line.first)) columns.push({ text: "first in", cell: (line) => (line.few ? "" : line.first) });
    }
    if (by === "seconds") columns.push(plain("set-up, s", "setup"));
    if (single) columns.push(plain("filled", "filled"), plain("validity", "validity"));
    const gone = ({ missing }) => (total(missing) ? [" ", element("small", {}, `not returned: ${worded(missing)}`)] : []);
    columns.push({ text: "returned, not accepted", cell: (line) => [element("span", {}, worded(line.faults) || "0", ...gone(line)), total(line.faults)] });
    const rows = lines.map((line) => columns.map((column) => column.cell(line)));
    const none = element("p", {}, "Every method refuses this, or none was asked about this model and data set.");
    document.getElementById("table").replaceChildren(lines.length ? table(columns, rows, lines.map((line) => (apart(line, ranked.tasks) ? "few" : ""))) : none);
  }

  /** The pairs of a single task as the report has them, open where too few questions are common. */
  function pairs(shown, ranked) {
    const columns = [
      { text: "first" }, { text: "second" }, { text: "both", number: true, note: "questions that both answer" },
      { text: "median of first − second", number: true }, { text: "Wilcoxon, Holm", number: true },
      { text: "only first", number: true }, { text: "only second", number: true }, { text: "McNemar, Holm", number: true },
    ];
    const chance = (p) => (p === null ? "–" : String(Number(p.toPrecision(2))));
    const rows = (ranked?.pairs ?? []).map(([first, second, both, gap, wilcoxon, onlyFirst, onlySecond, mcnemar]) => [
      ...[first, second].map((place) => [method(shown, place), shown.methods[place]]), String(both), [interval(gap), gap[0] ?? ""],
      chance(wilcoxon), String(onlyFirst), String(onlySecond), chance(mcnemar),
    ]);
    const made = () => element("details", { class: "note", ...(ranked.enough ? {} : { open: "" }) }, element("summary", {}, `Pairs of methods: ${rows.length}`), table(columns, rows));
    document.getElementById("pairs").replaceChildren(...(rows.length ? [made()] : []));
  }

  let drawn;

  /** The board's chart, by Vega-Lite where the site was built with it: ranks with their intervals, or by two requirements. */
  async function chart(shown, view, by) {
    if (!window.vegaEmbed) return;
    const others = Object.keys(shown.criteria).filter((name) => name !== by);
    const against = offer("against", "chart", [["", "ranks with intervals"], ...others.map((name) => [name, `ranks by two: against ${name}`])]);
    const ranked = (name) => new Map((view?.by[name]?.lines ?? []).map((line) => [line.method, { ...view.methods[line.method], ...line, of: view.by[name].tasks }]));
    const second = ranked(against);
    const values = [...ranked(by).values()].filter((line) => line.rank[0] !== null && (!against || typeof second.get(line.method)?.rank[0] === "number")).map((line) => {
      const [method, [rank, low, high]] = [shown.methods[line.method], line.rank];
      const both = [line, second.get(line.method)].filter(Boolean);
      const kind = Math.max(...both.map((each) => apart(each, each.of)));
      const tasks = [...new Set(both.map((each) => `${each.ranked} of ${each.of} tasks`))].join(" and ");
      return { method, label: kind === 1 ? `${method}, ${tasks}` : method, kind, rank, low, high, second: both[1]?.rank[0], tasks, answers: line.few ? "too few" : "enough", coverage: line.coverage[0] };
    });
    values.sort((a, b) => a.kind - b.kind);
    drawn?.finalize();
    drawn = undefined;
    const place = document.getElementById("chart");
    place.replaceChildren();
    if (values.length) drawn = await vegaEmbed(place, { ...(against ? scatter(by, against, values, shown, place.clientWidth) : intervals(by, values, place.clientWidth)), data: { values } }, { actions: false, renderer: "svg" });
  }

  const [some, few] = ["datum.kind === 1", "datum.kind === 2"];
  const grey = { condition: { test: "datum.kind > 0", value: "#767676" }, value: "#0072B2" };
  const spot = (values, titles) => Object.entries(titles).filter(([field]) => values.some((each) => each[field] !== null)).map(([field, title]) => ({ field, title, ...(["method", "tasks", "answers"].includes(field) ? {} : { format: ".3" }) }));
  const share = (field, title) => ({ field, type: "quantitative", scale: { domain: [0, 1] }, title });

  /** Each method's rank with its interval, as the table has them. */
  function intervals(by, values, width) {
    const rank = share("rank", `rank by ${by}: 0 best, 1 last`);
    return {
      description: `Ranks of ${values.length} methods by ${by}, with their intervals; the table above has the numbers.`,
      width: "container",
      height: 18 * values.length,
      encoding: { y: { field: "label", type: "nominal", sort: null, title: null, axis: { labelLimit: width / 3 } } },
      layer: [
        { mark: { type: "rule", strokeWidth: 3 }, encoding: { x: { ...rank, field: "low" }, x2: { field: "high" }, color: grey } },
        { mark: { type: "point", filled: true, opacity: 1, size: 60 }, encoding: { x: rank, color: grey, shape: { condition: [{ test: few, value: "diamond" }, { test: some, value: "triangle-up" }], value: "circle" }, tooltip: spot(values, { method: "method", rank: "rank", low: "from", high: "to", coverage: "coverage", tasks: "of", answers: "answers" }) } },
      ],
    };
  }

  /** Ranks by two requirements, each method in its own colour and shape; what is open is of some tasks only, or answers too few. */
  function scatter(by, against, values, shown, width) {
    const names = values.map((each) => each.method);
    const own = (what) => ({ field: "method", type: "nominal", title: null, sort: null, scale: { domain: names, range: names.map((name) => shown.marks[shown.methods.indexOf(name)][what]) }, legend: { orient: "bottom", columns: Math.max(1, Math.floor(width / 190)), symbolLimit: 0, labelLimit: 160 } });
    return {
      description: `Ranks of ${values.length} methods by ${by} and by ${against}; lower left is best by both.`,
      width: "container",
      height: 340,
      mark: { type: "point", size: 90, opacity: 1 },
      encoding: {
        x: share("rank", `rank by ${by}: 0 best, 1 last`),
        y: share("second", `rank by ${against}`),
        stroke: own("colour"),
        fill: { ...own("colour"), condition: { test: "datum.kind > 0", value: "#ffffff" } },
        shape: own("shape"),
        tooltip: spot(values, { method: "method", rank: by, second: against, coverage: "coverage", tasks: "of", answers: "answers" }),
      },
    };
  }

  /** What is left out of the comparison of some tasks and why, what is unlike, and where to go from here. */
  function notes(shown, view, tasks) {
    const said = shown.faults.map((text) => element("p", {}, element("b", {}, text)));
    said.push(...[...(view?.clocks ?? []), ...shown.conditions].map((text) => element("p", {}, text)));
    if (tasks.some((task) => task.sees.length)) said.push(element("p", { class: "note" }, "* sees what others do not: rows beyond the training data, or structural equations."));
    said.push(...tasks.filter((task) => task.absent).map((task) => element("p", { class: "note" }, `${task.name}: ${task.absent}.`)));
    const listed = (title, found) => (found.length ? element("details", { class: "note" }, element("summary", {}, `${title}: ${found.length}`), ...found.map((text) => element("p", {}, text))) : null);
    const linked = tasks.map((task) => element("p", {}, element("a", { href: `question.html#${new URLSearchParams({ study: shown.name, task: task.name })}` }, task.name)));
    said.push(tasks.length ? element("details", { open: "" }, element("summary", {}, "Single questions of these tasks"), ...linked) : null);
    const told = (key, words) => tasks.flatMap((task) => task[key].map(([place, text]) => words(shown.methods[place], task.name, text)));
    said.push(listed("refused", told("refused", (method, task, why) => `${method} refuses ${task}: ${why}`)));
    const unasked = tasks.filter((task) => task.unasked.length).map((task) => `${task.name}: ${task.unasked.map((place) => shown.methods[place]).join(", ")}`);
    said.push(listed("tasks that some methods were not asked about, or did not end", unasked));
    said.push(listed("sees what others do not", told("sees", (method, task, what) => `${task}: ${method} sees ${what}`)));
    said.push(element("details", { class: "note" }, element("summary", {}, "What was run"), element("p", {}, shown.provenance)));
    document.getElementById("notes").replaceChildren(...said.filter(Boolean));
  }

  pages.question = async () => {
    const [shown, place] = await study();
    const task = offer("task", "task", shown.tasks.map((each) => [each.name, each.name]));
    const number = shown.tasks.findIndex((each) => each.name === task);
    const asked = await load(`task ${place} ${number}`, `data/${place}/task${number}.js`);
    const id = offer("question", "question", asked.questions.map((each) => [each.id, each.id]));
    const kept = offer("kept", "answers", [["one", "each method's nearest accepted, else first"], ["accepted", "accepted ones"], ["all", "all"]]);
    looks(shown);
    const question = asked.questions.find((each) => each.id === id);
    const keep = { one: (each) => each.taken, accepted: (each) => each.verdict === "accepted", all: () => true };
    const answers = (question?.answers ?? []).filter(keep[kept]);
    const told = asked.features.filter((name) => answers.some((each) => get(each.changed, name) !== undefined || get(each.region, name) !== undefined));
    const still = asked.features.filter((name) => !told.includes(name)).map((name) => `${name} ${question?.values[name]}`);
    const now = question?.now ? `the model says ${question.now}; ` : "";
    document.getElementById("meaning").textContent = question ? `Factual ${id}${asked.column ? `, ${asked.column}` : ""}: ${now}wanted: ${question.wanted}.` : "No method takes this task.";
    const columns = [{ text: "method" }, { text: "answer" }, { text: "checked" }, ...told.map((name) => ({ text: name, note: `is ${question.values[name]}`, label: `${name}, is ${question.values[name]}`, changed: [false, ...answers.map((each) => get(each.changed, name) !== undefined)] }))];
    const rows = answers.map((each) => [
      [method(shown, each.method), shown.methods[each.method]],
      `${each.ce}${"seed" in each ? `, seed ${each.seed}` : ""}: ${each.status}${each.why ? `, ${each.why}` : ""}${each.holds ? `, region ${each.holds}` : ""}`,
      `${each.verdict === "accepted" ? "✓ " : each.verdict === "none" ? "" : "✗ "}${each.verdict}`,
      ...told.map((name) => value(each, name, question.values[name])),
    ]);
    const factual = ["factual", "", "", ...told.map((name) => question.values[name])];
    const refused = shown.tasks[number].refused.map(([name, why]) => `${shown.methods[name]} refuses this task: ${why}`);
    document.getElementById("table").replaceChildren(rows.length ? table(columns, [factual, ...rows], [], 1) : element("p", {}, "No such answer."));
    document.getElementById("notes").replaceChildren(...[still.length ? `No answer shown changes: ${still.join("; ")}.` : "", ...refused].filter(Boolean).map((text) => element("p", { class: "note" }, text)));
  };

  /** What an answer makes of a feature, and within which values that is proven, or said, to hold; and what it is sorted by. */
  function value(answer, name, before) {
    const [after, region] = [get(answer.changed, name), get(answer.region, name)];
    if (after === undefined && !region) return answer.changed ? ["", before] : "";
    const judged = { holds: "", broken: "✗ broken: " }[answer.holds] ?? "not proven: ";
    return [element("span", {}, after === undefined ? "=" : `→\u00a0${after}`, ...(region ? [" ", element("span", { class: "region" }, `${judged}${region}`)] : [])), after ?? before];
  }

  pages.methods = async () => {
    const find = document.getElementById("find");
    const narrow = () => {
      const all = [...document.querySelectorAll(".found")];
      for (const each of all) each.hidden = !each.textContent.toLowerCase().includes(find.value.toLowerCase());
      document.getElementById("none").hidden = all.some((each) => !each.hidden);
    };
    find.oninput = narrow;
    narrow();
  };

  let drawing = Promise.resolve();
  let led = new URLSearchParams(location.search).get("study"); // that of the page which led here

  /** Draw what is chosen, once what was chosen before is drawn: its data may come later. */
  function show() {
    document.querySelectorAll("[role=status], [role=alert]").forEach((each) => each.remove());
    drawing = drawing.catch(() => {}).then(draw);
    return drawing;
  }

  async function draw() {
    try {
      await pages[document.body.dataset.page]?.();
      led = controls.get("study")?.querySelector("select").value ?? state().get("study") ?? led;
      for (const link of document.querySelectorAll("nav a")) link.hash = led ? new URLSearchParams({ study: led }) : "";
      document.body.dataset.ready = "yes";
    } catch (fault) {
      document.querySelector("main").prepend(element("p", { role: "alert" }, String(fault.message ?? fault)));
      throw fault;
    }
  }

  /** The keys and values of the address that this page has, and a sentence about each other one. */
  function judged() {
    const kept = new URLSearchParams();
    const faults = [];
    for (const [key, value] of state()) {
      const shown = controls.get(key);
      const label = shown?.firstChild.textContent;
      const known = shown && [...shown.querySelectorAll("option, input")].some((each) => each.value === value);
      if (!shown) faults.push(`There is no choice of "${key}" here.`);
      else if (!known) faults.push(`${label}: there is no "${value}" here.`);
      else if (shown.tagName === "LABEL" && kept.has(key)) faults.push(`${label}: one is shown, without "${value}".`);
      else kept.append(key, value);
    }
    return [kept, faults];
  }

  /** Take out of the address what no longer applies. */
  function tidy() {
    const [kept, faults] = judged();
    if (faults.length) history.replaceState(null, "", `#${kept}`);
  }

  /** Say what a link names and this page has not; what is shown instead is in the lists. */
  function strays() {
    const form = document.getElementById("choose");
    if (form) form.after(...judged()[1].map((text) => element("p", { role: "status" }, text)));
  }

  function open() {
    document.querySelectorAll("main table").forEach(sortable);
    window.addEventListener("hashchange", () => show().then(strays));
    show().then(strays);
  }

  return { put, unpack, open };
})();
