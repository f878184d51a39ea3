// Positions in a run by which networks are aligned: the time in ns, or the fraction of the program's events that are done.

// By `fraction of events done` at each of `times`, both rising; between them time passes evenly.
function progressOf(net, isWhole) {
  const [times, done] = isWhole ? eventsOf(net) : sendsOf(net);
  return {
    at: (time) => (time >= net.end ? 1 : between(times, done, Math.max(0, time))),
    time: (position) => (position >= 1 ? net.end : between(done, times, Math.max(0, position))),
  };
}

// Every message is sent once and received once.
function eventsOf({ messages, end }) {
  const { n, sent, received } = messages;
  const events = new Float64Array(2 * n);
  events.set(sent);
  events.set(received, n);
  events.sort();
  const times = Float64Array.from({ length: 2 * n + 2 }, (_, i) => (i === 0 ? 0 : (events[i - 1] ?? end)));
  return [times, times.map((_, i) => i / (2 * n + 1))];
}

// Where messages are left out of the file, by what the curve of the rate counts; a bucket without any still passes.
function sendsOf({ rate, end }) {
  const buckets = Math.max(1, Math.min(rate.messages.length, Math.ceil(end / rate.width_ns)));
  const all = rate.messages.reduce((sum, number) => sum + number, buckets);
  const [times, done] = [new Float64Array(buckets + 1), new Float64Array(buckets + 1)];
  for (let i = 0; i < buckets; i++) {
    times[i + 1] = i + 1 < buckets ? (i + 1) * rate.width_ns : end;
    done[i + 1] = done[i] + ((rate.messages[i] ?? 0) + 1) / all;
  }
  return [times, done];
}

// The value at `x` on straight lines through points that rise with their index.
function between(xs, ys, x) {
  const i = Math.min(xs.length - 1, bisect(xs.length, (k) => xs[k] > x));
  if (i === 0) return ys[0];
  const part = xs[i] > xs[i - 1] ? Math.min(1, (x - xs[i - 1]) / (xs[i] - xs[i - 1])) : 1;
  return ys[i - 1] + part * (ys[i] - ys[i - 1]);
}

// What an axis measures: the whole of it, the least span that is shown, and its text.
const ALIGNMENTS = {
  time: {
    title: "time since the start",
    least: 10,
    whole: (nets) => Math.max(1, ...nets.map((net) => net.end)),
    at: (_, time) => time,
    time: (_, position) => position,
    text: (position) => exactly(Math.round(position)),
    span: (from, to) => duration(to - from),
  },
  position: {
    title: "program position: events done, %",
    least: 1e-7,
    whole: () => 1,
    at: (net, time) => net.progress.at(time),
    time: (net, position) => net.progress.time(position),
    text: (position) => `${+(position * 100).toFixed(3)} %`,
    span: (from, to) => `${+((to - from) * 100).toPrecision(3)} % of the events`,
  },
};

// Ticks of a panel between two positions: where they lie in its own time, and their text.
function ticksOf(app, net, g) {
  const { from, to } = app.view;
  if (app.align === "time") {
    const { step, times } = ticks(from, to, g.width / 110);
    return times.map((time) => ({ time, text: time === 0 ? "0" : moment(time, step, to) }));
  }
  // In millionths of a percent, so that round steps are whole numbers.
  const { step, times } = ticks(from * 1e8, to * 1e8, g.width / 110);
  const places = Math.max(0, Math.ceil(6 - Math.log10(step) - 1e-9));
  const kept = [];
  for (const position of times) {
    const time = net.progress.time(position / 1e8);
    // Where many events happen at once, texts would cover one another.
    if (kept.length && g.x(time) - g.x(kept.at(-1).time) < 56) continue;
    kept.push({ time, text: `${(position / 1e6).toFixed(places)} %` });
  }
  return kept;
}
