// Page: what the server shows in, HTML out; what a person chooses goes back as one case.
const VIEWS = ["One applicant", "All applicants"];
// In the place of an applicant: the choices that hold for all.
const EVERYONE = "";
const WHOSE = ["These choices are for this applicant alone.", "These choices are for all applicants. What is chosen for one of them is not used here."];
// What follows, and kinds of advice, that are shown before the others are unfolded.
const MOST_FOLLOW = 2, MOST_KINDS = 10;
// The state of what an applicant may act on, as the server calls it.
const ACT = "I may act on it";
const LINES = ["with what follows", "with nothing else changed"];
const KINDS = ["follows", "alone"];
const HELP = "Choose a feature and a value. Values that you tried before are kept until you start again.";
const MOST_FOUND = 8;
// Narrower, what may change starts folded, so that the first way is seen.
const WIDE = "(min-width: 700px)";
// What may be chosen of the same ways.
const SAME_WAYS = ["way", "feature", "hand"];

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
const more = (id, words, content) => html`<details id="${id}"><summary>${words}</summary>${content}</details>`;
const keys = LINES.map((words, at) => html`<span class="key"><i class="${KINDS[at]}"></i>${words}</span>`);
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const inside = (value, [low, high]) => Math.min(Math.max(value, low), high);

export function render({model, el}) {
  let choices = {...model.shown.choices}, turn = 0, text = "", drawn = {}, drawing = false, since = 0;
  // The choices of each applicant, and who is shown when all applicants are not.
  const cases = {};
  let person = choices.applicant;
  const busy = () => model.shown.turn !== turn;
  const who = () => choices.applicant === EVERYONE ? "all applicants" : `applicant ${choices.applicant}`;
  const names = model.known.protected.map(each => each.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const secrets = names.length ? new RegExp(`(^|\\W)(${names.join("|")})(\\W|$)`, "i") : null;
  // The class of what the switch hides.
  const secret = words => secrets && secrets.test(words) ? "protected" : "";
  const root = document.createElement("main");
  root.className = "hide-in-print";
  root.innerHTML = plain(html`<h1>${model.title}</h1><p id="bar"><span id="status" role="status"></span>
      <span id="seconds"></span> <button id="stop" data-do="stop" hidden>Stop</button></p>
    <div id="views" role="radiogroup" aria-label="View"></div>
    <fieldset id="hiding"><legend>Hide protected attributes and names</legend>
      ${[["on this screen", "hide-here"], ["in print", "hide-in-print"]].map(([words, name]) => html`<label class="tick">
      <input id="${name}" type="checkbox" data-set="hide" ${on(name === "hide-in-print", "checked")}> ${words}</label>`)}</fieldset>
    <div id="one"><div id="left"><div id="who"></div>
      <div id="searched"><label for="search">Search for an applicant</label>
      <input id="search" placeholder="A case number, or values" autocomplete="off"><div id="found"></div></div>
      <p id="step"><button id="previous" data-do="step" data-to="-1">Previous</button>
      <button id="next" data-do="step" data-to="1">Next</button></p>
      ${folded("What may change", html`<p class="small" id="whose"></p><div id="may"></div>`)}
      ${folded("This case", html`<p><button id="save" data-do="save">Save this case</button></p>
      <label for="file">Open a saved case</label><input id="file" type="file" accept=".json" data-set="file">`)}
      <div id="wrong"></div></div>
      <div id="all"></div>
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
    const open = [...find(id).querySelectorAll("details[open]")].map(each => each.id);
    drawing = true;
    find(id).innerHTML = drawn[id] = next;
    find(id).querySelectorAll("details").forEach(each => { each.open = open.includes(each.id); });
    const again = held && held.id && find(id).querySelector(`#${CSS.escape(held.id)}`);
    if (again) {
      if (again.type === "number") again.value = typed;
      again.focus();
    }
    drawing = false;
  };

  // A value: one of a few, or a number between two ends.
  const input = (id, label, set, {few, step}, value, ends, said) => html`<div><label for="${id}">${label}</label>
    ${few.length ? html`<select id="${id}" data-set="${set}" data-ends="${JSON.stringify(few.map(each => each[1]))}">
      ${few.some(each => same(each[1], value)) ? "" : html`<option value="-1" selected>${value ?? "missing"}</option>`}
      ${few.map(([words, each], at) => html`<option value="${at}" ${on(same(each, value), "selected")}>${words}</option>`)}</select>`
    : html`<input id="${id}" type="number" step="${step}" value="${value}" data-set="${set}"
      data-ends="${JSON.stringify(ends)}" data-said="${said}">`}<p class="problem" role="alert" hidden></p></div>`;
  const tick = (id, label, is, set, value) => html`<label class="tick"><input id="${id}" type="checkbox"
    data-set="${set}" data-value="${JSON.stringify(value)}" ${on(is, "checked")}> ${label}</label>`;

  const feature = each => html`<div class="feature ${secret(each.title)}">
    <label for="state-${each.name}">${each.title}${each.now == null ? "" : `: now ${each.now}`}</label>
    <select id="state-${each.name}" data-set="state" data-name="${each.name}">
      ${each.states.map(state => html`<option ${on(state === choices.states[each.name], "selected")}>${state}</option>`)}</select>
    ${small(each.none)}${small(each.offered)}
    ${each.ends ? html`<div class="ends">${["least", "most"].map((words, at) => input(`${words}-${each.name}`,
      `${each.title}, at ${words}`, `${words}:${each.name}`, each, each.held[at], each.limits[at], each.said[at]))}</div>` : ""}
    ${each.levels ? html`<fieldset><legend>${each.title}, within reach</legend>${each.levels.map(([words, value, is], at) =>
      tick(`level-${each.name}-${at}`, words, is, `level:${each.name}`, value))}</fieldset>` : ""}</div>`;

  const number = (value, chance) => value == null || isNaN(value) ? "unknown" : chance
    ? `${Math.round(100 * value)}%` : value.toLocaleString("en", {maximumSignificantDigits: 4});
  // Where scores stand on a line, with the side of the wanted decision.
  const scale = (scores, wanted, chance) => {
    const known = [...scores, ...wanted].filter(each => each != null && isFinite(each));
    const pad = 0.08 * (Math.max(...known) - Math.min(...known) || 1);
    const [low, high] = chance ? [0, 1] : [Math.min(...known) - pad, Math.max(...known) + pad];
    const [first, last] = wanted.every(each => each == null) ? [low, low] : [wanted[0] ?? low, wanted[1] ?? high];
    const at = value => `${100 * (inside(value, [low, high]) - low) / (high - low)}%`;
    const ends = wanted.filter(each => each != null && low < each && each < high).map(each => number(each, chance));
    const decision = ends.length ? ` (decision at ${ends.join(" and ")})` : "";
    const track = dots => html`<div class="track"><i class="won" style="left: ${at(first)}; right: calc(100% - ${at(last)})"></i>
      ${dots.map(([value, kind]) => value == null ? "" : html`<i class="dot ${kind}" style="left: ${at(value)}"></i>`)}</div>`;
    return {decision, track};
  };
  const moved = ({scores, wanted}, chance) => {
    const {decision, track} = scale(scores, wanted, chance);
    return html`<p>${chance ? "Score" : "Predicted value"} ${scores.map(each => number(each, chance)).join(" → ")}
      ${decision}</p>${track([[scores[0], "before"], [scores[1], ""]])}`;
  };
  // The score of each level of one feature.
  const levels = ({score, title, values, texts, lines, wanted, own, value, tried}, chance) => {
    const {decision, track} = scale([...lines.flat(), tried], wanted, chance);
    const named = (words, at) => `${words}${lines.map((scores, k) => scores[at] == null ? "" : `, ${number(scores[at], chance)} ${LINES[k]}`).join("")}`;
    return html`<figure role="img" aria-label="${score} by ${title}"><p>${keys}</p><p class="title">${title}: ${score.toLowerCase()}${decision}</p>
      ${texts.map((words, at) => html`<div class="level" title="${named(words, at)}"><span>${words}${same(values[at], own) ? " (now)" : ""}</span>
      ${track([[lines[0][at], "follows"], [lines[1][at], "alone"], [same(values[at], value) ? tried : null, "tried"]])}</div>`)}</figure>`;
  };
  const line = each => html`<div class="${secret(each.title)}"><span class="what">${each.title}</span> ${each.text}</div>`;
  // What is done, and what follows: each kind once, the smaller changes that follow folded.
  const group = (lines, id) => {
    const shown = lines[0].kind === "direct" ? lines.length : MOST_FOLLOW, rest = lines.slice(shown);
    return html`<div class="${lines[0].kind}"><span class="label">${lines[0].words}</span>${lines.slice(0, shown).map(line)}
      ${rest.length ? more(id, `${rest.length} more`, rest.map(line)) : ""}</div>`;
  };
  const known = words => words ? html`<p class="small ${secret(words)}">${words}</p>` : "";
  const result = (each, chance, id) => html`${[...new Set(each.lines.map(own => own.words))].map((words, at) =>
    group(each.lines.filter(own => own.words === words), `${id}-more-${at}`))}${moved(each, chance)}
    ${each.why && each.known ? html`<div class="${secret(each.known)}">${more(`${id}-known`, "How sure this is", known(each.known))}</div>` : known(each.known)}`;
  const way = (each, at, {chance, choices: {way}}) => {
    const chosen = at === way && !each.why;
    return html`<section class="card ${on(chosen, "chosen")}"><h3>Way ${at + 1}</h3>
      <p><span class="badge ${on(each.why, "weak")}">${each.why ? "weak" : "can be advised"}</span></p>
      ${result(each, chance, `way-${at}`)}<div class="take"><button id="way-${at}" data-do="way" data-to="${at}"
      class="${on(chosen, "primary")}" ${each.why ? html`data-off disabled aria-describedby="why-${at}"` : ""}>${
        chosen ? "In the letter" : "Put in the letter"}</button>
      ${each.why ? html`<p class="small" id="why-${at}">Not for a letter. ${each.why}</p>` : ""}</div></section>`;
  };
  // A letter without advice repeats a reason that a way has: it is folded.
  const letter = ({letter, ways}) => {
    const [first, ...rest] = letter.split("\n"), hidden = model.known.named ? "protected" : "";
    const all = html`<p class="letter"><span class="${hidden}">${first}\n</span>${rest.join("\n")}</p><p><button id="copy"
      data-do="copy">Copy</button> <button id="download" data-do="download">Download</button></p>`;
    return !letter ? "" : ways.length && ways.every(each => each.why) ? more("none", "No way can be advised: the letter that says so", all) : all;
  };
  const hand = ({curve, tried, chance, features, error: problem}) => curve ? html`<div class="by-hand"><div>
    <label for="feature">Feature</label><select id="feature" data-set="feature">${features.map(each =>
      html`<option value="${each.name}" class="${secret(each.title)}" ${on(each.name === curve.name, "selected")}>${each.title}</option>`)}</select>
    ${input("value", `Value of ${features.find(each => each.name === curve.name).title}`, "hand", curve, curve.value, curve.ends, curve.said)}
    <p><button id="again" data-do="again">Start again</button></p>
    ${!tried ? html`<p>${HELP}</p>` : tried.head ? html`<h3>${tried.head}</h3>${result(tried, chance, "tried")}` : error(tried.error || HELP)}
    </div>${curve.number ? picture(curve, chance, root.clientWidth < 600 ? 340 : 480) : levels(curve, chance)}</div>` : error(problem);

  const draw = () => {
    const now = model.shown;
    if (!busy()) choices = {...now.choices};
    if (choices.applicant !== EVERYONE) person = choices.applicant;
    find("status").textContent = busy() ? `Computing: ${who()}` : now.status;
    find("stop").hidden = find("seconds").hidden = !busy();
    clock();
    const everyone = choices.applicant === EVERYONE, another = choices.applicant !== now.choices.applicant;
    // What may be hidden last, so that no separator is left before the others.
    const fixed = [...now.fixed].sort((one, other) => Boolean(secret(one)) - Boolean(secret(other)));
    root.classList.toggle("busy", busy());
    root.classList.toggle("other", another);
    put("views", VIEWS.map((words, at) => html`<label><input type="radio" name="view" id="view-${at}"
      data-set="view" value="${at}" ${on((at === 1) === everyone, "checked")}>${words}</label>`));
    find("all").hidden = !everyone;
    find("right").hidden = find("searched").hidden = find("step").hidden = everyone;
    find("whose").textContent = WHOSE[Number(everyone)];
    const at = model.known.names.findIndex(each => each[1] === choices.applicant);
    put("who", html`<h2>${everyone ? "All applicants" : html`Applicant <span class="${model.known.named ? "protected" : ""}">${choices.applicant}</span>`}</h2>
      ${everyone ? "" : small(`${at + 1} of ${model.known.names.length}`)}${another || !fixed.length ? "" : html`<p class="small ${on(fixed.every(secret), "protected")}">Cannot change:
      ${fixed.map((each, at) => html`<span class="${secret(each)}">${at ? " · " : ""}${each}</span>`)}</p>`}`);
    if (!busy()) {
      const [acts, rest] = [true, false].map(is => now.features.filter(each => is === each.states.includes(ACT)));
      put("may", [acts.map(feature), rest.length ? more("rest", `${rest.length} that may only follow, or stay`, rest.map(feature)) : ""]);
      put("wrong", error(now.wrong));
    }
    if (!busy() && !everyone) {
      put("ways", [error(now.error), now.note.map((each, at) => at ? small(each) : html`<p>${each}</p>`),
        now.ways.length ? html`<div class="ways">${now.ways.map((each, at) => way(each, at, now))}</div>` : ""]);
      put("letter", letter(now));
      put("hand", hand(now));
    }
    if (!busy() && everyone) {
      const kinds = (now.kinds || []).map((each, at) => html`<section class="card ${secret(each.words)}">${tick(`kind-${at}`,
        each.words, each.ticked, "kind", each.kind)}<p class="${secret(each.text)}">${each.text}</p></section>`);
      put("all", html`<h2>Advice to all applicants</h2><p>The most frequent advice comes first. Untick advice that nobody
        should get: the ways and letters of this page leave it out.</p>${error(now.error)}
        ${kinds.slice(0, MOST_KINDS)}${kinds.length > MOST_KINDS ? more("kinds", `${kinds.length - MOST_KINDS} more`, kinds.slice(MOST_KINDS)) : ""}
        ${now.kinds && !kinds.length ? html`<p>There is no advice for any applicant.</p>` : ""}`);
    }
    root.querySelectorAll("#right button, #save").forEach(each => {
      each.disabled = busy() || "off" in each.dataset;
      each.title = busy() ? "Wait for the answer, or stop" : "";
    });
    const found = model.known.names.filter(each => each[0].toLowerCase().includes(text.toLowerCase())), others = found.length - MOST_FOUND;
    put("found", !text ? "" : found.length ? [found.slice(0, MOST_FOUND).map(([line, name], at) =>
      html`<button id="found-${at}" data-do="choose" data-to="${name}">${line}</button>`),
      others > 0 ? html`<p class="small">and ${others} more: type more to find fewer</p>` : ""] : error(`No applicant has '${text}'`));
  };

  // A question; until it is answered nothing can be taken away.
  const ask = more => {
    const another = Object.keys(more).some(each => !SAME_WAYS.includes(each));
    choices = {...choices, ...(another ? {way: 0} : {}), ...more};
    send(JSON.stringify(choices));
  };
  const send = content => {
    turn += 1;
    since = Date.now();
    model.send_msg({turn, case: content});
    draw();
  };
  const clock = () => {
    find("seconds").textContent = `${Math.round((Date.now() - since) / 1000)} s`;
    if (busy()) setTimeout(() => busy() && clock(), 500);
  };
  const say = words => { find("status").textContent = words; };
  // Another applicant, or all: with the choices that were made there; what is excluded holds for all.
  const another = applicant => {
    cases[choices.applicant] = choices;
    choices = {...(cases[applicant] || model.known.start), applicant, excluded: choices.excluded};
    send(JSON.stringify(choices));
  };
  const save = (content, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], {type: "text/plain"}));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };

  const DO = {
    step: to => {
      const people = model.known.names.map(each => each[1]), at = people.indexOf(choices.applicant);
      another(people[(at + Number(to) + people.length) % people.length]);
    },
    choose: name => {
      searched("");
      find("search").focus();
      another(name);
    },
    stop: () => {
      drawn = {};
      send("");
    },
    way: to => ask({way: Number(to)}),
    again: () => ask({hand: {}}),
    copy: () => navigator.clipboard.writeText(model.shown.letter).then(
      () => say("The letter is copied"), () => say("This browser does not allow copying: select the text of the letter, or download it")),
    download: () => save(model.shown.letter, `letter-${choices.applicant}.txt`),
    save: () => save(JSON.stringify(choices, null, 1), "case.json"),
  };
  // The value of a field, null where it is empty; undefined, and why, where it is no number within its limits.
  const valued = field => {
    const ends = JSON.parse(field.dataset.ends), words = field.parentElement.querySelector(".problem");
    if (field.type !== "number") return ends[field.value];
    const value = field.value === "" ? null : Number(field.value);
    const wrong = field.validity.badInput || (value != null && (value < ends[0] || value > ends[1]));
    field.setAttribute("aria-invalid", wrong);
    words.hidden = !wrong;
    words.textContent = wrong ? `Not taken: ${value ?? "this is no number"}. A number from ${field.dataset.said} is possible here.` : "";
    return wrong ? undefined : value;
  };
  const end = (at, name, field) => {
    const {ends, held} = model.shown.features.find(each => each.name === name), value = valued(field);
    const reach = [...(choices.reach[name] || held)];
    if (value === undefined) return;
    reach[at] = value;
    ask({reach: {...choices.reach, [name]: reach.map((each, i) => same(each, ends[i]) ? null : each)}});
  };
  const SET = {
    view: field => another(field.value === "1" ? EVERYONE : person),
    hide: field => root.classList.toggle(field.id, field.checked),
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
  const height = 270, left = 62, right = width - 12, top = 24, bottom = height - 48;
  const {values, texts, lines, wanted, reach} = curve;
  const scores = [...lines.flat(), curve.tried, ...wanted].filter(each => each != null);
  const [first, last] = curve.ends, [low, high] = chance ? [0, 1] : [Math.min(...scores), Math.max(...scores)];
  const x = value => left + (right - left) * (value - first) / (last - first || 1);
  const y = value => bottom - (bottom - top) * (value - low) / (high - low || 1);
  const named = value => value.toLocaleString("en", {maximumSignificantDigits: 4, useGrouping: Math.abs(value) >= 1e4});
  const line = (x1, y1, x2, y2, kind) => html`<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" class="${kind}"/>`;
  const shapes = lines.map((each, at) => html`<path class="${KINDS[at]}" d="${each.map((score, i) => [score, i]).filter(([score]) => score != null)
    .map(([score, i], k) => `${k ? "L" : "M"}${x(values[i])} ${y(score)}`).join("")}"/>`);
  const dots = [[curve.own, lines[0][values.indexOf(curve.own)], "own"], [curve.value, curve.tried, "tried"]];
  return html`<figure><p>${keys}</p>
    <svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${curve.score} by ${curve.title}">
    ${reach ? html`<rect class="reach" x="${x(inside(reach[0] ?? first, curve.ends))}" y="${top}" height="${bottom - top}"
      width="${Math.max(x(inside(reach[1] ?? last, curve.ends)) - x(inside(reach[0] ?? first, curve.ends)), 0)}"/>` : ""}
    ${ticks(low, high).map(each => html`${line(left, y(each), right, y(each), "grid")}<text x="${left - 7}" y="${y(each) + 5}"
      text-anchor="end">${chance ? `${Math.round(100 * each)}%` : named(each)}</text>`)}
    ${ticks(first, last).map(each => html`${line(x(each), top, x(each), bottom, "grid")}<text x="${x(each)}" y="${bottom + 18}"
      text-anchor="middle">${named(each)}</text>`)}
    ${wanted.map(each => each != null && low <= each && each <= high && (each < 1 || !chance) ? line(left, y(each), right, y(each), "decision") : "")}
    ${line(left, top, left, bottom, "axis")}${line(left, bottom, right, bottom, "axis")}${shapes}
    ${dots.map(([at, score, kind]) => at == null || score == null ? "" : html`<circle class="${kind}" cx="${x(at)}" cy="${y(score)}" r="7"/>`)}
    ${texts.map((each, at) => html`<rect class="tip" x="${x(values[at]) - 7}" y="${top}" width="14" height="${bottom - top}"><title>${each}${
      lines.map((scores, k) => scores[at] == null ? "" : `\n${chance ? `${(100 * scores[at]).toFixed(1)}%` : named(scores[at])} ${LINES[k]}`)}</title></rect>`)}
    <text class="title" x="${(left + right) / 2}" y="${height - 8}" text-anchor="middle">${curve.title}</text>
    <text class="title" x="4" y="13">${curve.score}</text></svg></figure>`;
}

// Round numbers between two ends.
function ticks(low, high, most = 6) {
  const raw = (high - low || 1) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(each => each * power).find(each => each >= raw * 0.999);
  const start = Math.ceil(low / step - 1e-9);
  return Array.from({length: Math.floor(high / step + 1e-9) - start + 1}, (_, at) => Number(((start + at) * step).toPrecision(12)));
}
