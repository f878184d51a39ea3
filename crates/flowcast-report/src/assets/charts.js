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

// A histogram of shares: `counts` in bins of one `width` from `low` on.
function drawBars(element, { label, low, width, counts, colour }) {
  const x = counts.map((_, k) => low + (k + 0.5) * width);
  const signed = (share) => (share > 0 ? "+" : share < 0 ? "−" : "") + Math.abs(share * 100).toFixed(1) + " %";
  const bin = (_, value) => (value === null ? "–" : `${signed(value - width / 2)} to ${signed(value + width / 2)}`);
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
  const series = [{ label: "time", value: (_, value) => (value === null ? "–" : showX(value)) }];
  curves.forEach(({ name, colour, show }, index) => {
    // Curves of which one covers the other are both seen.
    series.push({ label: name, scale: name, stroke: cssColour(colour), width: 1.6, dash: index ? [6, 5] : undefined, points: { show: false }, value: (_, value) => (value === null ? "–" : show(value)) });
  });
  return namedChart(element, label, { axes, scales, series }, [x, ...curves.map((curve) => curve.values)]);
}
