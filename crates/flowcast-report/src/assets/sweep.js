// The CSV in the page as curves over one field, one for each value of another, and as a heat map of both.

const lines = document.getElementById("rows").textContent.replaceAll("&lt;", "<").trim().split("\n");
const columns = lines[1].split(",");
const rows = lines.slice(2).map((line) => line.split(",").map((cell) => (cell === "" || isNaN(cell) ? cell : Number(cell))));
const results = data.map((one) => ({ ...one, column: columns.indexOf(one.column), show: (value) => shows[one.show](value) }));
const place = results[0].column;
const [low, high] = [columns.indexOf("low_s"), columns.indexOf("high_s")];
const fields = columns.slice(1, place).map((name, index) => ({ name, column: index + 1, values: [...new Set(rows.map((row) => row[index + 1]))] }));
const colours = ["#0b57a4", "#b45309", "#0f766e", "#7e22ce", "#be123c", "#4d7c0f", "#0369a1", "#a16207", "#334155", "#c026d3", "#15803d", "#9f1239"];

const shows = {
  seconds,
  share: (share) => `${(share * 100).toFixed(1)} %`,
};
function shown(field, value) {
  if (typeof value !== "number") return value;
  if (field.name.endsWith("_bytes_per_s")) return inUnits(value, [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]]);
  if (field.name.endsWith("_bytes")) return inUnits(value, [[2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
  return field.name.endsWith("_s") ? seconds(value) : String(value);
}

// The name of a field without its unit, which values have.
const titleOf = ({ name }) => name.replace(/(_bytes_per_s|_bytes|_s)$/, "").replaceAll("_", " ");

function chooser(label, options, chosen) {
  const element = document.createElement("label");
  const select = document.createElement("select");
  options.forEach((text, index) => select.add(new Option(text, index, index === chosen, index === chosen)));
  element.append(`${label} `, select);
  document.getElementById("choose").append(element);
  select.addEventListener("change", draw);
  return select;
}
function tick(label) {
  const element = document.createElement("label");
  const box = Object.assign(document.createElement("input"), { type: "checkbox" });
  element.append(box, ` ${label}`);
  document.getElementById("choose").append(element);
  box.addEventListener("change", draw);
  return box;
}

const isNumeric = (field) => field.values.every((value) => typeof value === "number");
// Of networks and mappings alone, points stand beside one another in the order given.
const numeric = fields.some(isNumeric) ? fields.filter(isNumeric) : fields;
const result = chooser("Show", results.map((one) => one.name), 0);
const over = chooser("over", numeric.map((field) => field.name), 0);
const apart = chooser("a curve for each", ["nothing", ...fields.map((field) => field.name)], fields.findIndex((field) => field !== numeric[0]) + 1);
const [logX, logY] = [tick("logarithmic across"), tick("logarithmic up")];
const fixed = fields.map((field) => chooser(field.name, field.values.map((value) => shown(field, value)), 0));

function draw() {
  const [what, across] = [results[result.value], numeric[over.value]];
  const series = Number(apart.value) ? fields[apart.value - 1] : null;
  fields.forEach((field, index) => (fixed[index].parentElement.hidden = field === across || field === series));
  const held = rows.filter((row) => fields.every((field, index) => field === across || field === series || row[field.column] === field.values[fixed[index].value]));
  const row = (x, value) => held.find((row) => row[across.column] === x && (series === null || series === across || row[series.column] === value));
  const number = (cell) => (typeof cell === "number" ? cell : null);
  const isOrdered = isNumeric(across);
  const x = isOrdered ? [...across.values].sort((one, other) => one - other) : across.values;
  const places = isOrdered ? x : x.map((_, index) => index);
  const named = (place) => (isOrdered ? shown(across, place) : (x[place] ?? ""));
  const names = series && series !== across ? series.values : [null];
  const column = (value, column) => x.map((at) => number(row(at, value)?.[column]));
  const table = names.map((value) => column(value, what.column));
  const hasEnds = high > 0 && what.column === place;
  const ends = hasEnds ? names.flatMap((value) => [column(value, low), column(value, high)]) : [];
  const curves = document.getElementById("curves");
  curves.replaceChildren();
  const log = (box, values) => (box.checked && values.every((value) => value === null || value > 0) ? 3 : 1);
  namedChart(curves, `${what.name} over ${across.name}`, {
    height: 360,
    scales: { x: { time: false, distr: isOrdered ? log(logX, x) : 1 }, y: { distr: log(logY, [...table, ...ends].flat()) } },
    axes: [chartAxis(titleOf(across), { space: 90, values: (_, splits) => splits.map((at) => (at === null ? "" : named(at))), ...(isOrdered ? {} : { incrs: [1] }) }), chartAxis(what.name, { size: 84, values: (_, splits) => splits.map((value) => (value === null ? "" : what.show(value))) })],
    series: [{ label: across.name, value: (_, at) => (at === null ? "–" : named(at)) }, ...names.map((value, index) => ({
      label: value === null ? what.name : shown(series, value), isCurve: true, stroke: colours[index % colours.length], ...lineOf(index, names.length), points: { show: x.length < 40, size: ringOf(index, names.length) },
      value: (_, at) => (at === null ? "–" : what.show(at)),
    })), ...ends.map((_, index) => ({
      label: `${names[index >> 1] === null ? "" : shown(series, names[index >> 1])} ${index % 2 ? "high" : "low"}`, points: { show: false }, width: 0,
      value: (_, at) => (at === null ? "–" : what.show(at)),
    }))],
    bands: ends.flatMap((_, index) => (index % 2 ? [{ series: [1 + names.length + index, names.length + index], fill: `${colours[(index >> 1) % colours.length]}22` }] : [])),
  }, [places, ...table, ...ends]);
  heat(what, across, series === across ? null : series, x, names, table);
}

function heat(what, across, series, x, names, table) {
  const map = document.getElementById("map");
  map.replaceChildren();
  if (!series) return;
  const known = table.flat().filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const head = map.createTHead().insertRow();
  head.append(Object.assign(document.createElement("th"), { textContent: `${series.name} \\ ${across.name}`, scope: "col" }));
  x.forEach((at) => head.append(Object.assign(document.createElement("th"), { textContent: shown(across, at), scope: "col" })));
  const body = map.createTBody();
  names.forEach((name, index) => {
    const line = body.insertRow();
    line.append(Object.assign(document.createElement("th"), { textContent: shown(series, name), scope: "row" }));
    table[index].forEach((value, place) => {
      const cell = line.insertCell();
      if (value === null) return;
      const part = high > low ? (value - low) / (high - low) : 0;
      cell.textContent = what.show(value);
      cell.title = `${across.name} ${shown(across, x[place])}, ${series.name} ${shown(series, name)}: ${what.show(value)}`;
      cell.style.background = `hsl(${210 - 180 * part} 70% ${88 - 22 * part}%)`;
    });
  });
}

draw();
addEventListener("resize", draw);
