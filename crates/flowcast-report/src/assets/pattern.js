// The shares of the chosen flows over time, and a table to choose them from.

const colours = ["#0b57a4", "#b45309", "#0f766e", "#7e22ce", "#be123c", "#4d7c0f", "#0369a1", "#a16207"];
const percent = (share) => `${(share * 100).toFixed(1)} %`;
// The slowest first, as many as have a colour.
const chosen = new Set([...data.keys()].sort((a, b) => data[b].slowdown - data[a].slowdown || a - b).slice(0, colours.length));

// Up to its end a curve has the value of its last interval.
const holding = (flow, time) => data[flow].intervals.findLast(([from, to]) => from <= time && time <= to);

function draw() {
  const element = document.getElementById("shares");
  element.replaceChildren();
  const flows = [...chosen].sort((a, b) => a - b);
  const times = [...new Set(flows.flatMap((flow) => data[flow].intervals.flatMap(([from, to]) => [from, to])))].sort((a, b) => a - b);
  if (times.length < 2) return;
  const shares = flows.map((flow) => times.map((time) => holding(flow, time)?.[2] ?? null));
  const paths = uPlot.paths.stepped({ align: 1 });
  const tell = ({ cursor }) => {
    if (cursor.idx === null || cursor.idx === undefined) return;
    const reasons = flows.map((flow) => [data[flow].name, holding(flow, times[cursor.idx])?.[3]]).filter(([, reason]) => reason);
    document.getElementById("why").textContent = `From ${seconds(times[cursor.idx])} on: ` + reasons.map(([name, reason]) => `flow ${name} ${reason}`).join("; ");
  };
  namedChart(element, "share of its uncontended rate that each flow gets, over time", {
    height: 320,
    scales: { x: { time: false }, y: { range: [0, 1.05] } },
    axes: [chartAxis("time since the start", { space: 90, values: (_, splits) => splits.map(seconds) }), chartAxis("share of its uncontended rate (%)", { size: 70, values: (_, splits) => splits.map(percent) })],
    series: [{ label: "from", value: orNone(seconds) }, ...flows.map((flow, index) => ({ label: data[flow].name, isCurve: true, stroke: colours[index % colours.length], ...lineOf(index, flows.length), paths, points: { show: false }, value: orNone(percent) }))],
    hooks: { setCursor: [tell] },
  }, [times, ...shares]);
}

data.forEach(({ name, cells }, flow) => {
  const row = document.getElementById("flows").insertRow();
  const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: chosen.has(flow), ariaLabel: `draw flow ${name}` });
  box.addEventListener("change", () => {
    chosen[box.checked ? "add" : "delete"](flow);
    draw();
  });
  row.insertCell().append(box);
  cells.forEach((text) => (row.insertCell().textContent = text));
});
draw();
addEventListener("resize", draw);
