// The data block, decoded into typed arrays that are quick to search.
const IDLE = 7;

function decodeRank(rank) {
  const n = rank.nanos.length;
  const edge = new Float64Array(n + 1);
  const code = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    edge[i + 1] = edge[i] + rank.nanos[i];
    code[i] = rank.codes.charCodeAt(i) - 48;
  }
  return { edge, code, n };
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
  const ranks = net.ranks.map(decodeRank);
  const messages = decodeMessages(net);
  const [from, to] = [ranks.map(() => []), ranks.map(() => [])];
  for (let i = 0; i < messages.n; i++) {
    const [src, dst] = net.kinds[messages.kind[i]];
    from[src]?.push(i);
    to[dst]?.push(i);
  }
  const ends = ranks.map((rank) => rank.edge[rank.n]);
  const end = ends.reduce((a, b) => Math.max(a, b), Math.max(net.makespan_ns, 0));
  const path = decodePath(net.path);
  return { ...net, ranks, messages, from, to, path, end, busy: communicating(ranks) };
}

function decodePath({ limits, ranks, nanos }) {
  const edge = new Float64Array(nanos.length + 1);
  nanos.forEach((length, i) => (edge[i + 1] = edge[i] + length));
  return { n: nanos.length, edge, ranks, limits };
}

// From the first interval that is not computation to the end of the last one; null if all is computation.
function communicating(ranks) {
  let [from, to] = [Infinity, -Infinity];
  for (const { edge, code, n } of ranks) {
    const counts = (i) => code[i] !== 0 && code[i] !== IDLE;
    let first = 0;
    let last = n - 1;
    while (first < n && !counts(first)) first++;
    while (last > first && !counts(last)) last--;
    if (first < n) [from, to] = [Math.min(from, edge[first]), Math.max(to, edge[last + 1])];
  }
  return from < to ? { from, to } : null;
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
  const [src, dst, size, tag] = net.kinds[net.messages.kind[i]];
  const { sent, arrived, received } = net.messages;
  return { i, src, dst, size, tag, sent: sent[i], arrived: arrived[i], received: received[i] };
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
