// Maps of the best algorithm over ranks and sizes, one for each operation.
const COLOURS = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2", "#999999", "#8c564b"];
const place = document.getElementById("picture");
const operations = [...new Set(data.choices.map((choice) => choice.operation))];
for (const operation of operations) {
  const own = data.choices.filter((choice) => choice.operation === operation);
  const sizes = [...new Set(own.map((choice) => choice.bytes))].sort((a, b) => a - b);
  const ranks = [...new Set(own.map((choice) => choice.ranks))].sort((a, b) => a - b);
  const names = [...new Set(own.map((choice) => choice.fastest))].sort();
  const heading = document.createElement("h3");
  heading.textContent = operation;
  const table = document.createElement("table");
  const head = table.insertRow();
  head.insertCell().textContent = "ranks";
  for (const size of sizes) head.insertCell().textContent = bytesText(size);
  for (const count of ranks) {
    const row = table.insertRow();
    row.insertCell().textContent = count;
    for (const size of sizes) {
      const cell = row.insertCell();
      const choice = own.find((other) => other.ranks === count && other.bytes === size);
      if (!choice) continue;
      const isGain = choice.best !== "default";
      cell.textContent = isGain ? `${choice.best} -${Math.round(100 * choice.gain)} %` : "no difference";
      cell.title = `${choice.fastest}: ${(1e6 * choice.predicted_s).toPrecision(3)} us; faster with probability ${choice.sure.toFixed(2)}`;
      cell.style.background = COLOURS[names.indexOf(choice.fastest) % COLOURS.length] + (isGain ? "" : "33");
      if (isGain) cell.style.color = "#000";
    }
  }
  place.append(heading, table);
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let power = 0;
  while (power < 3 && bytes >= 1024) {
    bytes /= 1024;
    power += 1;
  }
  return `${+bytes.toPrecision(3)} ${units[power]}`;
}
