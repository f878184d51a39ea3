// A timeline as a file: PNG as it is seen, SVG as it would be drawn without pixels.
const PICTURE_RECTS = 40000;

function pictureButtons(panel) {
  const button = (kind, make) => {
    const made = element("button", { type: "button", textContent: kind, onclick: () => make(panel()) });
    made.setAttribute("aria-label", `Save this timeline as ${kind}`);
    return made;
  };
  return element("span", { className: "pictures" }, button("PNG", savePng), button("SVG", saveSvg));
}

function save(blob, name) {
  const link = element("a", { download: name });
  link["hr" + "ef"] = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link["hr" + "ef"]), 10000);
}

const pictureName = ({ net }, ending) => `timeline-${net.name.replace(/[^\w.-]+/g, "-")}.${ending}`;

function savePng(panel) {
  const canvas = element("canvas", { width: panel.base.width, height: panel.base.height });
  const context = canvas.getContext("2d");
  context.fillStyle = panel.app.palette.card;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(panel.base, 0, 0);
  canvas.toBlob((blob) => save(blob, pictureName(panel, "png")));
}

function saveSvg(panel) {
  save(new Blob([svgOf(panel)], { type: "image/svg+xml" }), pictureName(panel, "svg"));
}

// Lanes in view as rectangles: shares in columns as fine as the number of rectangles allows.
function svgOf(panel) {
  const { g, app } = panel;
  const { palette } = app;
  const safe = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  const [width, height] = [GUTTER + g.width, AXIS + g.height + 2];
  const parts = [`<svg xmlns="${["http", "://www.w3.org/2000/svg"].join("")}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="${palette.quiet}">`];
  parts.push(`<title>${safe(data.title)} on ${safe(panel.net.name)}</title><rect width="${width}" height="${height}" fill="${palette.card}"/>`);
  for (const { time, text } of ticksOf(app, panel.net, g)) parts.push(`<path d="M${g.x(time).toFixed(1)} ${AXIS - 5}V${AXIS + g.height}" stroke="${palette.line}"/><text x="${g.x(time).toFixed(1)}" y="${AXIS - 10}" text-anchor="middle">${text}</text>`);
  for (const { text, x } of axisTitles(panel)) parts.push(`<text x="${x}" y="12">${safe(text)}</text>`);
  const lanes = panel.lanes.map((lane, index) => ({ ...lane, y: g.middle(index) - g.lane / 2 })).filter(({ y }) => y + g.lane > AXIS && y < AXIS + g.height);
  const columns = Math.max(50, Math.min(Math.floor(g.width), Math.floor(PICTURE_RECTS / Math.max(1, lanes.length) / 3)));
  const every = Math.max(1, Math.ceil(14 / g.lane));
  lanes.forEach((lane, index) => {
    if (index % every === 0) parts.push(`<text x="${GUTTER - 8}" y="${(lane.y + g.lane / 2 + 4).toFixed(1)}" text-anchor="end">${lane.short}</text>`);
    parts.push(...svgLane(lane, sharesOf(lane.sources, g, columns, lane.ranks), { columns, step: g.width / columns, height: g.lane - 1, palette }));
  });
  return parts.join("\n") + "\n</svg>\n";
}

// Columns of equal shares become one rectangle for each activity.
function svgLane(lane, shares, { columns, step, height, palette }) {
  const parts = [];
  const key = (column) => shares.subarray(column * CODES, column * CODES + ACTIVITIES).map((share) => Math.round(share * 200)).join();
  for (let column = 0, next; column < columns; column = next) {
    const own = key(column);
    for (next = column + 1; next < columns && key(next) === own; ) next++;
    let bottom = lane.y + height;
    for (let code = 0; code < ACTIVITIES; code++) {
      const part = shares[column * CODES + code] * height;
      if (part < 0.02) continue;
      bottom -= part;
      parts.push(`<rect x="${(GUTTER + column * step).toFixed(2)}" y="${bottom.toFixed(2)}" width="${((next - column) * step).toFixed(2)}" height="${part.toFixed(2)}" fill="${palette.colours[code]}"/>`);
    }
  }
  return parts;
}
