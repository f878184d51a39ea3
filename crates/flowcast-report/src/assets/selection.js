// Statistics of the selected span of time.

// Messages sent in a span: from all of them if they are here, else from the curve of the rate.
function sentIn(net, from, to) {
  const sums = { messages: 0, bytes: 0 };
  if (!net.messages_left_out) {
    const { n, sent, kind } = net.messages;
    for (let i = bisect(n, (k) => sent[k] >= from); i < n && sent[i] < to; i++) {
      sums.messages += 1;
      sums.bytes += net.kinds[kind[i]][2];
    }
    return sums;
  }
  const { width_ns: width, messages, bytes: sizes } = net.rate;
  for (let i = Math.max(0, Math.floor(from / width)); i < messages.length && i * width < to; i++) {
    const part = (Math.min(to, (i + 1) * width) - Math.max(from, i * width)) / width;
    sums.messages += messages[i] * part;
    sums.bytes += sizes[i] * part;
  }
  return { messages: Math.round(sums.messages), bytes: Math.round(sums.bytes) };
}

function showSelection(app) {
  const box = document.getElementById("selection");
  box.hidden = !app.selection;
  if (!app.selection) return;
  const { from, to } = app.selection;
  const { measure } = app;
  document.getElementById("selected").textContent = `Selected: ${measure.span(from, to)}, from ${measure.text(from)} to ${measure.text(to)}`;
  const nets = app.panels.map((panel) => panel.net);
  const spans = nets.map((net) => app.spanIn(net, app.selection));
  const times = nets.map((net, k) => timesIn(net.sources, ...spans[k]));
  const wholes = times.map((list) => list.reduce((sum, time) => sum + time, 0));
  const cell = (text) => element("td", { className: "n" }, text);
  const head = (text) => element("th", { scope: "row" }, ...[].concat(text));
  const row = (name, cells) => element("tr", {}, head(name), ...cells.map(cell));
  const rows = app.activities.flatMap((name, code) => {
    if (!times.some((list) => list[code] > 0)) return [];
    const cells = nets.map((net, k) => `${duration(times[k][code] / net.count)} · ${percent(times[k][code] / (wholes[k] || 1))}`);
    return [row([swatch(app, code), name], cells)];
  });
  const sent = nets.map((net, k) => sentIn(net, ...spans[k]));
  const about = nets.map((net) => (net.messages_left_out ? "about " : ""));
  if (app.align !== "time") rows.unshift(row("duration of this part", spans.map(([from, to]) => duration(to - from))));
  rows.push(row("messages sent", sent.map((sums, k) => `${about[k]}${count(sums.messages)}`)));
  rows.push(row("bytes sent", sent.map((sums, k) => `${about[k]}${amount(sums.bytes)}`)));
  const names = element("tr", {}, element("th", { scope: "col" }, "Mean rank"), ...nets.map((net) => element("th", { scope: "col", className: "n" }, net.name)));
  document.getElementById("selection-table").replaceChildren(element("thead", {}, names), element("tbody", {}, ...rows));
}
