// What was sent: numbers, sizes, the matrix of who sends to whom, and the messages longest in flight.
const TABLE_ROWS = 10;

function showMessages(app, net) {
  showTiles(net);
  showSizes(net);
  showFlights(net);
  showMatrix(app, net);
  showLongest(app, net);
}

function showTiles(net) {
  const { n, sent, arrived } = net.messages;
  const number = net.sizes.reduce((sum, size) => sum + size.messages, 0);
  const total = net.sizes.reduce((sum, size) => sum + size.bytes, 0);
  // Of a thinned replay only the messages longest in flight are here, so nothing is said on all of them.
  const all = net.left_out.messages === 0;
  const flights = Array.from({ length: n }, (_, i) => arrived[i] - sent[i]).sort((a, b) => a - b);
  const tiles = [["messages", count(number)], ["sent in all", bytes(total)], ["mean size", number ? bytes(Math.round(total / number)) : "–"]];
  if (n && all) tiles.push(["median time in flight", duration(flights[n >> 1])]);
  if (n) tiles.push(["longest", duration(flights[n - 1])]);
  const tile = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
  document.getElementById("tiles").replaceChildren(...tiles.map(tile));
}

function showSizes(net) {
  const name = (from) => (from < 2 ? `${from} B` : `${bytes(from)} – ${bytes(2 * from)}`);
  showBars("sizes", net.sizes.map(({ from, messages, bytes: total }) => [name(from), messages, " · " + bytes(total)]));
}

// Rows of [name, number, remark] as bars on one scale.
function showBars(id, rows) {
  const most = rows.reduce((most, row) => Math.max(most, row[1]), 1);
  const made = rows.map(([name, number, remark]) => {
    const bar = element("i");
    bar.style.width = (number / most) * 100 + "%";
    return element("div", { className: "size" }, element("span", {}, name), element("span", {}, bar, count(number), element("em", {}, remark)));
  });
  document.getElementById(id).replaceChildren(...(made.length ? made : ["No messages."]));
}

// Times in flight in classes of one width on a logarithmic scale, about nine of them.
function showFlights(net) {
  const { n, sent, arrived } = net.messages;
  const times = Array.from({ length: n }, (_, i) => arrived[i] - sent[i]);
  const logs = times.filter((time) => time > 0).map(Math.log2);
  const [low, high] = logs.reduce(([low, high], log) => [Math.min(low, log), Math.max(high, log)], [Infinity, 0]);
  const width = Math.max(0.25, 2 ** Math.ceil(Math.log2((high - low) / 9)));
  const classes = new Map();
  for (const log of logs) classes.set(Math.floor(log / width), (classes.get(Math.floor(log / width)) || 0) + 1);
  const rows = logs.length < n ? [["no time", n - logs.length, ""]] : [];
  for (let k = Math.floor(low / width); k <= Math.floor(high / width) && logs.length; k++) {
    rows.push([`${brief(2 ** (k * width))} – ${brief(2 ** ((k + 1) * width))}`, classes.get(k) || 0, ""]);
  }
  showBars("flights", rows);
  document.getElementById("flights-of").textContent = net.left_out.messages
    ? `the ${count(n)} messages longest in flight, by time from sending to arrival`
    : "messages by time from sending to arrival";
}

function mixed(palette, share) {
  return `color-mix(in oklab, ${palette.heat[1]} ${(share * 100).toFixed(1)}%, ${palette.heat[0]})`;
}

function showMatrix(app, net) {
  const canvas = document.getElementById("matrix");
  const { side, cells, ranks_per_cell: block } = net.matrix;
  const room = Math.min(canvas.parentElement.clientWidth, 420);
  const gutter = 40;
  const cell = Math.max(1, Math.min(44, (room - gutter) / Math.max(1, side)));
  const { context, ratio } = sized(canvas, gutter + cell * side + 2, gutter + cell * side + 2);
  canvas.style.width = gutter + cell * side + 2 + "px";
  context.scale(ratio, ratio);
  const grid = { gutter, cell, side, block };
  drawGrid(app.palette, context, grid);
  const most = Math.max(1, ...cells.map((one) => one[3]));
  for (const [src, dst, , size] of cells) {
    context.fillStyle = mixed(app.palette, 0.15 + 0.85 * (size / most));
    context.fillRect(gutter + dst * cell, gutter + src * cell, Math.max(1, cell - (cell > 5 ? 1 : 0)), Math.max(1, cell - (cell > 5 ? 1 : 0)));
  }
  showHeat(cells.length ? most : 0);
  const known = new Map(cells.map((one) => [one[0] * side + one[1], one]));
  canvas.setAttribute("aria-label", `${cells.length} of ${side * side} pairs exchange messages; the most bytes between one pair are ${bytes(cells.length ? most : 0)}`);
  canvas.onpointermove = (event) => pointCell(app, canvas, grid, known, event);
  canvas.onpointerleave = () => app.tip(null);
}

function showHeat(most) {
  document.getElementById("heat").replaceChildren(...(most ? ["few", element("i"), `${bytes(most)} between one pair`] : []));
}

function drawGrid(palette, context, { gutter, cell, side, block }) {
  context.fillStyle = palette.heat[0];
  context.fillRect(gutter, gutter, cell * side, cell * side);
  context.fillStyle = palette.quiet;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText("to", gutter, 7);
  context.fillText("from", 0, gutter - 12);
  const every = Math.max(1, 2 ** Math.ceil(Math.log2(24 / cell)));
  for (let k = 0; k < side; k += every) {
    context.textAlign = "center";
    context.fillText(k * block, gutter + (k + 0.5) * cell, gutter - 10);
    context.textAlign = "right";
    context.fillText(k * block, gutter - 6, gutter + (k + 0.5) * cell);
  }
}

function pointCell(app, canvas, { gutter, cell, side, block }, known, event) {
  const box = canvas.getBoundingClientRect();
  const dst = Math.floor((event.clientX - box.left - gutter) / cell);
  const src = Math.floor((event.clientY - box.top - gutter) / cell);
  if (src < 0 || dst < 0 || src >= side || dst >= side) return app.tip(null);
  const name = (k) => (block === 1 ? `rank ${k}` : `ranks ${k * block}–${(k + 1) * block - 1}`);
  const found = known.get(src * side + dst);
  const text = found ? `${count(found[2])} messages, ${bytes(found[3])}` : "no messages";
  app.tip(event, [element("b", {}, `${name(src)} → ${name(dst)}`), text]);
}

function showLongest(app, net) {
  const { n, sent, arrived } = net.messages;
  const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => arrived[b] - sent[b] - (arrived[a] - sent[a]) || a - b);
  const rows = order.slice(0, TABLE_ROWS).map((i) => {
    const one = message(net, i);
    const numbers = [bytes(one.size), one.tag, exactly(one.sent), duration(one.arrived - one.sent), duration(one.received - one.arrived)];
    const show = element("button", { type: "button", textContent: "show", onclick: () => app.showMessage(net, one) });
    show.setAttribute("aria-label", `Show message ${one.src} to ${one.dst} in the timeline`);
    const head = element("th", { scope: "row", textContent: `${one.src} → ${one.dst}` });
    return element("tr", {}, head, ...numbers.map((text) => element("td", { className: "n" }, String(text))), element("td", {}, show));
  });
  document.querySelector("#longest tbody").replaceChildren(...rows);
}
