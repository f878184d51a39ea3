// Bytes between ranks, in the order of their nodes, as nodes are filled and as was found best: darker is more.
const place = document.getElementById("picture");
const most = Math.max(1, ...data.matrices.flatMap((matrix) => matrix.cells));
const around = place.appendChild(Object.assign(document.createElement("div"), { className: "matrices" }));
for (const matrix of data.matrices) {
  const figure = around.appendChild(document.createElement("figure"));
  const canvas = figure.appendChild(document.createElement("canvas"));
  const pixels = Math.max(1, Math.floor(420 / matrix.side));
  canvas.width = canvas.height = matrix.side * pixels;
  const context = canvas.getContext("2d");
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim() || "#222";
  context.fillStyle = context.strokeStyle = ink;
  matrix.cells.forEach((bytes, at) => {
    if (bytes === 0) return;
    context.globalAlpha = 0.15 + (0.85 * Math.log1p(bytes)) / Math.log1p(most);
    context.fillRect((at % matrix.side) * pixels, Math.floor(at / matrix.side) * pixels, pixels, pixels);
  });
  context.globalAlpha = 0.35;
  const bounds = [0, ...matrix.nodes, matrix.side];
  for (let node = 1; node < bounds.length && matrix.nodes.length > 0; node += 1) {
    const side = (bounds[node] - bounds[node - 1]) * pixels;
    context.strokeRect(bounds[node - 1] * pixels + 0.5, bounds[node - 1] * pixels + 0.5, side - 1, side - 1);
  }
  const caption = figure.appendChild(document.createElement("figcaption"));
  caption.textContent = matrix.nodes.length > 0 ? `${matrix.mapping}; a square along the diagonal is a node` : matrix.mapping;
}
