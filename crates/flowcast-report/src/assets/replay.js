// The data block, decoded into typed arrays that are quick to search.
const ACTIVITIES = 9;
// What a rank does after its end.
const IDLE = ACTIVITIES;
const CODES = ACTIVITIES + 1;

// A rank of which each interval is known.
function decodeRank(rank) {
  const n = rank.nanos.length;
  const edge = new Float64Array(n + 1);
  const code = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    edge[i + 1] = edge[i] + rank.nanos[i];
    code[i] = rank.codes.charCodeAt(i) - 48;
  }
  return { edge, code, n, ranks: 1 };
}

// Lanes of which the shares by bucket are known: `sums` has the times up to each edge of a bucket, so that the times in
// any span of buckets, at any zoom, are one subtraction.
function decodeShares({ bucket_ns: width, buckets, ranks_per_lane: perLane, cells }, count, end) {
  const bytes = atob(cells);
  let at = 0;
  const number = () => {
    let [value, factor] = [0, 1];
    for (;;) {
      const byte = bytes.charCodeAt(at++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
  };
  const lanes = [];
  for (let first = 0; first < count; first += perLane) {
    const sums = new Float64Array((buckets + 1) * ACTIVITIES);
    for (let bucket = 0; bucket < buckets; bucket++) {
      const here = bucket * ACTIVITIES;
      const occurs = number();
      for (let code = 0; code < ACTIVITIES; code++) sums[here + ACTIVITIES + code] = sums[here + code] + ((occurs >> code) & 1 ? number() : 0);
    }
    lanes.push({ sums, width, buckets, end, ranks: Math.min(perLane, count - first), first });
  }
  return lanes;
}

// The time in one activity from 0 to `time`; inside a bucket it is spread evenly, in the last one up to the run's end.
function sumUpTo({ sums, width, end }, code, time) {
  const within = Math.max(0, Math.min(end, time));
  const bucket = Math.max(0, Math.min(Math.ceil(end / width) - 1, Math.floor(within / width)));
  const part = (within - bucket * width) / Math.min(width, end - bucket * width);
  const low = sums[bucket * ACTIVITIES + code];
  return low + part * (sums[(bucket + 1) * ACTIVITIES + code] - low);
}

// Adds the times of a source, a rank or a lane of shares, between two times to `times`, by activity.
function addTimes(source, from, to, times) {
  if (source.sums) {
    for (let code = 0; code < ACTIVITIES; code++) times[code] += sumUpTo(source, code, to) - sumUpTo(source, code, from);
    return;
  }
  const { edge, code, n } = source;
  for (let i = bisect(n, (k) => edge[k + 1] > from); i < n && edge[i] < to; i++) {
    times[code[i]] += Math.min(edge[i + 1], to) - Math.max(edge[i], from);
  }
}

function timesIn(sources, from, to) {
  const times = new Float64Array(CODES);
  for (const source of sources) addTimes(source, from, to, times);
  return times;
}

function decodeMessages(net) {
  const n = net.messages.kind.length;
  const column = () => new Float64Array(n);
  const messages = { n, kind: net.messages.kind, sent: column(), arrived: column(), received: column(), latest: column() };
  let sent = 0;
  let latest = 0;
  for (let i = 0; i < n; i++) {
    sent += net.messages.sent[i];
    messages.sent[i] = sent;
    messages.arrived[i] = sent + net.messages.flight[i];
    messages.received[i] = messages.arrived[i] + net.messages.wait[i];
    // Sorted by sending; with the latest end so far the first message of a span is found by bisection.
    messages.latest[i] = latest = Math.max(latest, messages.received[i]);
  }
  return messages;
}

function decode(net) {
  const count = net.ends.length;
  const ranks = net.ranks ? net.ranks.map(decodeRank) : null;
  const sources = ranks || decodeShares(net.shares, count, net.makespan_ns);
  const messages = decodeMessages(net);
  const [from, to] = [net.ends.map(() => []), net.ends.map(() => [])];
  for (let i = 0; i < messages.n; i++) {
    const [src, dst] = net.kinds[messages.kind[i]];
    from[src]?.push(i);
    to[dst]?.push(i);
  }
  const end = net.ends.reduce((a, b) => Math.max(a, b), net.makespan_ns);
  return { ...net, count, ranks, sources, messages, from, to, path: decodePath(net.path), end, busy: communicating(sources) };
}

// The lanes of a timeline: a name, the ranks and where their times come from.
function lanesOf(net, byNode) {
  const perLane = net.shares ? net.shares.ranks_per_lane : 1;
  const ranks = net.sources.map((source, i) => {
    const first = i * perLane;
    const last = first + source.ranks - 1;
    return { name: last > first ? `ranks ${first}–${last}` : `rank ${first}`, short: String(first), first, last, ranks: source.ranks, sources: [source], node: net.nodes[first] };
  });
  if (!byNode) return ranks;
  const nodes = new Map();
  for (const lane of ranks) {
    const known = nodes.get(lane.node);
    if (!known) nodes.set(lane.node, { ...lane, name: `node ${lane.node}`, short: String(lane.node), sources: [...lane.sources] });
    else Object.assign(known, { ranks: known.ranks + lane.ranks, last: lane.last, sources: [...known.sources, ...lane.sources] });
  }
  return [...nodes.values()].sort((a, b) => a.node - b.node);
}

// Whether the ranks of no lane of shares are on different nodes, and some node has several ranks.
function hasNodes(net) {
  const perLane = net.shares ? net.shares.ranks_per_lane : 1;
  const apart = net.nodes.every((node, rank) => node === net.nodes[rank - (rank % perLane)]);
  return apart && new Set(net.nodes).size < net.sources.length;
}

function decodePath({ limits, ranks, nanos }) {
  const edge = new Float64Array(nanos.length + 1);
  nanos.forEach((length, i) => (edge[i + 1] = edge[i] + length));
  return { n: nanos.length, edge, ranks, limits };
}

// From the first interval, or bucket, that is not all computation to the end of the last one; null if there is none.
function communicating(sources) {
  let [from, to] = [Infinity, -Infinity];
  for (const source of sources) {
    const [n, edge, counts] = source.sums
      ? [source.buckets, (i) => i * source.width, (i) => otherTime(source, i) > 0]
      : [source.n, (i) => source.edge[i], (i) => source.code[i] !== 0 && source.code[i] !== IDLE];
    let first = 0;
    let last = n - 1;
    while (first < n && !counts(first)) first++;
    while (last > first && !counts(last)) last--;
    if (first < n) [from, to] = [Math.min(from, edge(first)), Math.max(to, edge(last + 1))];
  }
  return from < to ? { from, to } : null;
}

function otherTime({ sums }, bucket) {
  let time = 0;
  for (let code = 1; code < ACTIVITIES; code++) time += sums[(bucket + 1) * ACTIVITIES + code] - sums[bucket * ACTIVITIES + code];
  return time;
}

// First index in [0, n) for which `holds`, which is false and then true; n if none.
function bisect(n, holds) {
  let low = 0;
  let high = n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function message(net, i) {
  const [src, dst, size, tag, call] = net.kinds[net.messages.kind[i]];
  const { sent, arrived, received } = net.messages;
  return { i, src, dst, size, tag, call: net.call_names[call] || "", sent: sent[i], arrived: arrived[i], received: received[i] };
}

// The interval of a rank at a time, or null.
function intervalAt(rank, time) {
  const i = bisect(rank.n, (k) => rank.edge[k + 1] > time);
  return i < rank.n && rank.edge[i] <= time ? { i, start: rank.edge[i], end: rank.edge[i + 1], code: rank.code[i] } : null;
}

// Indices of the messages that touch a span, up to `most`; and whether there are more.
function messagesIn(net, from, to, most) {
  const { n, sent, received, latest } = net.messages;
  const found = [];
  let i = bisect(n, (k) => latest[k] >= from);
  for (; i < n && sent[i] <= to; i++) {
    if (received[i] < from) continue;
    if (found.length === most) return { found, more: true };
    found.push(i);
  }
  return { found, more: false };
}

// The message that holds its sender during an interval, or null.
function messageHolding(net, rank, interval) {
  let best = null;
  for (const i of net.from[rank]) {
    const { sent, arrived } = net.messages;
    if (sent[i] > interval.start + 1) break;
    if (arrived[i] >= interval.end - 1) best = message(net, i);
  }
  return best;
}

// The message whose arrival ends a wait of `rank`, or null.
function messageEnding(net, rank, interval) {
  const next = net.ranks[rank].edge[interval.i + 2] ?? interval.end;
  let best = null;
  for (const i of net.to[rank]) {
    const { sent, arrived, received } = net.messages;
    if (sent[i] > interval.end) break;
    const fits = Math.abs(arrived[i] - interval.end) <= 1 || Math.abs(received[i] - interval.end) <= 1;
    if (fits && received[i] <= next + 1) best = message(net, i);
  }
  return best;
}
