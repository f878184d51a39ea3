// The page's state, and what ties its parts together.
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const SHOWN_AT_FIRST = 48;
// The page opens on the communicating part if that is shorter than this share of the run.
const WORTH_A_ZOOM = 0.75;

const app = {
  activities: data.activities, limits: data.limits, path: true, nets: data.networks.map(decode), shown: [], panels: [], view: { from: 0, to: 1 }, full: 1,
  align: "time", measure: ALIGNMENTS.time,
  mode: "auto", palette: readPalette(), cross: null, selection: null, pending: false, byNode: false, messagesOf: 0,

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.drawNow());
  },
  drawNow() {
    this.pending = false;
    for (const panel of this.panels) drawPanel(panel);
    drawOverview();
    const { from, to } = this.view;
    const { text, span } = this.measure;
    const start = this.align === "time" ? moment(from, ticks(from, to, 100).step) : text(from);
    const where = to - from >= this.full ? "the whole run" : `${span(from, to)}${this.align === "time" ? ` of ${duration(this.full)}` : ""}, from ${start}`;
    byId("in-view").textContent = this.panels.length ? "In view: " + where : "Nothing to draw.";
  },
  overlays() {
    for (const panel of this.panels) drawOverlay(panel);
  },
  // Shows a span, kept inside the run and not shorter than can be seen.
  look(from, to) {
    const span = Math.max(Math.min(this.measure.least, this.full), Math.min(this.full, to - from));
    const start = Math.max(0, Math.min(this.full - span, from));
    this.view = { from: start, to: start + span };
    this.redraw();
    this.settle();
  },
  zoom(factor, around) {
    const { from, to } = this.view;
    const centre = around ?? (from + to) / 2;
    this.look(centre - (centre - from) * factor, centre + (to - centre) * factor);
  },
  pan(share) {
    const shift = (this.view.to - this.view.from) * share;
    this.look(this.view.from + shift, this.view.to + shift);
  },
  whole() {
    this.look(0, this.full);
  },
  // Selects a span, kept inside the run, for its statistics; an empty one ends the selection.
  select(one, other) {
    const [from, to] = [Math.min(one, other), Math.max(one, other)].map((time) => Math.max(0, Math.min(this.full, time)));
    this.selection = to > from ? { from, to } : null;
    showSelection(this);
    this.overlays();
  },
  // A span of positions in a network's own time.
  spanIn(net, { from, to }) {
    return [this.measure.time(net, from), this.measure.time(net, to)];
  },
  // Aligns the networks by another measure; the first keeps what it shows.
  alignBy(name) {
    const net = this.panels[0]?.net;
    const old = this.measure;
    [this.align, this.measure] = [name, ALIGNMENTS[name]];
    this.full = this.measure.whole(this.panels.map((panel) => panel.net));
    if (!net) return;
    const moved = (position) => this.measure.at(net, old.time(net, position));
    const { from, to } = this.view;
    const wasWhole = from === 0 && to >= old.whole(this.panels.map((panel) => panel.net));
    this.cross = null;
    this.look(...(wasWhole ? [0, this.full] : [moved(from), moved(to)]));
    if (this.selection) this.select(moved(this.selection.from), moved(this.selection.to));
  },
  zoomToSelection() {
    if (this.selection) this.look(this.selection.from, this.selection.to);
  },
  // From the first to the last communication of the networks shown, with a little room.
  communicating() {
    const spans = this.panels.map(({ net }) => net.busy && [this.measure.at(net, net.busy.from), this.measure.at(net, net.busy.to)]).filter(Boolean);
    if (!spans.length) return this.whole();
    const [from, to] = [Math.min(...spans.map((span) => span[0])), Math.max(...spans.map((span) => span[1]))];
    this.look(from - (to - from) * 0.02, to + (to - from) * 0.02);
  },
  // Writes the view into the address once it rests.
  settle() {
    clearTimeout(this.resting);
    this.resting = setTimeout(() => history.replaceState(null, "", addressOf(this)), 200);
  },
  tip(event, lines) {
    const tip = byId("tip");
    tip.hidden = !event;
    if (!event) return;
    tip.replaceChildren(...lines);
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16) + "px";
    tip.style.top = Math.max(4, event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18) + "px";
  },
  showMessage(net, one) {
    const index = this.nets.indexOf(net);
    if (!this.shown.includes(index)) show([...this.shown, index]);
    const margin = Math.max(20, (one.received - one.sent) * 0.6);
    this.look(this.measure.at(net, one.sent - margin), this.measure.at(net, one.received + margin));
    const panel = this.panels.find((candidate) => candidate.net === net);
    panel.scroll = panel.g.laneOf(one.src) * panel.g.lane - panel.g.height / 2;
    panel.hover = { message: one };
    panel.box.scrollIntoView({ block: "center", behavior: "smooth" });
  },
};

function addressOf({ shown, view, mode, align }) {
  const [from, to] = align === "time" ? [`${Math.round(view.from)}ns`, `${Math.round(view.to)}ns`] : [view.from, view.to].map((position) => +position.toFixed(9));
  return `#net=${shown.join(",")}${align === "time" ? "" : `&align=${align}`}&from=${from}&to=${to}&messages=${mode}`;
}

// Shows networks by index, one below another on one scale.
function show(indices) {
  app.shown = indices.filter((index) => app.nets[index]).sort((a, b) => a - b);
  app.panels = app.shown.map((index) => makePanel(app, app.nets[index]));
  app.full = app.measure.whole(app.shown.map((index) => app.nets[index]));
  byId("panels").replaceChildren(...app.panels.map((panel) => panel.box));
  [...byId("shown").children].forEach((chip, index) => chip.setAttribute("aria-pressed", app.shown.includes(index)));
  for (const panel of app.panels) panel.g = geometry(panel);
  byId("grouping").parentElement.hidden = !app.panels.some((panel) => hasNodes(panel.net));
  showSelection(app);
  app.redraw();
}

function toggle(index) {
  const wasWhole = app.view.from === 0 && app.view.to === app.full;
  const others = app.shown.filter((shown) => shown !== index);
  if (others.length === app.shown.length || others.length) show(others.length === app.shown.length ? [...others, index] : others);
  if (wasWhole) app.whole();
  else app.look(app.view.from, app.view.to);
}

// The first network in view at a glance, and the span in view.
function drawOverview() {
  const canvas = byId("overview");
  const net = app.panels[0]?.net;
  const width = canvas.clientWidth;
  const { context, ratio, w, h } = sized(canvas, width, 44);
  if (!net) return;
  const image = context.createImageData(w, h);
  const words = new Uint32Array(image.data.buffer);
  paintBox(words, w, 0, w, 0, h, app.palette.lane);
  const full = overviewEnd(net);
  const key = `${w} ${full} ${app.shown[0]}`;
  if (app.overview?.key !== key) app.overview = { key, shares: sharesOf(net.sources, { from: 0, to: full }, w, net.count) };
  for (let x = 0; x < w; x++) paintShares(words, w, x, 0, h, app.overview.shares, x * CODES, app.palette.pixels);
  context.putImageData(image, 0, 0);
  context.scale(ratio, ratio);
  const [x0, x1] = app.spanIn(net, app.view).map((time) => (time / full) * width);
  context.globalAlpha = 0.72;
  context.fillStyle = app.palette.card;
  context.fillRect(0, 0, x0, 44);
  context.fillRect(x1, 0, width - x1, 44);
  context.globalAlpha = 1;
  context.strokeStyle = app.palette.ink;
  context.lineWidth = 2;
  context.strokeRect(x0 + 1, 1, Math.max(2, x1 - x0 - 2), 42);
}

// Aligned by time all networks have one scale, else the one that is drawn has its own.
const overviewEnd = (net) => (app.align === "time" ? app.full : net.end);

// Dragging an edge of the span in view resizes it; dragging elsewhere moves it.
function listenToOverview() {
  const canvas = byId("overview");
  let drag = null;
  const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
  const position = (event) => {
    const net = app.panels[0].net;
    return app.measure.at(net, (place(event) / canvas.clientWidth) * overviewEnd(net));
  };
  canvas.addEventListener("pointerdown", (event) => {
    const { from, to } = app.view;
    const net = app.panels[0].net;
    const now = position(event);
    const [isFrom, isTo] = app.spanIn(net, app.view).map((time) => Math.abs(place(event) - (time / overviewEnd(net)) * canvas.clientWidth) < 7);
    drag = isFrom ? "from" : isTo ? "to" : "both";
    if (drag === "both" && (now < from || now > to)) app.look(now - (to - from) / 2, now + (to - from) / 2);
    canvas.setPointerCapture(event.pointerId);
    app.grip = position(event) - app.view.from;
  });
  canvas.addEventListener("pointermove", (event) => {
    const { from, to } = app.view;
    if (!drag) return;
    const now = position(event);
    if (drag === "from") app.look(Math.min(now, to - app.measure.least), to);
    if (drag === "to") app.look(from, Math.max(now, from + app.measure.least));
    if (drag === "both") app.look(now - app.grip, now - app.grip + to - from);
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (drag = null));
}

function sayWhatWasLeftOut() {
  const said = app.nets.flatMap(({ name, shares, intervals, messages, messages_left_out: others, steps_left_out: steps }) => [
    !shares ? "" : `${name}: instead of ${count(intervals)} intervals, this file contains the time of each activity in each ${duration(shares.bucket_ns)} of ${shares.ranks_per_lane > 1 ? `each ${shares.ranks_per_lane} ranks` : "each rank"}. Shares at every zoom level are sums of these times.`,
    others === 0 ? "" : `${name}: only the ${count(messages.n)} messages that are longest in flight can be shown one by one and searched, not the other ${count(others)}.`,
    steps === 0 ? "" : `${name}: the critical path has ${count(steps)} steps, too many to draw.`,
  ]).filter(Boolean);
  byId("left-out").textContent = said.length ? said.join(" ") + " Totals, curves, calls, sizes and the matrix include everything." : "Nothing was left out: this file contains every interval and every message of the replay.";
}

function readAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1).replace(/\+/g, "%2B"));
  const few = app.nets.reduce((sum, net) => sum + net.sources.length, 0) <= SHOWN_AT_FIRST;
  const indices = wanted.has("net") ? wanted.get("net").split(",").map(Number) : app.nets.map((_, index) => index).slice(0, few ? 3 : 1);
  const mode = wanted.get("messages");
  if ([...byId("arrows").options].some((option) => option.value === mode)) byId("arrows").value = app.mode = mode;
  byId("align").value = app.align = wanted.get("align") === "position" && app.nets.length > 1 ? "position" : "time";
  app.measure = ALIGNMENTS[app.align];
  show(indices);
  if (!app.shown.length) show([0]);
  const [from, to] = ["from", "to"].map((name) => (app.align === "time" ? readTime(wanted.get(name)) : parseFloat(wanted.get(name))));
  if (from >= 0 || to > 0) return app.look(from >= 0 ? from : 0, to > 0 ? to : app.full);
  app.communicating();
  if (app.view.to - app.view.from > WORTH_A_ZOOM * app.full) app.whole();
}

function start() {
  app.nets.forEach((net, index) => {
    byId("shown").append(element("button", { type: "button", textContent: net.name, onclick: () => toggle(index) }));
    byId("messages-network").append(element("option", { value: index, textContent: net.name }));
  });
  byId("messages").hidden = app.nets.length === 0;
  byId("messages-toolbar").hidden = byId("shown").hidden = app.nets.length < 2;
  byId("messages-network").onchange = (event) => showMessages(app, app.nets[(app.messagesOf = Number(event.target.value))]);
  byId("arrows").onchange = (event) => {
    app.mode = event.target.value;
    app.redraw();
    app.settle();
  };
  const isWhole = app.nets.every((net) => net.messages_left_out === 0);
  for (const net of app.nets) net.progress = progressOf(net, isWhole);
  byId("align").parentElement.hidden = app.nets.length < 2;
  byId("align").onchange = (event) => app.alignBy(event.target.value);
  byId("path").parentElement.hidden = !app.nets.some((net) => net.path.n);
  byId("path").onchange = (event) => {
    app.path = event.target.checked;
    app.redraw();
  };
  byId("grouping").onchange = (event) => {
    app.byNode = event.target.value === "node";
    for (const panel of app.panels) setLanes(panel);
    app.redraw();
  };
  byId("zoom-to").onclick = () => app.zoomToSelection();
  byId("unselect").onclick = () => app.select(0, 0);
  byId("zoom-in").onclick = () => app.zoom(0.5);
  byId("zoom-out").onclick = () => app.zoom(2);
  byId("busy").onclick = () => app.communicating();
  byId("reset").onclick = () => app.whole();
  listenToOverview();
  sayWhatWasLeftOut();
  readAddress();
  const everything = () => {
    app.palette = readPalette();
    app.drawNow();
    if (app.nets.length) showMessages(app, app.nets[app.messagesOf]);
    startDifference(app);
  };
  everything();
  addEventListener("resize", everything);
  addEventListener("hashchange", readAddress);
  addEventListener("beforeprint", everything);
  addEventListener("afterprint", everything);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", everything);
}

start();
// What the page knows, for those who look into it with the browser's console.
globalThis.flowcast = { app, sharesOf, svgOf };
