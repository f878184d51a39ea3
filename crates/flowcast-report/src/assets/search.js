// The search in the messages, which without any condition shows those longest in flight.
const RESULTS = 20;

function startSearch(app, net) {
  const form = document.getElementById("search");
  const calls = ["any", ...net.call_names];
  form.elements.call.replaceChildren(...calls.map((name) => element("option", { value: name, textContent: name })));
  form.onsubmit = (event) => event.preventDefault();
  form.oninput = () => showFound(app, net, form.elements);
  form.onreset = () => setTimeout(form.oninput);
  showFound(app, net, form.elements);
}

// What a form asks for, as conditions on the kind of a message; a field that cannot be read says so.
function conditions(net, { rank, tag, size, most, call }) {
  const asked = [];
  const ask = (field, read, holds) => {
    const value = field.value.trim() === "" ? null : read(field.value);
    field.setAttribute("aria-invalid", Number.isNaN(value));
    if (value !== null && !Number.isNaN(value)) asked.push((kind) => holds(kind, value));
  };
  const whole = (text) => (/^\s*-?\d+\s*$/.test(text) ? Number(text) : NaN);
  ask(rank, whole, ([src, dst], value) => src === value || dst === value);
  ask(tag, whole, (kind, value) => kind[3] === value);
  ask(size, readBytes, (kind, value) => kind[2] >= value);
  ask(most, readBytes, (kind, value) => kind[2] <= value);
  if (call.value !== "any") asked.push((kind) => net.call_names[kind[4]] === call.value);
  return asked;
}

function showFound(app, net, fields) {
  const asked = conditions(net, fields);
  const kinds = net.kinds.map((kind) => asked.every((holds) => holds(kind)));
  const { n, kind, sent, arrived } = net.messages;
  const found = [];
  for (let i = 0; i < n; i++) if (kinds[kind[i]]) found.push(i);
  found.sort((a, b) => arrived[b] - sent[b] - (arrived[a] - sent[a]) || a - b);
  const among = net.messages_left_out ? `, among the ${count(n)} of ${count(net.flights.number)} longest in flight` : "";
  const shown = Math.min(RESULTS, found.length);
  const which = found.length > shown ? `; the ${shown} longest in flight are listed` : "";
  document.getElementById("found").textContent = `${count(found.length)} ${found.length === 1 ? "message" : "messages"} found${among}${which}.`;
  document.querySelector("#results tbody").replaceChildren(...found.slice(0, RESULTS).map((i) => resultRow(app, net, message(net, i))));
}

function resultRow(app, net, one) {
  const cells = [bytes(one.size), one.tag, one.call, exactly(one.sent), duration(one.arrived - one.sent), duration(one.received - one.arrived)];
  const show = element("button", { type: "button", textContent: "show", onclick: () => app.showMessage(net, one) });
  show.setAttribute("aria-label", `Show message ${one.src} to ${one.dst}, sent at ${exactly(one.sent)}, in the timeline`);
  const head = element("th", { scope: "row", textContent: `${one.src} → ${one.dst}` });
  return element("tr", {}, head, ...cells.map((text, k) => element("td", { className: k === 2 ? "" : "n" }, String(text))), element("td", {}, show));
}
