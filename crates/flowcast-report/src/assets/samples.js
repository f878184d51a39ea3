// The samples of a point: their empirical distribution with the interval of the median, and their order in time.

const { points } = data;
const microseconds = (value) => (value === null || value === undefined ? "–" : `${Number(value.toPrecision(5))} us`);

function place(heading, key) {
  const picture = document.getElementById("picture");
  const title = document.createElement("h2");
  title.textContent = heading;
  const element = document.createElement("div");
  element.id = key;
  picture.append(title, element);
  return element;
}

function drawPoint({ label, times_us: times, low_us: low, high_us: high, warm_up: warm }) {
  document.getElementById("picture").querySelectorAll("h2, div").forEach((element) => element.remove());
  const sorted = [...times].sort((one, other) => one - other);
  const shares = sorted.map((_, at) => (at + 1) / sorted.length);
  const inside = sorted.map((time, at) => (low !== null && time >= low && time <= high ? shares[at] : null));
  namedChart(place(`${label}: share of samples up to a time`, "ecdf"), `distribution of ${label}`, {
    height: 320,
    scales: { x: { time: false }, y: { range: [0, 1] } },
    axes: [chartAxis("time of a sample", { space: 110, values: (_, splits) => splits.map(microseconds) }), chartAxis("share of the samples, 0 to 1", { size: 60 })],
    series: [
      { label: "time", value: (_, value) => microseconds(value) },
      { label: "share", stroke: "#0b57a4", width: 1.6, paths: uPlot.paths.stepped({ align: 1 }), points: { show: sorted.length < 60 } },
      { label: "interval of the median", stroke: "#b45309", width: 4, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
    ],
  }, [sorted, shares, inside]);
  namedChart(place(`${label}: samples in the order of time`, "order"), `samples of ${label} in the order of time`, {
    height: 260,
    scales: { x: { time: false } },
    axes: [chartAxis("number of the sample", { space: 90 }), chartAxis("time of a sample", { size: 84, values: (_, splits) => splits.map(microseconds) })],
    series: [
      { label: "sample" },
      { label: "time", stroke: "#0b57a4", width: 0, points: { show: true, size: 5, fill: "#0b57a4" }, value: (_, value) => microseconds(value) },
      { label: "warm-up", stroke: "#be123c", width: 0, points: { show: true, size: 5, fill: "#be123c" }, value: (_, value) => microseconds(value) },
    ],
  }, [times.map((_, at) => at + 1), times.map((time, at) => (at < warm ? null : time)), times.map((time, at) => (at < warm ? time : null))]);
}

const choice = document.createElement("select");
choice.setAttribute("aria-label", "point");
points.forEach(({ label }, at) => choice.add(new Option(label, at)));
document.getElementById("picture").append(choice);
const drawChosen = () => points.length && drawPoint(points[Number(choice.value)]);
choice.addEventListener("change", drawChosen);
addEventListener("resize", drawChosen);
drawChosen();
