// A predicted time over a parameter: straight lines between the ends of the pieces.

const curve = data;

function scaled(value, unit) {
  if (unit === "") return String(Number(value.toPrecision(4)));
  const [size, name] = [[1, ""], [1e-3, "m"], [1e-6, "u"], [1e-9, "n"], [1e-12, "p"]].find(([size]) => Math.abs(value) >= size) ?? [1, ""];
  return `${Number((value / size).toPrecision(4))} ${name}${unit}`;
}
const showX = (value) => (curve.unit === "B" ? `${value} B` : scaled(value, curve.unit));
const showY = (value) => scaled(value, "s");

function drawPicture() {
  const points = [];
  for (const { from, to, makespan_s_at_from, slope } of curve.pieces) {
    points.push([from, makespan_s_at_from], [to, makespan_s_at_from + slope * (to - from)]);
  }
  const x = points.map(([at]) => at);
  const fixedAt = (at) => {
    const piece = curve.fixed_order.find(({ from, to }) => from <= at && at <= to);
    return piece ? piece.makespan_s_at_from + piece.slope * (at - piece.from) : null;
  };
  const fixed = curve.fixed_order ? [x.map(fixedAt)] : [];
  const element = document.getElementById("picture");
  element.replaceChildren();
  const seconds = (_, value) => (value === null ? "–" : showY(value));
  const lines = curve.fixed_order ? 3 : 2;
  const series = [{ label: curve.parameter, value: (_, at) => (at === null ? "–" : showX(at)) }];
  series.push({ label: "predicted time", isCurve: true, stroke: "#0b57a4", ...lineOf(0, lines), points: { show: curve.pieces.length < 40 }, value: seconds });
  series.push({ label: "on the network as it is", stroke: "#b45309", ...lineOf(1, lines), points: { show: false }, value: seconds });
  if (curve.fixed_order) series.push({ label: "if events kept their order", isCurve: true, stroke: "#3f7d20", ...lineOf(2, lines), points: { show: false }, value: seconds });
  namedChart(element, `predicted time over ${curve.parameter}`, {
    height: 380,
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high, 1e-12) * 1.05] } },
    axes: [chartAxis(curve.parameter, { space: 90, values: (_, splits) => splits.map(showX) }), chartAxis("predicted time", { size: 84, values: (_, splits) => splits.map(showY) })],
    series,
  }, [x, points.map(([, time]) => time), x.map(() => curve.base_makespan_s), ...fixed]);
}

drawPicture();
addEventListener("resize", drawPicture);
