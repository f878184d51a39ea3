// Curves by uPlot in the page's colours. `chart`: x values, their `unit`, and `curves` of { name, values, axis, show }.

// A colour of the page, by its name there.
function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// An axis with its title; the unit stands in the title or at the ticks.
const chartAxis = (title, extra) => {
  const [quiet, line] = [cssColour("quiet"), cssColour("line")];
  const font = "12px system-ui, sans-serif";
  return { label: title, labelFont: font, labelSize: 22, size: 34, stroke: quiet, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font, ...extra };
};

// Curves that lie on one another are both seen: those below are wider, those above are dashed, each in its own way.
const DASHES = [undefined, [9, 5], [3, 3], [12, 4, 3, 4], [5, 9]];
const ringOf = (index, number) => 5 + (number - 1 - index) * Math.min(4, 16 / number);
const lineOf = (index, number) => ({ width: 1.5 + (1.4 * (number - 1 - index)) / Math.max(1, number - 1), dash: DASHES[index % DASHES.length] });

// For each curve an earlier one that it lies on, as far as can be seen; the share of its points for which that holds.
function coincidences(curves) {
  const values = curves.flat().filter((value) => value !== null && value !== undefined);
  const near = (Math.max(...values) - Math.min(...values)) * 0.004;
  return curves.map((curve, index) => {
    const known = curve.flatMap((value, at) => (value === null || value === undefined ? [] : [at]));
    const shares = curves.slice(0, index).map((other) => known.filter((at) => other[at] !== null && other[at] !== undefined && Math.abs(curve[at] - other[at]) <= near).length / known.length);
    const best = shares.indexOf(Math.max(...shares));
    return known.length > 0 && shares[best] >= 0.5 ? { index: best, share: shares[best] } : null;
  });
}

// Says in the legend which curves lie on which.
function sayCoincidences(series, columns) {
  const drawn = series.flatMap(({ scale = "y", isCurve }, at) => (isCurve ? [{ scale, at }] : []));
  for (const scale of new Set(drawn.map((one) => one.scale))) {
    const group = drawn.filter((one) => one.scale === scale).map(({ at }) => at);
    const names = group.map((at) => series[at].label);
    coincidences(group.map((at) => columns[at])).forEach((found, k) => {
      if (found) series[group[k]].label = `${names[k]} (${found.share === 1 ? "coincides" : "mostly coincides"} with ${names[found.index]})`;
    });
  }
}

function namedChart(element, label, options, columns) {
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", [label, ...options.axes.map((axis) => axis.label)].join("; "));
  sayCoincidences(options.series, columns);
  // Values stand in the legend while somebody points at the drawing.
  const follow = ({ root, cursor }) => root.classList.toggle("idle", cursor.idx === null || cursor.idx === undefined);
  const hooks = { ...options.hooks, setCursor: [follow, ...(options.hooks?.setCursor ?? [])] };
  const chart = new uPlot({ width: Math.max(240, element.clientWidth), height: 220, cursor: { y: false }, legend: { markers: { dash: ({ series }, at) => (series[at].dash ? "dashed" : "solid") } }, ...options, hooks }, columns, element);
  follow(chart);
  return chart;
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
    axes: [chartAxis("error of a flow, predicted minus measured (%)", { space: 80, values: (_, splits) => splits.map(signed) }), chartAxis("number of flows", { size: 60 })],
    series: [{ label: "error", value: bin }, { label: "flows", paths, fill: colour, stroke: colour, points: { show: false } }],
  }, [x, counts]);
}

function drawCurves(element, { label, x, showX, curves }) {
  element.replaceChildren();
  if (x.length < 2) return null;
  const axes = [chartAxis("time since the start", { space: 90, values: (_, splits) => splits.map((time) => showX(time)) })];
  const scales = { x: { time: false } };
  curves.forEach(({ name, show }, index) => {
    scales[name] = { range: (_, low, high) => [0, Math.max(high, 1e-9) * 1.05] };
    axes.push(chartAxis(name, { scale: name, side: index ? 1 : 3, size: 74, ...(index ? { grid: { show: false } } : {}), values: (_, splits) => splits.map((value) => show(value)) }));
  });
  const series = [{ label: "time", value: orNone(showX) }];
  curves.forEach(({ name, colour, show }, index) => {
    series.push({ label: name, scale: name, stroke: cssColour(colour), ...lineOf(index, curves.length), points: { show: false }, value: orNone(show) });
  });
  return namedChart(element, label, { axes, scales, series }, [x, ...curves.map((curve) => curve.values)]);
}

const shortened = (name) => (name.length > 15 ? name.slice(0, 7) + "…" + name.slice(-7) : name);

// Points above names: `series` of { name, colour, values } in seconds or as signed shares; behind them the bars of `ranges`,
// each [place, low, high].
function drawPoints(element, { label, what, up, names, isShare = false, series, ranges }) {
  const show = isShare ? signed : seconds;
  const named = (place) => names[place] ?? "";
  const all = [...series.flatMap(({ values }) => values), ...ranges.flatMap(([, low, high]) => [low, high])];
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  // Marks at either end are seen whole, and one around the other where they coincide.
  const room = (high - low || 1) * 0.08;
  const ends = [low - (isShare || low < 0 ? room : 0), high + room];
  const isLong = Math.max(...names.map((name) => name.length)) > 8;
  const turned = isLong ? { rotate: 40, size: 100, space: 22 } : { space: 40 };
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
    height: isLong ? 380 : 300,
    scales: { x: { time: false, range: [-0.5, names.length - 0.5] }, y: { range: ends } },
    axes: [chartAxis(what, { ...turned, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (_, splits) => splits.map((place) => shortened(named(place))) }), chartAxis(up, { size: 74, values: (_, splits) => splits.map(show) })],
    series: [{ label: what, value: orNone(named) }, ...series.map(({ name, colour }, index) => ({ label: name, isCurve: true, stroke: colour.startsWith("#") ? colour : cssColour(colour), paths: () => null, points: { show: true, size: 8 + (series.length - 1 - index) * Math.min(4, 20 / series.length), width: 1.6, fill: "transparent" }, value: orNone(show) }))],
    hooks: { drawAxes: [bars] },
  }, [names.map((_, place) => place), ...series.map(({ values }) => values)]);
}

// Told apart by people who do not see all colours (Okabe and Ito).
const modelColour = (model) => ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999", "#8c564b", "#b8a500"][model % 9];

// Charts below a heading of `picture`, each below its label, again where the page gets another width.
function drawBelow(heading, drawing, charts) {
  const picture = document.getElementById("picture");
  const below = (tag, textContent) => picture.appendChild(Object.assign(document.createElement(tag), { textContent }));
  below("h2", heading);
  const places = charts.map((chart) => {
    below("h3", chart.label);
    return [below("div", ""), chart];
  });
  const draw = () => places.forEach(([place, chart]) => {
    place.replaceChildren();
    drawing(place, chart);
  });
  draw();
  addEventListener("resize", draw);
}
