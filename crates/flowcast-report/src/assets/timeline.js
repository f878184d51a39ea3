// One network's timeline: an axis, a lane for each rank, arrows.
const GUTTER = 58;
// The axis' title and its ticks.
const AXIS = 40;

function makePanel(app, net) {
  const base = element("canvas");
  const overlay = element("canvas");
  const drawing = element("div", { className: "drawing", tabIndex: 0 }, base, overlay);
  drawing.setAttribute("role", "group");
  drawing.setAttribute("aria-label", `Timeline on ${net.name}: arrow keys move, plus and minus zoom, s selects what is in view`);
  const note = element("span", { className: "quiet" });
  const heading = element("h3", {}, net.name, element("span", { className: "quiet", textContent: `${duration(net.end)} on ${net.count} ranks` }), note, pictureButtons(() => panel));
  const box = element("div", { className: "panel" }, heading, drawing);
  base.setAttribute("role", "img");
  base.setAttribute("aria-label", `Timeline of ${net.count} ranks on ${net.name}, ${duration(net.end)} long; the tables above and below contain the same data`);
  const panel = { app, net, base, overlay, drawing, note, box, scroll: 0, drawn: [], hover: null };
  setLanes(panel);
  listen(panel);
  return panel;
}

// Chooses the lanes: ranks, or nodes if asked for and known.
function setLanes(panel) {
  panel.lanes = lanesOf(panel.net, panel.app.byNode && hasNodes(panel.net));
  panel.laneOf = new Map();
  panel.lanes.forEach((lane, index) => panel.laneOf.set(lane.node, index));
  panel.byNode = panel.app.byNode && hasNodes(panel.net);
  panel.perLane = panel.net.shares ? panel.net.shares.ranks_per_lane : 1;
}

// Sizes in CSS pixels.
function geometry(panel) {
  const most = panel.app.panels.length > 1 ? 400 : 560;
  const ranks = Math.max(1, panel.lanes.length);
  const lane = Math.max(5, Math.min(ranks > 8 ? 30 : 46, Math.floor(most / ranks)));
  const height = Math.min(most, lane * ranks);
  const width = Math.max(40, panel.drawing.clientWidth - GUTTER);
  panel.scroll = Math.max(0, Math.min(panel.scroll, lane * ranks - height));
  const { net } = panel;
  const { view, measure } = panel.app;
  const from = measure.time(net, view.from);
  const to = Math.max(from + 10, measure.time(net, view.to));
  const laneOf = (rank) => (panel.byNode ? panel.laneOf.get(panel.net.nodes[rank]) : Math.floor(rank / panel.perLane));
  return {
    lane, height, width, whole: lane * ranks, from, to,
    x: (time) => GUTTER + ((time - from) / (to - from)) * width,
    laneOf,
    y: (rank) => AXIS + (laneOf(rank) + 0.5) * lane - panel.scroll,
    middle: (index) => AXIS + (index + 0.5) * lane - panel.scroll,
    time: (x) => from + ((x - GUTTER) / width) * (to - from),
    lane_at: (y) => Math.floor((y - AXIS + panel.scroll) / lane),
  };
}

function drawPanel(panel) {
  const g = (panel.g = geometry(panel));
  const { context, ratio, w, h } = sized(panel.base, GUTTER + g.width, AXIS + g.height + 2);
  paintLanes(panel, g, context, ratio, w, h);
  context.scale(ratio, ratio);
  drawAxis(panel, g, context);
  drawLabels(panel, g, context);
  drawEnd(panel, g, context);
  drawMessages(panel, g, context);
  drawScrollbar(panel, g, context);
  drawOverlay(panel);
}

function paintLanes(panel, g, context, ratio, w, h) {
  const image = context.createImageData(w, h);
  const words = new Uint32Array(image.data.buffer);
  const x = Math.round(GUTTER * ratio);
  const bins = new Float64Array((w - x + 1) * CODES);
  const [top, bottom] = [Math.round(AXIS * ratio), Math.min(h, Math.round((AXIS + g.height) * ratio))];
  const between = g.lane >= 8 ? 2 : 1;
  const gap = Math.max(1, Math.round(ratio));
  panel.lanes.forEach((lane, index) => {
    const y = AXIS + index * g.lane - panel.scroll;
    const [y0, y1] = [Math.max(top, Math.round(y * ratio)), Math.min(bottom, Math.round((y + g.lane - between) * ratio))];
    if (y1 > y0) paintLane(words, w, x, w - x, y0, y1, lane, g, panel.app.palette, bins, gap);
  });
  context.putImageData(image, 0, 0);
}

function drawAxis(panel, g, context) {
  const { palette } = panel.app;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = palette.quiet;
  context.strokeStyle = palette.ink;
  context.lineWidth = 1;
  for (const { time, text } of ticksOf(panel.app, panel.net, g)) {
    const x = Math.round(g.x(time)) + 0.5;
    context.globalAlpha = 0.13;
    context.beginPath();
    context.moveTo(x, AXIS - 5);
    context.lineTo(x, AXIS + g.height);
    context.stroke();
    context.globalAlpha = 1;
    context.textAlign = x > GUTTER + g.width - 40 ? "right" : x < GUTTER + 20 ? "left" : "center";
    context.fillText(text, x, AXIS - 14);
  }
  context.textAlign = "left";
  for (const { text, x } of axisTitles(panel)) context.fillText(text, x, 8);
}

// Above the ticks and the names of the lanes.
const axisTitles = ({ app, byNode }) => [{ text: app.measure.title, x: GUTTER }, { text: byNode ? "node" : "rank", x: 0 }];

// The part of its own time that a panel shows if it is not aligned by time.
function ownTime({ app }, g) {
  return app.align === "time" ? "" : `shows ${duration(g.to - g.from)} from ${moment(g.from, (g.to - g.from) / 100)}`;
}


function drawLabels(panel, g, context) {
  const every = [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256].find((n) => n * g.lane >= 14) || 512;
  context.fillStyle = panel.app.palette.quiet;
  context.textAlign = "right";
  for (let index = 0; index < panel.lanes.length; index += every) {
    const y = g.middle(index);
    if (y < AXIS || y > AXIS + g.height) continue;
    const { name, short } = panel.lanes[index];
    context.fillText(g.lane >= 14 && name.length < 9 ? name : short, GUTTER - 8, y - 1);
  }
}

// Where the run ends, if another in view takes longer.
function drawEnd(panel, g, context) {
  const x = g.x(panel.net.end);
  if (x > GUTTER + g.width - 2) return;
  const left = Math.max(GUTTER, x);
  context.fillStyle = panel.app.palette.card;
  context.fillRect(left + 1, AXIS, GUTTER + g.width - left, g.height + 2);
  context.fillStyle = panel.app.palette.ink;
  if (x >= GUTTER) context.fillRect(x, AXIS - 4, 1.5, g.height + 4);
  context.textAlign = "left";
  context.font = "600 13px system-ui, sans-serif";
  const text = `${x < GUTTER ? "ended" : "ends"} at ${duration(panel.net.end)}`;
  if (left < GUTTER + g.width - 110) context.fillText(text, left + 10, AXIS + g.height / 2);
}

function drawMessages(panel, g, context) {
  const { palette, mode } = panel.app;
  const { found, note } = chosenMessages(panel.net, g, mode);
  panel.drawn = found;
  const pathNote = panel.app.path ? pathOver(panel, g, context) : "";
  panel.note.textContent = [ownTime(panel, g), lanesInView(panel, g), bucketNote(panel, g), note, pathNote].filter(Boolean).join(" · ");
  context.save();
  clipToLanes(g, context);
  context.globalAlpha = found.length > 120 ? 0.75 : 0.9;
  for (const i of found) drawArrow(context, message(panel.net, i), g, palette.ink, palette.card, found.length > 60 ? 1 : 1.4);
  context.restore();
}

function pathOver(panel, g, context) {
  context.save();
  clipToLanes(g, context);
  const note = drawPath(context, panel.net.path, g, panel.app.palette);
  context.restore();
  return note;
}

function lanesInView(panel, g) {
  if (g.whole <= g.height) return "";
  const lane = (y) => panel.lanes[Math.min(panel.lanes.length - 1, g.lane_at(y))].name;
  return `${lane(AXIS)} to ${lane(AXIS + g.height - 1)} in view; the arrow keys scroll to the others`;
}

// Below the width of a bucket nothing is known.
function bucketNote(panel, g) {
  const { shares } = panel.net;
  const pixels = shares ? (shares.bucket_ns / (g.to - g.from)) * g.width : 0;
  return pixels > 3 ? `shares are known for each ${duration(shares.bucket_ns)}` : "";
}

function clipToLanes(g, context) {
  context.beginPath();
  context.rect(GUTTER, AXIS, g.width, g.height);
  context.clip();
}

function drawScrollbar(panel, g, context) {
  if (g.whole <= g.height) return;
  context.globalAlpha = 0.5;
  context.fillStyle = panel.app.palette.ink;
  context.fillRect(GUTTER + g.width - 6, AXIS + (panel.scroll / g.whole) * g.height, 4, Math.max(12, (g.height / g.whole) * g.height));
  context.globalAlpha = 1;
}

// Crosshair, the interval or message under the pointer, and the span being marked.
function drawOverlay(panel) {
  const { g, app, hover } = panel;
  const { context, ratio } = sized(panel.overlay, GUTTER + g.width, AXIS + g.height + 2);
  context.scale(ratio, ratio);
  clipToLanes(g, context);
  if (app.selection) {
    const [from, to] = app.spanIn(panel.net, app.selection);
    context.fillStyle = app.palette.accent;
    context.globalAlpha = 0.22;
    context.fillRect(g.x(from), AXIS, g.x(to) - g.x(from), g.height);
    context.globalAlpha = 1;
    for (const time of [from, to]) context.fillRect(g.x(time) - 0.5, AXIS, 1.5, g.height);
  }
  if (app.cross !== null) {
    context.fillStyle = app.palette.ink;
    context.globalAlpha = 0.4;
    context.fillRect(g.x(app.measure.time(panel.net, app.cross)), AXIS, 1, g.height);
    context.globalAlpha = 1;
  }
  if (hover?.ends) for (const one of hover.ends) drawArrow(context, one, g, app.palette.ink, app.palette.card, 1.4);
  if (hover?.interval) outlineInterval(panel, g, context);
  if (hover?.message) drawArrow(context, hover.message, g, app.palette.ink, app.palette.card, 2.5);
}

function outlineInterval(panel, g, context) {
  const { interval, rank } = panel.hover;
  const x0 = Math.max(GUTTER - 5, g.x(interval.start));
  const x1 = Math.min(GUTTER + g.width + 5, g.x(interval.end));
  context.strokeStyle = panel.app.palette.ink;
  context.lineWidth = 2;
  context.strokeRect(x0, g.y(rank) - g.lane / 2, Math.max(2, x1 - x0), g.lane - 1);
}
