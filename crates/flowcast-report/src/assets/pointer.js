// What the pointer is on, and what pointer, wheel and keys do to a timeline.

// What a point is on; an interval that waits brings the message that ends it.
function pointAt(panel, x, y) {
  const { g, net, app } = panel;
  if (y < AXIS || y > AXIS + g.height) return null;
  const lane = panel.lanes[g.lane_at(y)];
  if (!lane) return null;
  if (x < GUTTER) return wholeLane(panel, lane);
  const near = arrowAt(net, panel.drawn, g, x, y);
  if (near) return { message: near };
  const time = g.time(x);
  if (lane.ranks > 1 || !net.ranks) return sharesAt(panel, lane, time);
  const rank = lane.first;
  const interval = intervalAt(net.ranks[rank], time);
  if (!interval) return null;
  const arriving = interval.code === 2 || interval.code === 3 ? messageEnding(net, rank, interval) : null;
  const leaving = !arriving && (interval.code === 3 || interval.code === 4) ? messageHolding(net, rank, interval) : null;
  const step = app.path ? stepAt(net.path, rank, time) : null;
  return { rank, interval, step, message: arriving || leaving, said: arriving ? "waits for message " : "held by message " };
}

// The shares of a lane in the bucket under the pointer, or in its pixel if that is longer.
function sharesAt(panel, lane, time) {
  const { net, g } = panel;
  const pixel = (g.to - g.from) / g.width;
  const width = net.shares ? Math.max(net.shares.bucket_ns, pixel) : pixel;
  const from = Math.floor(time / width) * width;
  return { lane, from, to: from + width, times: timesIn(lane.sources, from, from + width) };
}

// The step of the critical path that a rank has at a time, or null.
function stepAt(path, rank, time) {
  const i = bisect(path.n, (k) => path.edge[k + 1] > time);
  return i < path.n && path.ranks[i] === rank ? { limit: path.limits.charCodeAt(i) - 48, length: path.edge[i + 1] - path.edge[i] } : null;
}

// A lane as a whole: its time in view by activity, and its messages there.
function wholeLane(panel, lane) {
  const { net, g } = panel;
  const times = timesIn(lane.sources, g.from, g.to);
  const index = panel.lanes.indexOf(lane);
  const mine = messagesIn(net, g.from, g.to, ALL).found.map((i) => message(net, i));
  const ends = mine.filter((one) => g.laneOf(one.src) === index || g.laneOf(one.dst) === index);
  return { lane, times, ends: ends.length <= FEW ? ends : [], messages: ends.length };
}

function swatch(app, code) {
  const made = element("i");
  made.style.background = app.palette.colours[code];
  return made;
}

function describe(panel, hover) {
  const { app } = panel;
  const lines = [];
  if (hover.times) {
    const span = hover.to ? `, ${duration(hover.to - hover.from)} from ${exactly(hover.from)}` : " in this view";
    lines.push(element("b", {}, hover.lane.name + span));
    const whole = hover.times.reduce((sum, time) => sum + time, 0);
    app.activities.forEach((name, code) => {
      if (hover.times[code]) lines.push(swatch(app, code), `${name} ${duration(hover.times[code])}, ${percent(hover.times[code] / whole)}`, element("br"));
    });
    if (hover.ends) lines.push(`${count(hover.messages)} messages sent or received`);
  }
  if (hover.interval) {
    const { code, start, end } = hover.interval;
    const name = code === IDLE ? "idle" : app.activities[code];
    lines.push(element("b", {}, swatch(app, code), `rank ${hover.rank}: ${name}, ${duration(end - start)}`), `from ${exactly(start)} to ${exactly(end)}`);
  }
  if (hover.step) lines.push(element("b", {}, `on the critical path: ${app.limits[hover.step.limit]}, ${duration(hover.step.length)}`));
  if (hover.message) {
    const { src, dst, size, tag, sent, arrived, received } = hover.message;
    lines.push(element("b", {}, `${hover.said || "message "}${src} → ${dst}, ${bytes(size)}, tag ${tag}`), hover.message.call, element("br"));
    lines.push(`sent ${exactly(sent)}`, element("br"), `arrived ${exactly(arrived)} (+${duration(arrived - sent)})`, element("br"));
    lines.push(`received ${exactly(received)} (+${duration(received - arrived)})`);
  }
  return lines;
}

// The position under a place on the panel, by what networks are aligned.
const positionAt = ({ app, net, g }, x) => app.measure.at(net, g.time(Math.max(GUTTER, x)));

function listen(panel) {
  const { drawing, app } = panel;
  const at = (event) => {
    const box = drawing.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = null;
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = at(event);
    drag = { x, y, view: { ...app.view }, scroll: panel.scroll, moves: event.shiftKey, begun: false };
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (drag && !drag.moves) {
      drag.begun ||= Math.abs(x - drag.x) > 3;
      if (drag.begun) app.select(positionAt(panel, drag.x), positionAt(panel, x));
      return;
    }
    if (drag) {
      const shift = ((drag.x - x) / panel.g.width) * (drag.view.to - drag.view.from);
      panel.scroll = drag.scroll + drag.y - y;
      return app.look(drag.view.from + shift, drag.view.to + shift);
    }
    point(panel, x, y, event);
  });
  const stop = () => {
    if (drag && !drag.moves && !drag.begun) app.select(0, 0);
    drag = null;
    app.settle();
  };
  drawing.addEventListener("pointerup", stop);
  drawing.addEventListener("pointercancel", stop);
  drawing.addEventListener("pointerleave", () => leave(panel));
  drawing.addEventListener("dblclick", (event) => app.zoom(event.shiftKey ? 2 : 0.4, positionAt(panel, at(event)[0])));
  drawing.addEventListener("wheel", (event) => wheel(panel, event, at(event)[0]), { passive: false });
  drawing.addEventListener("keydown", (event) => key(panel, event));
}

function point(panel, x, y, event) {
  const { app } = panel;
  panel.hover = pointAt(panel, x, y);
  app.cross = x >= GUTTER ? positionAt(panel, x) : null;
  app.overlays();
  if (panel.hover) app.tip(event, describe(panel, panel.hover));
  else app.tip(null);
}

function leave(panel) {
  [panel.hover, panel.app.cross] = [null, null];
  panel.app.overlays();
  panel.app.tip(null);
}

// The wheel moves the page unless the timeline has been clicked into or Ctrl is held.
function wheel(panel, event, x) {
  const { app } = panel;
  const chosen = document.activeElement === panel.drawing;
  if (!chosen && !event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 30 : 1;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    app.pan((((event.deltaX || event.deltaY) * unit) / panel.g.width));
  } else {
    app.zoom(2 ** ((Math.max(-240, Math.min(240, event.deltaY * unit)) / 240)), positionAt(panel, x));
  }
}

function key(panel, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { app } = panel;
  const scrollBy = (lanes) => {
    panel.scroll += lanes * panel.g.lane;
    app.redraw();
  };
  const keys = {
    ArrowLeft: () => app.pan(-0.15), ArrowRight: () => app.pan(0.15), ArrowUp: () => scrollBy(-4), ArrowDown: () => scrollBy(4),
    "+": () => app.zoom(0.6), "=": () => app.zoom(0.6), "-": () => app.zoom(1 / 0.6), 0: () => app.whole(), Home: () => app.whole(), c: () => app.communicating(),
    s: () => app.select(app.view.from, app.view.to), Enter: () => app.zoomToSelection(), Escape: () => app.select(0, 0),
  };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}
