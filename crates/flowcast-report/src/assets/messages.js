// What was sent: numbers, sizes, the matrix of who sends to whom, and the messages longest in flight.
function showMessages(app, net) {
  showTiles(net);
  showRate(net);
  showSizes(net);
  showFlights(net);
  showMatrix(app, net);
  showCalls(net);
  startSearch(app, net);
}

function showTiles(net) {
  const { number, median_ns: middle, longest_ns: longest } = net.flights;
  const total = net.sizes.reduce((sum, size) => sum + size.bytes, 0);
  const tiles = [["messages", count(number)], ["bytes sent", amount(total)], ["mean size", number ? amount(Math.round(total / number)) : "–"]];
  if (number) tiles.push(["median time in flight", median(middle, longest)], ["longest", duration(longest)]);
  const tile = ([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value));
  document.getElementById("tiles").replaceChildren(...tiles.map(tile));
}

// Messages and bytes a second over the run, by the time of sending.
function showRate(net) {
  const { width_ns: width, messages, bytes: sizes } = net.rate;
  const points = Math.max(2, Math.min(messages.length, Math.ceil(net.end / width)));
  const x = Array.from({ length: points }, (_, i) => (i + 0.5) * width);
  const perSecond = (values) => x.map((_, i) => (values[i] || 0) / (width / 1e9));
  const step = ticks(0, net.end, 8).step;
  drawCurves(document.getElementById("rate"), {
    label: `Messages and bytes sent per second over ${duration(net.end)}`, x, showX: (time) => moment(time, step, net.end),
    curves: [
      { name: "messages/s", values: perSecond(messages), colour: "a1", show: brieflyCounted },
      { name: "bytes/s", values: perSecond(sizes), colour: "a2", show: (rate) => brieflyCounted(rate, "B/s") },
    ],
  });
}

function showCalls(net) {
  const calls = [...net.calls].sort((a, b) => b.total_ns - a.total_ns);
  const cells = (call) => [count(call.number), call.bytes ? amount(call.bytes) : "–", duration(call.total_ns), median(call.median_ns, call.longest_ns), duration(call.longest_ns)];
  const row = (call) => element("tr", {}, element("th", { scope: "row", textContent: call.name }), ...cells(call).map((text) => element("td", { className: "n" }, text)));
  const rows = calls.map(row);
  document.querySelector("#calls tbody").replaceChildren(...rows);
  document.getElementById("calls-part").hidden = rows.length === 0;
}

function showSizes(net) {
  const name = (from) => (from < 2 ? `${from} B` : `${bytes(from)} – ${bytes(2 * from)}`);
  showBars("sizes", net.sizes.map(({ from, messages, bytes: total }) => [name(from), messages, " · " + amount(total)]));
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

// Times in flight in classes that double.
function showFlights(net) {
  const name = (from) => (from === 0 ? "under 1 ns" : `${brief(from)} – ${brief(2 * from)}`);
  showBars("flights", net.flights.classes.map(([from, number]) => [name(from), number, ""]));
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
  canvas.setAttribute("aria-label", `${cells.length} of ${side * side} pairs exchange messages; the largest number of bytes between one pair is ${amount(cells.length ? most : 0)}`);
  canvas.onpointermove = (event) => pointCell(app, canvas, grid, known, event);
  canvas.onpointerleave = () => app.tip(null);
}

function showHeat(most) {
  document.getElementById("heat").replaceChildren(...(most ? ["few", element("i"), `${amount(most)} between one pair`] : []));
}

function drawGrid(palette, context, { gutter, cell, side, block }) {
  context.fillStyle = palette.heat[0];
  context.fillRect(gutter, gutter, cell * side, cell * side);
  context.fillStyle = palette.quiet;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText("to rank", gutter, 7);
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
  const text = found ? `${count(found[2])} messages, ${amount(found[3])}` : "no messages";
  app.tip(event, [element("b", {}, `${name(src)} → ${name(dst)}`), text]);
}
