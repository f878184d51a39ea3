// Messages as arrows from the sender's lane to the receiver's.
const FEW = 250;
const LONGEST = 40;
const ALL = 20000;

// Which messages to draw in a view, and how many are in it.
function chosenMessages(net, view, mode) {
  if (mode === "none") return { found: [], note: "" };
  const { found, more } = messagesIn(net, view.from, view.to, mode === "auto" ? FEW : mode === "all" ? ALL : Infinity);
  if (mode === "auto") {
    return more ? { found: [], note: `more than ${FEW} messages in view: zoom in to see them` } : { found, note: shownNote(found.length) };
  }
  if (mode === "all") return { found, note: more ? `first ${count(ALL)} messages in view shown` : shownNote(found.length) };
  const { sent, received } = net.messages;
  const longest = found.sort((a, b) => received[b] - sent[b] - (received[a] - sent[a])).slice(0, LONGEST);
  return { found: longest, note: `${longest.length} of the messages in view shown` };
}

const shownNote = (n) => (n === 1 ? "1 message in view" : `${count(n)} messages in view`);

// The critical path as a line low in the lanes; draws nothing and says so when it would be a scribble.
const STEPS = 1500;

function drawPath(context, path, place, palette) {
  const first = bisect(path.n, (k) => path.edge[k + 1] > place.from);
  const last = bisect(path.n, (k) => path.edge[k] >= place.to);
  if (last - first > STEPS) return "critical path: zoom in to see it";
  const low = place.lane * 0.28;
  const line = new Path2D();
  for (let i = first; i < last; i++) {
    line.lineTo(place.x(path.edge[i]), place.y(path.ranks[i]) + low);
    line.lineTo(place.x(path.edge[i + 1]), place.y(path.ranks[i]) + low);
  }
  context.lineJoin = "round";
  for (const [style, wide] of [[palette.card, 6], [palette.ink, 3]]) {
    context.strokeStyle = style;
    context.lineWidth = wide;
    context.stroke(line);
  }
  return "";
}

// Draws one arrow; `place` gives x of a time and y of a rank.
function drawArrow(context, one, place, colour, halo, width) {
  const [x0, y0, x1, y1] = [place.x(one.sent), place.y(one.src), place.x(one.arrived), place.y(one.dst)];
  const x2 = place.x(one.received);
  const path = new Path2D();
  path.moveTo(x0, y0);
  path.lineTo(x1, y1);
  if (x2 > x1 + 1) path.lineTo(x2, y1);
  context.lineJoin = "round";
  for (const [style, wide] of [[halo, width + 2], [colour, width]]) {
    context.strokeStyle = style;
    context.lineWidth = wide;
    context.stroke(path);
  }
  drawHead(context, x1, y1, Math.atan2(y1 - y0, x1 - x0), 3 + 2 * width, colour);
  context.beginPath();
  context.arc(x0, y0, 1 + width, 0, 7);
  context.fill();
}

function drawHead(context, x, y, angle, size, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  for (const side of [-0.4, 0.4]) context.lineTo(x - size * Math.cos(angle + side), y - size * Math.sin(angle + side));
  context.closePath();
  context.fill();
}

// The drawn message nearest to a point, within 5 pixels.
function arrowAt(net, drawn, place, x, y) {
  let best = null;
  let nearest = 5;
  for (const i of drawn) {
    const one = message(net, i);
    const distance = toLine(x, y, place.x(one.sent), place.y(one.src), place.x(one.arrived), place.y(one.dst));
    if (distance < nearest) [best, nearest] = [one, distance];
  }
  return best;
}

function toLine(x, y, x0, y0, x1, y1) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const along = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
}
