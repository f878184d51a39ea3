// Maps of the best algorithm over ranks and sizes, one for each operation, each below the legend of its colours.
// Colours of the page, those first that are told apart best; what comes after them has the last one.
const COLOURS = ["a1", "a3", "a6", "a2", "a4", "a5", "a7", "a8", "a0"];
const place = document.getElementById("picture");
const operations = [...new Set(data.choices.map((choice) => choice.operation))];
for (const operation of operations) {
  const own = data.choices.filter((choice) => choice.operation === operation);
  const sizes = [...new Set(own.map((choice) => choice.bytes))].sort((a, b) => a - b);
  const ranks = [...new Set(own.map((choice) => choice.ranks))].sort((a, b) => a - b);
  const cellsOf = (name) => own.filter((choice) => choice.fastest === name).length;
  const names = [...new Set(own.map((choice) => choice.fastest))].sort((a, b) => cellsOf(b) - cellsOf(a) || (a < b ? -1 : 1));
  const colourOf = (name) => COLOURS[Math.min(names.indexOf(name), COLOURS.length - 1)];
  const heading = document.createElement("h3");
  heading.textContent = operation;
  const around = Object.assign(document.createElement("div"), { className: "scroll" });
  const table = around.appendChild(Object.assign(document.createElement("table"), { className: "map" }));
  const head = table.insertRow();
  head.insertCell().textContent = "ranks \\ size";
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
      if (isGain) cell.className = colourOf(choice.fastest);
      else cell.style.background = pale(colourOf(choice.fastest));
    }
  }
  place.append(heading, legendOf(names, colourOf), around);
}

// Names beside their colours, and what pale ones say.
function legendOf(names, colourOf) {
  const legend = document.createElement("ul");
  legend.className = "legend";
  const entry = (text, sample) => {
    const item = legend.appendChild(document.createElement("li"));
    if (sample) item.append(sample);
    item.append(text);
  };
  for (const name of names) {
    entry(name, Object.assign(document.createElement("i"), { className: colourOf(name) }));
  }
  const sample = document.createElement("i");
  sample.style.background = pale("a1");
  entry("pale: fastest, but by no more than noise; the library's own choice is kept", sample);
  return legend;
}

function pale(colour) {
  return `color-mix(in srgb, var(--${colour}) 20%, var(--card))`;
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
