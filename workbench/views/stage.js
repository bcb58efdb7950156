// The stage of the explorer: a map to play, a histogram to brush and a table, drawn as SVG and HTML.
// What the two sides agree on stands in stage.py. Text of users enters the page as text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const ROWS = 300;                // of the table: more are counted, not listed
const DRAWN = 3000;              // notifications on the map: more make browsers slow
const PLAYS_MS = 30000;          // the whole span, at speed 1
const TELL_MS = 200;             // how often the kernel hears of the time while it plays
const JUST = 0.02;               // share of the span during which a notification is large

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function draw(tag, attributes = {}) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function titled(node, text) {
  const title = draw("title");
  title.textContent = text;
  node.append(title);
  return node;
}

const ICONS = {
  play: "M4 2v12l10-6z", pause: "M3 2h4v12H3zM9 2h4v12H9z", step: "M2 2v12l8-6zM11 2h3v12h-3z", back: "M14 2v12L6 8zM2 2h3v12H2z",
};
function icon(name) {                                      // drawn: fonts lack these signs
  const node = draw("svg", { class: "wb-icon", viewBox: "0 0 16 16", "aria-hidden": "true" });
  node.append(draw("path", { d: ICONS[name] }));
  return node;
}

const count = (n) => n.toLocaleString("en");

function floats(view, width) {
  if (!view || !view.byteLength) return [];
  const copy = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
  const flat = new Float64Array(copy), rows = [];
  for (let i = 0; i < flat.length; i += width) rows.push(flat.subarray(i, i + width));
  return rows;
}

function render({ model, el }) {
  let about, told, pairs, tracks, marks, view, fitted, frame = null, last = 0, said = 0, adding = false;

  // -- the parts of the page ---------------------------------------------------------------------------
  const root = make("div", { class: "wb-stage" });
  const back = make("button", { title: "to the notification before", "aria-label": "step back" }, icon("back"));
  const play = make("button", { title: "play or pause" });
  const next = make("button", { title: "to the next notification", "aria-label": "step" }, icon("step"));
  const slider = make("input", { type: "range", "aria-label": "time", min: 0, max: 1000, step: 1 });
  const clock = make("span", { class: "wb-clock" });
  const speed = make("select", { "aria-label": "speed" });
  for (const times of [0.25, 0.5, 1, 2, 4]) speed.append(make("option", { value: times }, `${times}×`));
  const switches = make("span", { class: "wb-bar", role: "group", "aria-label": "layers" });
  const closer = make("button", { "aria-label": "zoom in", title: "zoom in" }, "+");
  const wider = make("button", { "aria-label": "zoom out", title: "zoom out" }, "−");
  const whole = make("button", { title: "show everything" }, "Fit");
  const add = make("button", { "aria-pressed": "false", title: "then click on the map, or press Enter on it" },
    "Add a place");
  const map = draw("svg", { class: "wb-map", role: "group", tabindex: 0, "aria-label": "map" });
  const histogram = draw("svg", { class: "wb-histogram", role: "group", preserveAspectRatio: "none",
    viewBox: "0 0 1000 84", "aria-label": "notifications over time" });
  const all = make("button", {}, "Whole time");
  const brushed = make("span", {});
  const notes = make("div", {});
  const list = make("div", { class: "wb-list" });
  const why = make("div", { class: "wb-why", role: "status", "aria-label": "explanation", tabindex: 0 });
  root.append(
    make("div", { class: "wb-bar" }, back, play, next, slider, clock, speed),
    make("div", { class: "wb-bar" }, switches, closer, wider, whole, add),
    make("div", { class: "wb-scene" }, map, why),
    make("p", { class: "wb-hint" }, "Drag a place, or move it with the arrow keys and Enter, and the service runs again."
      + " Drag across the bars to look at a part of the time."),
    notes, histogram, make("div", { class: "wb-bar" }, all, brushed), list);
  el.append(root);

  // -- what is where and when ----------------------------------------------------------------------------
  const text = (at) => {
    if (about.integers) return `t = ${Math.floor(at)}`;
    const format = { timeZone: about.zone, dateStyle: "short", timeStyle: "medium" };
    return new Intl.DateTimeFormat("sv-SE", format).format(new Date(at));
  };
  const inWindow = (at) => {
    const w = model.get("window");
    return w.length !== 2 || (w[0] <= at && at <= w[1]);
  };
  const isOf = (party, client) => party.table === client.table && party.key === client.key;
  const concerns = (row) => {
    const client = model.get("client");
    return !client.table || isOf(about.parties.publication[row[2]], client)
      || isOf(about.parties.subscription[row[3]], client);
  };
  const listed = () => told.map((row, n) => [row, n]).filter(([row]) => inWindow(row[0]) && concerns(row));

  function position(mobile, at) {
    const rows = tracks.get(mobile);
    if (!rows || rows[0][1] > at) return null;
    let low = 0, high = rows.length;                       // the last fix that is not later
    while (high - low > 1) { const mid = (low + high) >> 1; if (rows[mid][1] <= at) low = mid; else high = mid; }
    const row = rows[low];
    return at < row[2] || row[2] >= about.span[1] ? [row[3], row[4]] : null;
  }
  function whereIs(party, at) {
    if (party.table === "places") {
      const place = marks.places.get(party.key);
      return place ? [place.place.x, place.place.y] : null;
    }
    return party.table === "fixes" ? position(about.mobiles.indexOf(party.key), at) : null;
  }

  // -- the map -------------------------------------------------------------------------------------------
  function fit() {
    const [west, south, east, north] = about.bounds;
    const width = Math.max(east - west, 1), height = Math.max(north - south, 1);
    view = { x: (west + east) / 2, y: (south + north) / 2, width: width * 1.06, height: height * 1.06 };
    fitted = about.subject;
    frameMap();
  }
  function unit() {                                        // metres of a pixel
    const box = map.getBoundingClientRect();
    return Math.max(view.width / Math.max(box.width, 50), view.height / Math.max(box.height, 50));
  }
  function frameMap() {
    map.setAttribute("viewBox", `${view.x - view.width / 2} ${-view.y - view.height / 2} ${view.width} ${view.height}`);
    const px = unit();
    for (const node of map.querySelectorAll("[data-px]")) node.setAttribute("r", node.dataset.px * px);
    if (marks) for (const { reach, place } of marks.places.values()) if (reach) reach.setAttribute("r", place.reach);
  }
  function zoom(factor) { view.width *= factor; view.height *= factor; frameMap(); }
  function metres(event) {                                 // a point of the page as metres of the stage
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
    return [point.x, -point.y];
  }
  const path = (points) => points.map(([x, y], n) => `${n ? "L" : "M"}${x} ${-y}`).join("");

  function build() {
    about = model.get("about");
    if (!about.span) return;
    const focused = root.getRootNode().activeElement, key = focused && focused.dataset && focused.dataset.key;
    told = floats(model.get("told"), 7);
    pairs = floats(model.get("pairs"), 4);
    tracks = new Map();
    for (const row of floats(model.get("tracks"), 5)) {
      if (!tracks.has(row[0])) tracks.set(row[0], []);
      tracks.get(row[0]).push(row);
    }
    const groups = {};
    map.replaceChildren();
    for (const name of ["base", "tracks", "pairs", "told", "places", "now"]) {
      groups[name] = draw("g", { class: `wb-layer-${name}` });
      map.append(groups[name]);
    }
    marks = { groups, places: new Map(), mobiles: [], told: [], pairs: [] };
    const colour = about.colours;
    for (const line of about.base) groups.base.append(draw("path", { d: path(line), fill: "none", stroke: "#d8d4c8" }));
    for (const [mobile, rows] of tracks) {
      groups.tracks.append(draw("path", { d: path(rows.map((row) => [row[3], row[4]])), fill: "none",
        stroke: colour.mobile, "stroke-opacity": 0.3 }));
      const mark = draw("circle", { class: "wb-mobile", "data-px": 6, fill: colour.mobile, stroke: "#fff",
        tabindex: 0, role: "button", "aria-label": `mobile ${about.mobiles[mobile]}` });
      onActivate(titled(mark, about.mobiles[mobile]), () => choose("fixes", about.mobiles[mobile]));
      groups.now.append(mark);
      marks.mobiles[mobile] = mark;
    }
    for (const place of about.places) groups.places.append(placeMark(place));
    buildSwitches();
    if (fitted !== about.subject) fit(); else frameMap();  // another run over the same data leaves the map as it is
    buildHistogram();
    drawTold();
    buildTable();
    showWhy();
    tick();
    if (key !== undefined && marks.places.has(key)) marks.places.get(key).dot.focus();   // a keyboard goes on from there
  }

  function drawTold() {                                    // those of the window, as many as can be drawn
    const chosen = told.map((row, n) => [row, n]).filter(([row]) => inWindow(row[0]));
    const colour = about.colours, r = 4 * unit();
    marks.groups.told.replaceChildren();
    marks.told = chosen.slice(0, DRAWN).map(([row, n]) => {
      const match = row[1] === 1, publication = about.parties.publication[row[2]].label;
      const mark = draw("circle", { class: `wb-told wb-${match ? "match" : "unmatch"}${row[6] ? " wb-new" : ""}`,
        cx: row[4], cy: -row[5], r, "data-px": 4, fill: match ? colour.match : "#fff",
        stroke: row[6] ? "#111" : match ? "#fff" : colour.unmatch, "stroke-width": row[6] || !match ? 2 : 1 });
      if (Number.isNaN(row[4])) mark.style.display = "none";
      onActivate(titled(mark, `${match ? "match" : "unmatch"}: ${publication} → `
        + `${about.parties.subscription[row[3]].label}, ${text(row[0])}`), () => select(n));
      marks.groups.told.append(mark);
      return [n, mark];
    });
    const left = chosen.length > DRAWN
      ? [`the map shows the first ${count(DRAWN)} notifications of the time that is looked at`] : [];
    notes.replaceChildren(...[...about.notes, ...left].map((note) => make("p", { class: "wb-note" }, note)));
  }

  function onActivate(node, action) {
    node.addEventListener("click", action);
    node.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); action(); }
    });
  }

  function placeMark(place) {
    const group = draw("g", {}), colour = about.colours.place;
    let reach = null;
    if (place.rings) {
      group.append(draw("path", { d: place.rings.map(path).join(""), fill: colour, "fill-opacity": 0.2,
        "fill-rule": "evenodd", stroke: colour }));
    } else if (place.reach > 0) {
      reach = draw("circle", { r: place.reach, fill: colour, "fill-opacity": 0.07, stroke: colour,
        "stroke-opacity": 0.5, "pointer-events": "none" });
      group.append(reach);
    }
    const movable = !place.rings;
    const dot = draw("circle", { class: `wb-place${movable ? " wb-movable" : ""}`, "data-px": 7, fill: colour,
      stroke: "#fff", tabindex: 0, role: "button", "data-key": place.key,
      "aria-label": `place ${place.label}${movable ? ", arrow keys move it, Enter runs again" : ""}` });
    titled(dot, place.label);
    group.append(dot);
    const mark = { place, dot, reach, put() {
      for (const node of [dot, reach]) if (node) { node.setAttribute("cx", place.x); node.setAttribute("cy", -place.y); }
    } };
    marks.places.set(place.key, mark);
    mark.put();
    let moved = false;
    const done = () => { if (moved) { moved = false; tell({ edit: { do: "move", key: place.key, x: place.x, y: place.y } }); } };
    dot.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      let far = 0;
      const start = [event.clientX, event.clientY];
      dot.setPointerCapture(event.pointerId);
      const drag = (e) => {
        far = Math.max(far, Math.hypot(e.clientX - start[0], e.clientY - start[1]));
        if (!movable || far < 3) return;
        [place.x, place.y] = metres(e);
        moved = true;
        mark.put();
        tick();
      };
      const drop = () => {
        dot.removeEventListener("pointermove", drag);
        dot.removeEventListener("pointerup", drop);
        if (moved) done(); else choose("places", place.key);
      };
      dot.addEventListener("pointermove", drag);
      dot.addEventListener("pointerup", drop);
    });
    dot.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (way && movable) {
        event.preventDefault();
        event.stopPropagation();
        const step = 10 * unit();
        place.x += way[0] * step;
        place.y += way[1] * step;
        moved = true;
        mark.put();
        tick();
      } else if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        event.stopPropagation();
        if (moved) done(); else choose("places", place.key);
      }
    });
    dot.addEventListener("blur", done);
    return group;
  }

  function addAt(x, y) {
    adding = false;
    add.setAttribute("aria-pressed", "false");
    map.classList.remove("wb-adding");
    tell({ edit: { do: "add", x, y } });
  }

  map.addEventListener("pointerdown", (event) => {
    if (adding) { addAt(...metres(event)); return; }
    if (event.target.closest(".wb-mobile, .wb-told")) return;
    let from = metres(event);
    const drag = (e) => {
      const to = metres(e);
      view.x += from[0] - to[0];
      view.y += from[1] - to[1];
      frameMap();
    };
    const drop = () => { map.removeEventListener("pointermove", drag); window.removeEventListener("pointerup", drop); };
    map.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop);
  });
  map.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;          // the page scrolls; with Ctrl the map is zoomed
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15);
  }, { passive: false });
  map.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (event.target !== map) return;
    if (way) {
      event.preventDefault();
      view.x += way[0] * view.width / 20;
      view.y += way[1] * view.height / 20;
      frameMap();
    } else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1 / 1.3 : 1.3);
    else if (event.key === "Enter" && adding) addAt(view.x, view.y);
  });

  // -- layers --------------------------------------------------------------------------------------------
  function swatches(layer) {                                // the legend: what is drawn how
    const { place, mobile, match, unmatch } = about.colours;
    const shown = { places: [[place, place]], tracks: [[mobile, mobile]], pairs: [[match, match]],
      told: [[match, match, "match"], [unmatch, "#fff", "unmatch"]] }[layer] || [];
    return shown.map(([edge, fill, title]) => make("span", { class: layer === "pairs" ? "wb-swatch wb-line" : "wb-swatch",
      style: `border-color: ${edge}; background: ${fill}`, ...(title ? { title } : {}) }));
  }
  function buildSwitches() {
    marks.boxes = {};
    switches.replaceChildren(...Object.entries(about.layers).map(([name, label]) => {
      const box = marks.boxes[name] = make("input", { type: "checkbox" });
      box.addEventListener("change", () => tell({ layers: { ...model.get("layers"), [name]: box.checked } }));
      return make("label", {}, box, ...swatches(name), label);
    }));
    showLayers();
  }
  function showLayers() {
    const on = model.get("layers");
    for (const [name, box] of Object.entries(marks.boxes)) {
      box.checked = on[name] !== false;
      marks.groups[name].style.display = box.checked ? "" : "none";
    }
  }

  // -- the histogram -------------------------------------------------------------------------------------
  const share = (at) => 1000 * (at - about.span[0]) / Math.max(about.span[1] - about.span[0], 1e-9);
  const instant = (x) => about.span[0] + Math.min(Math.max(x, 0), 1000) / 1000 * (about.span[1] - about.span[0]);

  function buildHistogram() {
    const counts = about.bins, bins = counts.length;
    const most = Math.max(1, ...counts.flat());
    histogram.replaceChildren();
    counts.forEach(([matches, unmatches], n) => {
      const x = 1000 * n / bins + 1, width = 1000 / bins - 2;
      const bar = (many, y, height, fill, kind) => many && histogram.append(titled(
        draw("rect", { x, y, width, height, fill }), `${count(many)} ${kind} from ${text(instant(1000 * n / bins))}`));
      bar(matches, 40 - 38 * matches / most, 38 * matches / most, about.colours.match, "match");
      bar(unmatches, 44, 38 * unmatches / most, about.colours.unmatch, "unmatch");
    });
    histogram.append(draw("line", { x1: 0, x2: 1000, y1: 42, y2: 42, stroke: "#999" }));
    marks.needle = draw("line", { y1: 0, y2: 84, stroke: "#111", "stroke-width": 1.5 });
    marks.brush = draw("rect", { class: "wb-brush", y: 0, height: 84, fill: "#0b57a4", "fill-opacity": 0.15,
      stroke: "#0b57a4", "pointer-events": "none" });
    histogram.append(marks.brush, marks.needle);
    marks.handles = [0, 1].map((side) => {
      const handle = draw("rect", { class: "wb-handle", y: 24, width: 8, height: 36, rx: 2, fill: "#0b57a4", tabindex: 0,
        role: "slider", "aria-label": `${side ? "end" : "begin"} of the time that is looked at`,
        "aria-valuemin": 0, "aria-valuemax": 1000 });
      handle.addEventListener("keydown", (event) => {
        const way = { ArrowLeft: -10, ArrowRight: 10, ArrowDown: -10, ArrowUp: 10, Home: -1000, End: 1000 }[event.key];
        if (!way) return;
        event.preventDefault();
        const ends = edges();
        ends[side] = Math.min(1000, Math.max(0, ends[side] + way));
        if (ends[0] < ends[1]) brush(...ends);
      });
      handle.addEventListener("pointerdown", (event) => { event.stopPropagation(); dragBrush(event, edges()[1 - side]); });
      histogram.append(handle);
      return handle;
    });
    showWindow();
  }
  const edges = () => { const w = model.get("window"); return w.length === 2 ? w.map(share) : [0, 1000]; };
  const shareAt = (event) => {
    const box = histogram.getBoundingClientRect();
    return Math.min(1000, Math.max(0, 1000 * (event.clientX - box.left) / box.width));
  };
  function brush(a, b) { tell({ window: a <= 0 && b >= 1000 ? [] : [instant(a), instant(b)] }); }
  function dragBrush(event, fixed) {
    let end = shareAt(event);
    const begin = fixed === undefined ? end : fixed;
    const drag = (e) => { end = shareAt(e); if (Math.abs(end - begin) > 5) brush(Math.min(begin, end), Math.max(begin, end)); };
    const drop = () => {
      window.removeEventListener("pointermove", drag);
      window.removeEventListener("pointerup", drop);
      if (Math.abs(end - begin) <= 5 && fixed === undefined) goTo(instant(end));
    };
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", drop);
  }
  histogram.addEventListener("pointerdown", (event) => dragBrush(event));
  function showWindow() {
    const [a, b] = edges(), chosen = model.get("window").length === 2;
    marks.brush.setAttribute("x", a);
    marks.brush.setAttribute("width", Math.max(b - a, 1));
    marks.brush.style.display = chosen ? "" : "none";
    marks.handles.forEach((handle, side) => {
      const at = [a, b][side];
      handle.setAttribute("x", Math.min(992, Math.max(0, at - 4)));
      handle.setAttribute("aria-valuenow", Math.round(at));
      handle.setAttribute("aria-valuetext", text(instant(at)));
    });
    all.disabled = !chosen;
    brushed.textContent = `${text(instant(a))} to ${text(instant(b))} ${about.zone}: `
      + `${count(told.filter((row) => inWindow(row[0])).length)} notifications`;
  }

  // -- the table -----------------------------------------------------------------------------------------
  function buildTable() {
    const rows = listed(), client = model.get("client");
    const of = client.table ? ` of ${client.table === "places" ? "place" : "mobile"} ${client.key}` : "";
    const more = rows.length > ROWS ? `, the first ${ROWS} are listed` : "";
    const caption = make("caption", {}, `${count(rows.length)} notifications${of}${more}`);
    if (client.table) {
      const everybody = make("button", {}, "Everybody");
      everybody.addEventListener("click", () => tell({ client: {} }));
      caption.append(" ", everybody);
    }
    const body = make("tbody", {});
    marks.rows = new Map();
    for (const [row, n] of rows.slice(0, ROWS)) {
      const line = make("tr", { tabindex: 0, "data-n": n },
        make("td", {}, text(row[0])), make("td", {}, `${row[6] ? "new: " : ""}${row[1] === 1 ? "match" : "unmatch"}`),
        make("td", {}, about.parties.publication[row[2]].label), make("td", {}, about.parties.subscription[row[3]].label));
      onActivate(line, () => select(n));
      line.addEventListener("keydown", (event) => {
        const to = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling }[event.key];
        if (to) { event.preventDefault(); to.focus(); }
      });
      marks.rows.set(n, line);
      body.append(line);
    }
    const head = make("tr", {}, ...["time", "kind", "publication", "subscription"].map((name) => make("th", { scope: "col" }, name)));
    list.replaceChildren(make("table", {}, caption, make("thead", {}, head), body));
    showSelected();
  }
  function showSelected() {
    const n = model.get("selected");
    for (const [row, line] of marks.rows) line.setAttribute("aria-selected", row === n ? "true" : "false");
    const line = marks.rows.get(n);
    if (line) list.scrollTop = Math.max(0, line.offsetTop - list.clientHeight / 2);
  }
  function showWhy() {
    const { head = "", reasons = [] } = model.get("why");
    why.replaceChildren(make("p", { class: "wb-head" },
      head || (reasons.length ? "" : "Select a notification, a place or a mobile, and read why.")));
    for (const reason of reasons) {
      why.append(make("div", { class: "wb-reason" }, ...reason.split("\n").map((text) => {
        const said = text.trimStart(), mark = { "✓": "wb-yes", "✗": "wb-no" }[said[0]];
        const line = make("div", { style: `margin-left: ${(text.length - said.length) / 2}em` });
        line.append(...(mark ? [make("span", { class: mark }, said[0]), said.slice(1)] : [said]));
        return line;
      })));
    }
    why.scrollTop = 0;
    if (reasons.length) why.scrollIntoView({ block: "nearest" });
  }
  function select(n) { stop(); tell({ selected: n, time: told[n][0] }); }
  function choose(table, key) { tell({ client: { table, key } }); }

  // -- time ----------------------------------------------------------------------------------------------
  function tell(changes) {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  }
  function goTo(at) { tell({ time: Math.min(Math.max(at, about.span[0]), about.span[1]) }); }
  function stop() { if (model.get("playing")) tell({ playing: false }); }

  function tick() {                                        // everything that depends on the time
    if (!about || !about.span) return;
    const at = model.get("time"), on = model.get("layers"), client = model.get("client"), px = unit();
    clock.textContent = `${text(at)} ${about.zone}`.trim();
    slider.value = share(at);
    slider.setAttribute("aria-valuetext", clock.textContent);
    marks.needle.setAttribute("x1", share(at));
    marks.needle.setAttribute("x2", share(at));
    for (const [mobile] of tracks) {
      const here = position(mobile, at), mark = marks.mobiles[mobile];
      mark.style.display = here ? "" : "none";
      mark.setAttribute("stroke", client.table === "fixes" && client.key === about.mobiles[mobile] ? "#111" : "#fff");
      if (here) { mark.setAttribute("cx", here[0]); mark.setAttribute("cy", -here[1]); }
    }
    for (const [key, mark] of marks.places) {
      mark.dot.setAttribute("stroke", client.table === "places" && client.key === key ? "#111" : "#fff");
    }
    const just = JUST * (about.span[1] - about.span[0]), n = model.get("selected");
    for (const [i, mark] of marks.told) {
      const row = told[i], age = at - row[0];
      const size = i === n ? 9 : age >= 0 && age < just ? 8 : 4;
      mark.style.display = !Number.isNaN(row[4]) && age >= 0 && inWindow(row[0]) && concerns(row) ? "" : "none";
      if (Number(mark.dataset.px) !== size) { mark.dataset.px = size; mark.setAttribute("r", size * px); }
    }
    for (const [i, line] of marks.rows) line.classList.toggle("wb-later", told[i][0] > at);
    marks.groups.pairs.replaceChildren();
    if (on.pairs === false) return;
    for (const [began, ended, publication, subscription] of pairs) {
      if (began > at || ended <= at) continue;
      const a = whereIs(about.parties.publication[publication], at);
      const b = whereIs(about.parties.subscription[subscription], at);
      if (a && b) marks.groups.pairs.append(draw("line", { class: "wb-pair", x1: a[0], y1: -a[1], x2: b[0], y2: -b[1],
        stroke: about.colours.match, "stroke-width": 2.5 }));
    }
  }

  function run(now) {
    if (!model.get("playing")) { frame = null; return; }
    const [first, end] = model.get("window").length === 2 ? model.get("window") : about.span;
    const passed = last ? now - last : 0, before = model.get("time");
    const from = before < first || before >= end ? first : before;
    const at = Math.min(end, from + passed * model.get("speed") * (about.span[1] - about.span[0]) / PLAYS_MS);
    last = now;
    model.set("time", at);
    if (at >= end) model.set("playing", false);
    if (now - said > TELL_MS || at >= end) { said = now; model.save_changes(); }
    frame = requestAnimationFrame(run);
  }
  function showPlaying() {
    const playing = model.get("playing");
    play.replaceChildren(icon(playing ? "pause" : "play"));
    play.setAttribute("aria-label", playing ? "pause" : "play");
    if (playing && frame === null) { last = 0; frame = requestAnimationFrame(run); }
  }
  function step(way) {
    stop();
    const at = model.get("time"), instants = listed().map(([row]) => row[0]);
    const found = way > 0 ? instants.find((t) => t > at) : instants.findLast((t) => t < at);
    goTo(found !== undefined ? found : about.span[way > 0 ? 1 : 0]);
  }

  play.addEventListener("click", () => tell({ playing: !model.get("playing") }));
  back.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  slider.addEventListener("input", () => { stop(); goTo(instant(Number(slider.value))); });
  speed.addEventListener("change", () => tell({ speed: Number(speed.value) }));
  closer.addEventListener("click", () => zoom(1 / 1.3));
  wider.addEventListener("click", () => zoom(1.3));
  whole.addEventListener("click", fit);
  all.addEventListener("click", () => tell({ window: [] }));
  add.addEventListener("click", () => {
    adding = !adding;
    add.setAttribute("aria-pressed", adding ? "true" : "false");
    map.classList.toggle("wb-adding", adding);
    if (adding) map.focus();
  });

  // -- what the kernel says ------------------------------------------------------------------------------
  const ready = (then) => () => { if (marks) then(); };
  const heard = {
    "change:revision": build,
    "change:time": ready(tick),
    "change:playing": showPlaying,
    "change:speed": () => { speed.value = model.get("speed"); },
    "change:layers": ready(() => { showLayers(); tick(); }),
    "change:window": ready(() => { showWindow(); if (told.length > DRAWN) drawTold(); buildTable(); tick(); }),
    "change:client": ready(() => { buildTable(); tick(); }),
    "change:why": ready(showWhy),
    "change:selected": ready(() => { showSelected(); tick(); }),
  };
  for (const [event, then] of Object.entries(heard)) model.on(event, then);
  const resized = new ResizeObserver(() => { if (view) frameMap(); });
  resized.observe(map);
  speed.value = model.get("speed");
  showPlaying();
  build();
  return () => {
    for (const [event, then] of Object.entries(heard)) model.off(event, then);
    resized.disconnect();
    if (frame !== null) cancelAnimationFrame(frame);
  };
}

export default { render };
