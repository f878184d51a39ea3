// The histograms and the points of a validation, each below its label.

const places = ["histograms", "points"].flatMap((id) => (data[id] ?? []).map((chart) => {
  const place = document.createElement("div");
  document.getElementById(id).append(Object.assign(document.createElement("h3"), { textContent: chart.label }), place);
  return [place, chart, id === "points" ? drawPoints : drawBars];
}));
function draw() {
  for (const [place, chart, drawing] of places) {
    place.replaceChildren();
    drawing(place, chart);
  }
}
draw();
addEventListener("resize", draw);
