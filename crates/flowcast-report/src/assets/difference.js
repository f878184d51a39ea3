// Two replays before and after: what changed, by activity, kind of call and rank.
const RANK_ROWS = 5;

function startDifference(app) {
  const box = document.getElementById("difference");
  box.hidden = app.nets.length < 2;
  if (box.hidden) return;
  const [before, after] = ["before", "after"].map((id) => document.getElementById(id));
  for (const select of [before, after]) {
    select.replaceChildren(...app.nets.map((net, index) => element("option", { value: index, textContent: net.name })));
    select.onchange = () => showDifference(app, app.nets[before.value], app.nets[after.value]);
  }
  [before.value, after.value] = [0, 1];
  before.onchange();
}

function change(from, to) {
  const sign = to > from ? "+" : to < from ? "−" : "";
  const ratio = from > 0 ? ` (${sign}${percent(Math.abs(to - from) / from)})` : "";
  return `${sign}${duration(Math.abs(to - from))}${ratio}`;
}

function showDifference(app, one, other) {
  const mean = (net, code) => net.times.reduce((sum, times) => sum + times[code], 0) / Math.max(1, net.count);
  const cell = (text) => element("td", { className: "n" }, text);
  const row = (head, from, to) => element("tr", {}, element("th", { scope: "row" }, ...[].concat(head)), cell(duration(from)), cell(duration(to)), cell(change(from, to)));
  const part = (text) => element("tr", { className: "part" }, element("th", { scope: "colgroup", colSpan: 4 }, text));
  const rows = [row("predicted time", one.makespan_ns, other.makespan_ns), part("Mean rank, by activity")];
  app.activities.forEach((name, code) => {
    const [from, to] = [mean(one, code), mean(other, code)];
    if (from || to) rows.push(row([swatch(app, code), name], from, to));
  });
  const calls = [...new Set([...one.calls, ...other.calls].map((call) => call.name))];
  const total = (net, name) => net.calls.find((call) => call.name === name)?.total_ns || 0;
  if (calls.length) rows.push(part("Calls, all ranks together"), ...calls.map((name) => row(name, total(one, name), total(other, name))));
  if (one.count === other.count) {
    const most = one.ends.map((_, rank) => rank).sort((a, b) => Math.abs(other.ends[b] - one.ends[b]) - Math.abs(other.ends[a] - one.ends[a]) || a - b);
    rows.push(part("Ends of the ranks that change most"), ...most.slice(0, RANK_ROWS).map((rank) => row(`rank ${rank}`, one.ends[rank], other.ends[rank])));
  }
  document.querySelector("#difference tbody").replaceChildren(...rows);
}
