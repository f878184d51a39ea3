// Lanes, painted pixel by pixel: the cost is one pass over the intervals in view, however many share a pixel.

// A CSS colour as the 32-bit word of an ImageData pixel.
function pixel(colour) {
  const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  dot.fillStyle = colour;
  dot.fillRect(0, 0, 1, 1);
  return new Uint32Array(dot.getImageData(0, 0, 1, 1).data.buffer)[0];
}

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const css = (name) => style.getPropertyValue("--" + name).trim();
  const colours = Array.from({ length: ACTIVITIES }, (_, code) => css("a" + code)).concat(css("lane"));
  return {
    colours, pixels: colours.map(pixel), lane: pixel(css("lane")), ink: css("ink"), quiet: css("quiet"),
    line: css("line"), card: css("card"), accent: css("accent"), heat: [css("heat-0"), css("heat-1")],
  };
}

// Calls whole(x0, x1, code) for runs of pixels that hold one interval only, and fills `bins` (CODES shares a column).
function columns(rank, view, width, bins, whole) {
  const scale = width / (view.to - view.from);
  bins.fill(0);
  for (let i = bisect(rank.n, (k) => rank.edge[k + 1] > view.from); i < rank.n && rank.edge[i] < view.to; i++) {
    const code = rank.code[i];
    const left = Math.max(0, (rank.edge[i] - view.from) * scale);
    const right = Math.min(width, (rank.edge[i + 1] - view.from) * scale);
    const first = Math.floor(left);
    const last = Math.floor(right);
    if (first === last) {
      bins[first * CODES + code] += right - left;
      continue;
    }
    const begin = Math.ceil(left);
    if (begin > first) bins[first * CODES + code] += begin - left;
    if (last < width) bins[last * CODES + code] += right - last;
    if (last > begin) whole(begin, last, code, right - left);
  }
}

// The shares of the ranks of all sources in each activity, `width` columns of CODES.
function sharesOf(sources, view, width, ranks) {
  const total = new Float64Array((width + 1) * CODES);
  const bins = new Float64Array((width + 1) * CODES);
  const step = (view.to - view.from) / width;
  for (const source of sources) {
    if (source.sums) {
      for (let code = 0; code < ACTIVITIES; code++) {
        let before = sumUpTo(source, code, view.from);
        for (let column = 0; column < width; column++) {
          const after = sumUpTo(source, code, view.from + (column + 1) * step);
          total[column * CODES + code] += (after - before) / step;
          before = after;
        }
      }
      continue;
    }
    columns(source, view, width, bins, (begin, last, code) => {
      for (let column = begin; column < last; column++) total[column * CODES + code] += 1;
    });
    for (let k = 0; k < total.length; k++) total[k] += bins[k];
  }
  for (let k = 0; k < total.length; k++) total[k] /= Math.max(1, ranks);
  return total;
}

function paintBox(words, stride, x0, x1, y0, y1, word) {
  for (let y = y0; y < y1; y++) words.fill(word, y * stride + x0, y * stride + x1);
}

// Paints the shares of a column from the bottom up.
function paintShares(words, stride, x, y0, y1, bins, at, pixels) {
  let filled = 0;
  for (let code = 0; code < IDLE; code++) {
    if (bins[at + code] === 0) continue;
    const low = y1 - Math.round(filled * (y1 - y0));
    filled = Math.min(1, filled + bins[at + code]);
    const high = y1 - Math.round(filled * (y1 - y0));
    for (let y = high; y < low; y++) words[y * stride + x] = pixels[code];
  }
}

// One lane from y0 to y1; `gap` device pixels part neighbours that are wide enough.
function paintLane(words, stride, x, width, y0, y1, lane, view, palette, bins, gap) {
  paintBox(words, stride, x, x + width, y0, y1, palette.lane);
  const [rank] = lane.sources;
  if (lane.sources.length > 1 || rank.sums) {
    const shares = sharesOf(lane.sources, view, width, lane.ranks);
    for (let column = 0; column < width; column++) paintShares(words, stride, x + column, y0, y1, shares, column * CODES, palette.pixels);
    return;
  }
  columns(rank, view, width, bins, (begin, end, code, wide) => {
    if (code === IDLE) return;
    paintBox(words, stride, x + begin, x + end - (wide > 8 * gap ? gap : 0), y0, y1, palette.pixels[code]);
  });
  for (let column = 0; column < width; column++) {
    paintShares(words, stride, x + column, y0, y1, bins, column * CODES, palette.pixels);
  }
}

// A canvas' drawing buffer in device pixels, ready to be painted.
function sized(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, w, h);
  return { context, ratio, w, h };
}
