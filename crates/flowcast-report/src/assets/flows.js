// Of each model how many flows have which error; of each pattern the groups of measured durations and the predictions.

const models = data.models.map(({ model }) => model);
const flows = data.patterns.flatMap(({ flows }) => flows);
const errorsOf = (model) => flows.map((flow) => flow.predicted_s[model] / flow.measured_s - 1);
const widest = Math.max(0.05, ...data.models.flatMap((model) => [model.lowest_error, model.highest_error].map(Math.abs)));
const half = Math.min(1, Math.ceil(widest * 20) / 20);
const bins = 40;

function histogram(model, colour) {
  const [width, counts] = [(2 * half) / bins, Array(bins).fill(0)];
  // The outer bins hold all that is beyond.
  for (const error of errorsOf(model)) counts[Math.min(bins - 1, Math.max(0, Math.floor((error + half) / width)))] += 1;
  return { label: `${model}: errors of ${flows.length} flows`, low: -half, width, counts, colour };
}

function durations({ pattern, flows }) {
  const predicted = models.map((name, at) => ({ name, colour: modelColour(at), values: flows.map((flow) => flow.predicted_s[name]) }));
  return {
    label: pattern,
    what: "flow",
    up: "duration of the flow",
    names: flows.map(({ id }) => String(id)),
    series: [{ name: "measured", colour: "ink", values: flows.map((flow) => flow.measured_s) }, ...predicted],
    ranges: flows.flatMap(({ groups_s: groups }, place) => groups.map(([low, high]) => [place, low, high])),
  };
}

// Drawings of more patterns than this slow browsers down; the histograms show all of them.
const most = 24;
drawBelow("Errors of all flows", drawBars, models.map((model, at) => histogram(model, modelColour(at))));
const more = data.patterns.length > most ? `, the first ${most} of ${data.patterns.length}` : "";
drawBelow(`Durations${more}: bars are groups of measured durations, points are medians and predictions`, drawPoints, data.patterns.slice(0, most).map(durations));
