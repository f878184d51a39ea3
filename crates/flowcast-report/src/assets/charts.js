// Curves by uPlot in the page's colours. `chart`: x values, their `unit`, and `curves` of { name, values, axis, show }.

// Of a page that names no colours, those of paper.
function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim() || { quiet: "#5a6675", line: "#dde2e8" }[name];
}

const chartAxis = (extra) => {
  const [quiet, line] = [cssColour("quiet"), cssColour("line")];
  return { stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "12px system-ui, sans-serif", ...extra };
};

function namedChart(element, label, options, columns) {
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  return new uPlot({ width: Math.max(240, element.clientWidth), height: 220, cursor: { y: false }, ...options }, columns, element);
}

// To four digits, in the first unit of `steps` that is not larger.
function inUnits(value, steps) {
  if (value === 0) return `0 ${steps.at(-1)[1]}`;
  const [size, unit] = steps.find(([size]) => Math.abs(value) >= size) ?? steps.at(-1);
  return `${Number((value / size).toPrecision(4))} ${unit}`;
}
const seconds = (value) => inUnits(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
const signed = (share) => (share > 0 ? "+" : share < 0 ? "−" : "") + Math.abs(share * 100).toFixed(1) + " %";
const orNone = (show) => (_, value) => (value === null || value === undefined ? "–" : show(value));

// A histogram of shares: `counts` in bins of one `width` from `low` on.
function drawBars(element, { label, low, width, counts, colour }) {
  const x = counts.map((_, k) => low + (k + 0.5) * width);
  const bin = orNone((value) => `${signed(value - width / 2)} to ${signed(value + width / 2)}`);
  const paths = uPlot.paths.bars({ size: [0.9, Infinity], align: 0 });
  return namedChart(element, label, {
    scales: { x: { time: false, range: [low, low + counts.length * width] }, y: { range: (_, least, most) => [0, Math.max(1, most) * 1.05] } },
    axes: [chartAxis({ space: 80, values: (_, splits) => splits.map(signed) }), chartAxis({ size: 60 })],
    series: [{ label: "error", value: bin }, { label: "flows", paths, fill: colour, stroke: colour, points: { show: false } }],
  }, [x, counts]);
}

function drawCurves(element, { label, x, showX, curves }) {
  element.replaceChildren();
  if (x.length < 2) return null;
  const axes = [chartAxis({ space: 90, values: (_, splits) => splits.map((time) => showX(time)) })];
  const scales = { x: { time: false } };
  curves.forEach(({ name, show }, index) => {
    scales[name] = { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.05] };
    axes.push(chartAxis({ scale: name, side: index ? 1 : 3, size: 74, ...(index ? { grid: { show: false } } : {}), values: (_, splits) => splits.map((value) => show(value)) }));
  });
  const series = [{ label: "time", value: orNone(showX) }];
  curves.forEach(({ name, colour, show }, index) => {
    // Curves of which one covers the other are both seen.
    series.push({ label: name, scale: name, stroke: cssColour(colour), width: 1.6, dash: index ? [6, 5] : undefined, points: { show: false }, value: orNone(show) });
  });
  return namedChart(element, label, { axes, scales, series }, [x, ...curves.map((curve) => curve.values)]);
}

// Points above names: `series` of { name, colour, values } in seconds or as signed shares; behind them the bars of `ranges`,
// each [place, low, high].
function drawPoints(element, { label, what, names, isShare, series, ranges }) {
  const show = isShare ? signed : seconds;
  const named = (place) => names[place] ?? "";
  const all = [...series.flatMap(({ values }) => values), ...ranges.flatMap(([, low, high]) => [low, high])];
  const ends = [Math.min(0, ...all) * 1.05, Math.max(0, ...all) * 1.05 || 1];
  const bars = ({ ctx, valToPos }) => {
    ctx.save();
    [ctx.strokeStyle, ctx.lineWidth] = [cssColour("quiet"), 3 * devicePixelRatio];
    for (const [place, low, high] of ranges) {
      const across = valToPos(place, "x", true);
      ctx.beginPath();
      ctx.moveTo(across, valToPos(low, "y", true) + 1);
      ctx.lineTo(across, valToPos(high, "y", true) - 1);
      ctx.stroke();
    }
    ctx.restore();
  };
  return namedChart(element, label, {
    height: 300,
    scales: { x: { time: false, range: [-0.5, names.length - 0.5] }, y: { range: ends } },
    axes: [chartAxis({ space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (_, splits) => splits.map(named) }), chartAxis({ size: 74, values: (_, splits) => splits.map(show) })],
    series: [{ label: what, value: orNone(named) }, ...series.map(({ name, colour }) => ({ label: name, stroke: colour, paths: () => null, points: { show: true, size: 8, width: 1.6 }, value: orNone(show) }))],
    hooks: { drawAxes: [bars] },
  }, [names.map((_, place) => place), ...series.map(({ values }) => values)]);
}
