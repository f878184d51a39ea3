// Numbers as text.
const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];

const unitFor = (nanos) => UNITS.find(([, size]) => Math.abs(nanos) >= size) || UNITS[3];

function digits(value) {
  const size = Math.abs(value);
  return size >= 1000 || size === 0 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
}

// A duration, to four digits.
function duration(nanos) {
  const [name, size] = unitFor(nanos);
  return (nanos / size).toFixed(size === 1 ? 0 : digits(nanos / size)) + " " + name;
}

// A median that is known to a percent or two, and exactly where all are as long as the longest.
function median(nanos, longest) {
  if (nanos === longest) return duration(nanos);
  const [name, size] = unitFor(nanos);
  return Number((nanos / size).toPrecision(3)) + " " + name;
}

// A duration, to two or three digits.
function brief(nanos) {
  const [name, size] = unitFor(nanos);
  const value = nanos / size;
  return value.toFixed(value < 10 && size > 1 ? 1 : 0) + " " + name;
}

// A point in time, exact enough to tell neighbours `step` apart, in the unit that suits `largest`.
function moment(nanos, step, largest = nanos) {
  const [name, size] = unitFor(Math.max(Math.abs(largest), step));
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return (nanos / size).toFixed(size === 1 ? 0 : places) + " " + name;
}

// To the nanosecond.
const exactly = (nanos) => moment(nanos, 1);

const count = (number) => number.toLocaleString("en");

// A sum of sizes, to three digits, in the units of rates.
function amount(size) {
  const [name, unit] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, unit]) => size >= unit) || ["B", 1];
  return Number((size / unit).toPrecision(3)) + " " + name;
}

// The size of one message: exact where it is a whole number of binary units.
function bytes(size) {
  const [name, unit] = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]].find(([, unit]) => size >= unit && size % unit === 0) || [];
  return unit ? `${size / unit} ${name}` : amount(size);
}

// 12.3k, 4.56M, with a unit behind if there is one.
function brieflyCounted(number, unit = "") {
  const [name, size] = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, size]) => number >= size) || ["", 1];
  return Number((number / size).toPrecision(3)) + (unit ? " " : "") + name + unit;
}

// Bytes of a text such as 64KiB or 1MB; NaN if it is none.
function readBytes(text) {
  const found = /^\s*([0-9.]+)\s*([kMG]?)(i?)B?\s*$/.exec(text || "");
  return found ? Number(found[1]) * (found[3] ? 1024 : 1000) ** " kMG".indexOf(found[2] || " ") : NaN;
}

const percent = (share) => (share * 100).toFixed(1) + " %";

// Nanoseconds of a text such as 1.5ms; NaN without a unit.
function readTime(text) {
  const found = /^([0-9.]+(?:e[+-]?[0-9]+)?)(ns|us|µs|ms|s)$/i.exec(text || "");
  return found ? Number(found[1]) * { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 }[found[2].toLowerCase()] : NaN;
}

// The times of an axis: a round step of which about `most` fit into the span.
function ticks(from, to, most) {
  const rough = Math.max(1, (to - from) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const times = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) times.push(time);
  return { step, times };
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
