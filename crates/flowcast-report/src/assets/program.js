// The errors of the whole run and of its regions, a point for each prediction.

const most = 40; // More points than this cannot be told apart.
const rows = data.rows.filter(({ quantity, errors }) => errors && (quantity === "total" || quantity === "region"));
const parts = [];
for (let first = 0; first < rows.length; first += most) {
  const part = rows.slice(first, first + most);
  parts.push({
    label: `Runs and regions ${first + 1} to ${first + part.length} of ${rows.length}`,
    what: "run or region",
    up: "error, predicted minus measured (%)",
    names: part.map(({ name }) => name),
    isShare: true,
    series: data.predictions.map(({ prediction: name }, at) => ({ name, colour: modelColour(at), values: part.map(({ errors }) => errors[name]) })),
    ranges: [],
  });
}
drawBelow("Errors", drawPoints, parts);
