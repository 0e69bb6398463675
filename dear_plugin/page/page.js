// Page: what the server shows in, HTML out; what a person chooses goes back as one case.
const VIEWS = {"One applicant": false, "All applicants": true};
const LINES = ["with what follows", "with nothing else changed"];
const HELP = "Choose a feature and a value. Values that were tried before stay until you start again.";
const MOST_FOUND = 8;
// Narrower, what may change starts folded, so that the first way is seen.
const WIDE = "(min-width: 700px)";
// What may be chosen of the same ways.
const SAME_WAYS = ["way", "feature", "hand", "everyone"];

// Templates whose values are escaped, unless they are templates themselves.
class Safe { constructor(text) { this.text = text; } }
const plain = value => value instanceof Safe ? value.text
  : Array.isArray(value) ? value.map(plain).join("")
  : String(value ?? "").replace(/[&<>"']/g, each => `&#${each.charCodeAt(0)};`);
const html = (parts, ...values) => new Safe(String.raw({raw: parts}, ...values.map(plain)));
const on = (is, name) => new Safe(is ? name : "");
const error = text => text ? html`<p class="problem" role="alert">${text}</p>` : "";
const small = text => text ? html`<p class="small">${text}</p>` : "";
const folded = (title, content) => html`<details ${on(matchMedia(WIDE).matches, "open")}><summary><h2>${title}</h2></summary>${content}</details>`;
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const inside = (value, [low, high]) => Math.min(Math.max(value, low), high);

export function render({model, el}) {
  let choices = {...model.shown.choices}, turn = 0, text = "", drawn = {}, drawing = false;
  const busy = () => model.shown.turn !== turn;
  const root = document.createElement("main");
  root.innerHTML = plain(html`<h1>${model.title}</h1><p id="status" role="status"></p>
    <div id="views" role="radiogroup" aria-label="View"></div>
    <div id="all"></div>
    <div id="one"><div id="left"><div id="who"></div>
      <div id="searched"><label for="search">Search for an applicant</label>
      <input id="search" placeholder="A case, or values" autocomplete="off"><div id="found"></div></div>
      <p><button id="previous" data-do="step" data-to="-1">Previous</button>
      <button id="next" data-do="step" data-to="1">Next</button></p>
      ${folded("What may change", html`<div id="may"></div>`)}
      ${folded("This case", html`<p><button id="save" data-do="save">Save this case</button></p>
      <label for="file">Open a saved case</label><input id="file" type="file" accept=".json" data-set="file">`)}
      <div id="wrong"></div></div>
      <div id="right"><h2>Ways to the wanted decision</h2><div id="ways"></div>
      <h2>The letter</h2><div id="letter"></div>
      <h2>Try by hand</h2><div id="hand"></div></div></div>`);
  el.append(root);
  const find = id => root.querySelector(`#${CSS.escape(id)}`);

  // One region is written anew where it differs; what has the focus, and is typed there, stays.
  const put = (id, content) => {
    const next = plain(content);
    if (drawn[id] === next) return;
    const held = find(id).getRootNode().activeElement, typed = held && held.value;
    drawing = true;
    find(id).innerHTML = drawn[id] = next;
    const again = held && held.id && find(id).querySelector(`#${CSS.escape(held.id)}`);
    if (again) {
      if (again.type === "number") again.value = typed;
      again.focus();
    }
    drawing = false;
  };

  // A value: one of a few, or a number between two ends.
  const input = (id, label, set, {few, step}, value, ends) => html`<div><label for="${id}">${label}</label>
    ${few.length ? html`<select id="${id}" data-set="${set}" data-ends="${JSON.stringify(few.map(each => each[1]))}">
      ${few.some(each => same(each[1], value)) ? "" : html`<option value="-1" selected>${value ?? "missing"}</option>`}
      ${few.map(([words, each], at) => html`<option value="${at}" ${on(same(each, value), "selected")}>${words}</option>`)}</select>`
    : html`<input id="${id}" type="number" step="${step}" value="${value}" data-set="${set}" data-ends="${JSON.stringify(ends)}">`}</div>`;
  const tick = (id, label, is, set, value) => html`<label class="tick"><input id="${id}" type="checkbox"
    data-set="${set}" data-value="${JSON.stringify(value)}" ${on(is, "checked")}> ${label}</label>`;

  const feature = each => html`<div class="feature"><label for="state-${each.name}">${each.title}: now ${each.now}</label>
    <select id="state-${each.name}" data-set="state" data-name="${each.name}">
      ${each.states.map(state => html`<option ${on(state === choices.states[each.name], "selected")}>${state}</option>`)}</select>
    ${each.none ? small(each.none) : ""}
    ${each.ends ? html`<div class="ends">${["least", "most"].map((words, at) => input(`${words}-${each.name}`,
      `${each.title}, at ${words}`, `${words}:${each.name}`, each, each.held[at], each.ends))}</div>` : ""}
    ${each.levels ? html`<fieldset><legend>${each.title}, within reach</legend>${each.levels.map(([words, value, is], at) =>
      tick(`level-${each.name}-${at}`, words, is, `level:${each.name}`, value))}</fieldset>` : ""}</div>`;

  const number = (value, chance) => value == null || isNaN(value) ? "unknown" : chance
    ? `${Math.round(100 * value)}%` : value.toLocaleString("en", {maximumSignificantDigits: 4});
  const score = ({scores, wanted}, chance) => {
    const known = [...scores, ...wanted].filter(each => each != null && isFinite(each));
    const pad = 0.08 * (Math.max(...known) - Math.min(...known) || 1);
    const [low, high] = chance ? [0, 1] : [Math.min(...known) - pad, Math.max(...known) + pad];
    const [first, last] = wanted.every(each => each == null) ? [low, low] : [wanted[0] ?? low, wanted[1] ?? high];
    const at = value => `${100 * (inside(value, [low, high]) - low) / (high - low)}%`;
    const ends = wanted.filter(each => each != null && low < each && each < high).map(each => number(each, chance));
    return html`<p>${chance ? "Score" : "Predicted value"} ${scores.map(each => number(each, chance)).join(" → ")}
      ${ends.length ? ` (decision at ${ends.join(" and ")})` : ""}</p><div class="track">
      <i class="won" style="left: ${at(first)}; right: calc(100% - ${at(last)})"></i>
      <i class="dot before" style="left: ${at(scores[0])}"></i><i class="dot" style="left: ${at(scores[1])}"></i></div>`;
  };
  const result = (each, chance) => html`${each.lines.map(line => html`<div class="${line.kind}">
    <span class="label">${line.words}: ${line.title}</span>${line.text}</div>`)}${score(each, chance)}${small(each.known)}`;
  const way = (each, at, {chance, choices: {way}}) => {
    const chosen = at === way && !each.why;
    return html`<section class="card ${on(chosen, "chosen")}"><h3>Way ${at + 1}</h3>
      <p><span class="badge ${on(each.why, "weak")}">${each.why ? "weak: not for a letter" : "can be told"}</span></p>
      ${small(each.why)}${result(each, chance)}<button id="way-${at}" data-do="way" data-to="${at}"
      class="${on(chosen, "primary")}" ${on(each.why, "data-off disabled")}>${chosen ? "In the letter" : `Take way ${at + 1}`}</button></section>`;
  };
  const hand = ({curve, tried, chance, features, error: problem}) => curve ? html`<div class="by-hand"><div>
    <label for="feature">Feature</label><select id="feature" data-set="feature">${features.map(each =>
      html`<option value="${each.name}" ${on(each.name === curve.name, "selected")}>${each.title}</option>`)}</select>
    ${input("value", `Value of ${features.find(each => each.name === curve.name).title}`, "hand", curve, curve.value, curve.ends)}
    <p><button id="again" data-do="again">Start again</button></p>
    ${!tried ? html`<p>${HELP}</p>` : tried.head ? html`<h3>${tried.head}</h3>${result(tried, chance)}` : error(tried.error || HELP)}
    </div>${picture(curve, chance, root.clientWidth < 600 ? 340 : 480)}</div>` : error(problem);

  const draw = () => {
    const now = model.shown;
    if (!busy()) choices = {...now.choices};
    find("status").textContent = busy() ? "Computing" : now.status;
    root.classList.toggle("busy", busy());
    put("views", Object.entries(VIEWS).map(([words, all], at) => html`<label><input type="radio" name="view" id="view-${at}"
      data-set="view" value="${at}" ${on(all === choices.everyone, "checked")}>${words}</label>`));
    find("all").hidden = !choices.everyone;
    find("one").hidden = choices.everyone;
    if (!busy() && !choices.everyone) {
      put("who", html`<h2>Applicant ${choices.applicant}</h2>${small(`Cannot change: ${now.fixed}`)}`);
      put("may", now.features.map(feature));
      put("wrong", error(now.wrong));
      put("ways", [error(now.error), now.note.map((each, at) => at ? small(each) : html`<p>${each}</p>`),
        now.ways.length ? html`<div class="ways">${now.ways.map((each, at) => way(each, at, now))}</div>` : ""]);
      put("letter", now.letter ? html`<p class="letter">${now.letter}</p><p><button id="copy" data-do="copy">Copy</button>
        <button id="download" data-do="download">Download</button></p>` : "");
      put("hand", hand(now));
    }
    if (!busy() && choices.everyone) {
      put("all", html`<h2>What all applicants are told</h2><p>The most frequent first. Untick what nobody should be
        told: the ways and letters of this page follow.</p>${error(now.error)}
        ${(now.kinds || []).map((each, at) => html`<section class="card">${tick(`kind-${at}`, each.words, each.told,
          "kind", each.kind)}<p>${each.text}</p></section>`)}${now.kinds && !now.kinds.length ? html`<p>There is no advice to anybody.</p>` : ""}`);
    }
    root.querySelectorAll("#right button, #save").forEach(each => { each.disabled = busy() || "off" in each.dataset; });
    const found = model.names.filter(each => each[0].toLowerCase().includes(text.toLowerCase())), more = found.length - MOST_FOUND;
    put("found", !text ? "" : found.length ? [found.slice(0, MOST_FOUND).map(([line, name], at) =>
      html`<button id="found-${at}" data-do="choose" data-to="${name}">${line}</button>`),
      more > 0 ? html`<p class="small">and ${more} more: write more of it</p>` : ""] : error(`No applicant has '${text}'`));
  };

  // A question; until it is answered nothing can be taken away.
  const ask = more => {
    const another = Object.keys(more).some(each => !SAME_WAYS.includes(each));
    choices = {...choices, ...(another ? {way: 0} : {}), ...more};
    send(JSON.stringify(choices));
  };
  const send = content => {
    turn += 1;
    model.send_msg({turn, case: content});
    draw();
  };
  const say = words => { find("status").textContent = words; };
  const another = applicant => ask({applicant, hand: {}, feature: ""});
  const save = (content, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], {type: "text/plain"}));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  const DO = {
    step: to => {
      const people = model.names.map(each => each[1]), at = people.indexOf(choices.applicant);
      another(people[(at + Number(to) + people.length) % people.length]);
    },
    choose: name => {
      searched("");
      find("search").focus();
      another(name);
    },
    way: to => ask({way: Number(to)}),
    again: () => ask({hand: {}}),
    copy: () => navigator.clipboard.writeText(model.shown.letter).then(
      () => say("The letter is copied"), () => say("The browser does not let a page copy: mark the letter, or download it")),
    download: () => save(model.shown.letter, `letter-${choices.applicant}.txt`),
    save: () => save(JSON.stringify(choices, null, 1), "case.json"),
  };
  // The value of a field; a number is moved between its ends.
  const valued = field => {
    const ends = JSON.parse(field.dataset.ends);
    if (field.type !== "number") return ends[field.value];
    if (field.value === "") return null;
    return Number(field.value = inside(Number(field.value), ends));
  };
  const end = (at, name, field) => {
    const {ends, held} = model.shown.features.find(each => each.name === name);
    const reach = [...(choices.reach[name] || held)];
    reach[at] = valued(field);
    ask({reach: {...choices.reach, [name]: reach.map((each, i) => same(each, ends[i]) ? null : each)}});
  };
  const SET = {
    view: field => ask({everyone: Object.values(VIEWS)[field.value]}),
    state: field => ask({states: {...choices.states, [field.dataset.name]: field.value}}),
    least: (field, name) => end(0, name, field),
    most: (field, name) => end(1, name, field),
    level: (field, name) => {
      const boxes = [...root.querySelectorAll(`[data-set="level:${CSS.escape(name)}"]:checked`)];
      if (boxes.length) ask({reach: {...choices.reach, [name]: boxes.map(each => JSON.parse(each.dataset.value))}});
      else field.checked = true;  // what has no level left is one that stays
    },
    feature: field => ask({feature: field.value}),
    hand: field => {
      const value = valued(field);
      if (value != null) ask({hand: {...choices.hand, [model.shown.curve.name]: value}});
    },
    kind: field => {
      const kind = JSON.parse(field.dataset.value), others = choices.excluded.filter(each => !same(each, kind));
      ask({excluded: field.checked ? others : [...others, kind]});
    },
    file: async field => {
      const content = field.files.length ? await field.files[0].text() : null;
      field.value = "";
      drawn = {};
      if (content !== null) send(content);
    },
  };
  root.addEventListener("click", ({target}) => {
    const button = target.closest("[data-do]");
    if (button) DO[button.dataset.do](button.dataset.to);
  });
  root.addEventListener("change", ({target}) => {
    const [name, ...rest] = (target.dataset.set || "").split(":");
    if (name && !drawing) SET[name](target, rest.join(":"));
  });
  const searched = value => { find("search").value = text = value; draw(); };
  find("search").addEventListener("input", ({target}) => searched(target.value));
  find("search").addEventListener("focus", ({target}) => target.select());
  find("searched").addEventListener("keydown", ({key, target}) => {
    const first = find("found-0");
    if (key === "Escape") searched("");
    if (key === "Enter" && target.id === "search" && first) first.click();
  });
  model.on("shown", draw);
  draw();
}

// The score over the values of one feature.
function picture(curve, chance, width) {
  const height = 260, left = 62, right = width - 12, top = 8, bottom = height - (curve.number ? 48 : 76);
  const {values, texts, lines, wanted, reach, number} = curve;
  const places = number ? values : values.map((_, at) => at);
  const scores = [...lines.flat(), curve.tried, ...wanted].filter(each => each != null);
  const [first, last] = number ? curve.ends : [-0.5, values.length - 0.5];
  const [low, high] = chance ? [0, 1] : [Math.min(...scores), Math.max(...scores)];
  const x = value => left + (right - left) * (value - first) / (last - first || 1);
  const y = value => bottom - (bottom - top) * (value - low) / (high - low || 1);
  const named = value => value.toLocaleString("en", {maximumSignificantDigits: 4, useGrouping: Math.abs(value) >= 1e4});
  const line = (x1, y1, x2, y2, kind) => html`<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;
  const kinds = ["follows", "alone"], shapes = lines.map((each, at) => number
    ? html`<path class="${kinds[at]}" d="${each.map((score, i) => [score, i]).filter(([score]) => score != null)
      .map(([score, i], k) => `${k ? "L" : "M"}${x(places[i])} ${y(score)}`).join("")}"/>`
    : each.map((score, i) => score == null ? "" : html`<circle class="${kinds[at]}" cx="${x(places[i])}" cy="${y(score)}" r="${at ? 5 : 8}"/>`));
  const index = value => values.findIndex(each => same(each, value));
  const place = value => number ? value : places[index(value)];
  const dots = [[place(curve.own), lines[0][index(curve.own)], "own"], [place(curve.value), curve.tried, "tried"]];
  return html`<figure><p>${LINES.map((words, at) => html`<span class="key"><i class="${kinds[at]}"></i>${words}</span>`)}</p>
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${curve.score} by ${curve.title}">
    ${reach && number ? html`<rect class="reach" x="${x(inside(reach[0] ?? first, curve.ends))}" y="${top}" height="${bottom - top}"
      width="${Math.max(x(inside(reach[1] ?? last, curve.ends)) - x(inside(reach[0] ?? first, curve.ends)), 0)}"/>` : ""}
    ${ticks(low, high).map(each => html`${line(left, y(each), right, y(each), "grid")}<text x="${left - 7}" y="${y(each) + 5}"
      text-anchor="end">${chance ? `${Math.round(100 * each)}%` : named(each)}</text>`)}
    ${number ? ticks(first, last).map(each => html`${line(x(each), top, x(each), bottom, "grid")}<text x="${x(each)}" y="${bottom + 18}"
      text-anchor="middle">${named(each)}</text>`) : texts.map((each, at) => html`<text text-anchor="end"
      transform="translate(${x(at) + 4} ${bottom + 14}) rotate(-35)">${each.length > 9 ? `${each.slice(0, 8)}…` : each}</text>`)}
    ${wanted.map(each => each != null && low <= each && each <= high && (each < 1 || !chance) ? line(left, y(each), right, y(each), "decision") : "")}
    ${line(left, top, left, bottom, "axis")}${line(left, bottom, right, bottom, "axis")}${shapes}
    ${dots.map(([at, score, kind]) => at == null || score == null ? "" : html`<circle class="${kind}" cx="${x(at)}" cy="${y(score)}" r="7"/>`)}
    ${texts.map((each, at) => html`<rect class="tip" x="${x(places[at]) - 7}" y="${top}" width="14" height="${bottom - top}"><title>${each}${
      lines.map((scores, k) => scores[at] == null ? "" : `\n${chance ? `${(100 * scores[at]).toFixed(1)}%` : named(scores[at])} ${LINES[k]}`)}</title></rect>`)}
    <text class="title" x="${(left + right) / 2}" y="${height - 8}" text-anchor="middle">${curve.title}</text>
    <text class="title" text-anchor="middle" transform="translate(14 ${(top + bottom) / 2}) rotate(-90)">${curve.score}</text></svg></figure>`;
}

// Round numbers between two ends.
function ticks(low, high, most = 6) {
  const raw = (high - low || 1) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= raw * 0.999);
  const start = Math.ceil(low / step - 1e-9);
  return Array.from({length: Math.floor(high / step + 1e-9) - start + 1}, (_, at) => Number(((start + at) * step).toPrecision(12)));
}
