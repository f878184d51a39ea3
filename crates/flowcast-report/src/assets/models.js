// Models of messages beside what was measured: times by size for each kind of round trip, and residuals by size.

const found = data;
const colours = ["#0b57a4", "#b45309", "#15803d", "#9333ea", "#be123c", "#0e7490", "#a16207", "#4d7c0f", "#6d28d9", "#334155", "#c2410c", "#0369a1", "#86198f"];
const microseconds = (value) => (value === null || value === undefined ? "–" : `${Number(value.toPrecision(4))} us`);
const percent = (value) => (value === null || value === undefined ? "–" : `${(value * 100).toFixed(1)} %`);
const bytes = (value) => (value === null ? "–" : `${value} B`);

function place(heading) {
  const picture = document.getElementById("picture");
  const title = document.createElement("h2");
  title.textContent = heading;
  const element = document.createElement("div");
  picture.append(title, element);
  return element;
}

function draw(heading, up, x, curves, show) {
  const series = [{ label: "size", value: (_, value) => bytes(value) }];
  curves.forEach(({ name, colour, dots, hidden }, index) => series.push({ label: name, isCurve: !dots, stroke: colour, ...(dots ? { width: 0 } : lineOf(index, curves.length)), show: !hidden, spanGaps: true, points: { show: dots, size: 8, fill: colour }, value: (_, value) => show(value) }));
  namedChart(place(heading), heading, {
    height: 320,
    scales: { x: { time: false } },
    axes: [chartAxis("size of a message", { space: 90, values: (_, splits) => splits.map(bytes) }), chartAxis(up, { size: 84, values: (_, splits) => splits.map(show) })],
    series,
  }, [x, ...curves.map((curve) => curve.values)]);
}

function drawModels() {
  document.getElementById("picture").replaceChildren();
  // The best four are drawn; a click on a name draws the others.
  const hidden = (at) => at >= 4;
  const kinds = [...new Set(found.models[0].by_point.map((point) => `${point.n} ${point.d_us}`))];
  for (const kind of kinds) {
    const of = (model) => model.by_point.filter((point) => `${point.n} ${point.d_us}` === kind).sort((one, other) => one.size_B - other.size_B);
    const first = of(found.models[0]);
    if (first.length < 2) continue;
    const [n, delay] = kind.split(" ");
    const curves = found.models.map((model, at) => ({ name: model.model, colour: colours[at % colours.length], values: of(model).map((point) => point.predicted_us), hidden: hidden(at) }));
    curves.push({ name: "measured", colour: cssColour("ink"), dots: true, values: first.map((point) => point.measured_us) });
    const heading = `${n === "1" ? "Round trips" : `${n} messages in a row`}${Number(delay) > 0 ? `, ${delay} us apart` : ""}: measured, and predicted without the samples of that size`;
    draw(heading, "time of a round trip", first.map((point) => point.size_B), curves, microseconds);
  }
  const sizes = found.models[0].by_size.map((size) => size.size_B);
  const residuals = found.models.map((model, at) => ({ name: model.model, colour: colours[at % colours.length], values: model.by_size.map((size) => size.error), hidden: hidden(at) }));
  draw("Mean error of each held-out size, predicted minus measured", "mean error (%)", sizes, residuals, percent);
}

drawModels();
addEventListener("resize", drawModels);
