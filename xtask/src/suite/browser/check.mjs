// Uses a report page in a real browser: node check.mjs BROWSER PAGE REPLAY.json FOLDER [BROWSER OPTION]...
// Speaks the browser's DevTools protocol over a pipe, so that neither a port nor a package is needed. Prints what does not
// hold and then fails; pictures stay in FOLDER.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const [browser, page, replay, folder, ...options] = process.argv.slice(2);
const WITHIN_MS = 3000;
const faults = [];
const check = (holds, fault) => holds || faults.push(fault);

// The protocol: one JSON text after the other, each ended by a zero.
const child = spawn(browser, ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND", `--user-data-dir=${folder}/profile`, "--remote-debugging-pipe", ...options, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const waiting = new Map();
const events = [];
let [number, unread, session] = [0, "", undefined];
child.stdio[4].setEncoding("utf8").on("data", (text) => {
  const parts = (unread + text).split("\0");
  unread = parts.pop();
  for (const part of parts) {
    const { id, result, error, method, params } = JSON.parse(part);
    if (method) events.push({ method, params });
    else if (error) waiting.get(id)?.[1](new Error(error.message));
    else waiting.get(id)?.[0](result);
  }
});
const send = (method, params = {}) => new Promise((resolve, reject) => {
  waiting.set(++number, [resolve, reject]);
  child.stdio[3].write(JSON.stringify({ id: number, method, params, sessionId: session }) + "\0");
});
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const run = async (expression) => {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
  if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description || exceptionDetails.text}`);
  return result.value;
};
// What was asked for is drawn in the next frame.
const settled = () => run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
const text = (selector) => run(`document.querySelector(${JSON.stringify(selector)}).textContent`);
const boxOf = (selector) => run(`(() => { const it = document.querySelector(${JSON.stringify(selector)}); it.scrollIntoView({ block: "center", behavior: "instant" }); const { x, y, width, height } = it.getBoundingClientRect(); return { x, y, width, height }; })()`);
const mouse = (type, x, y, more = {}) => send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1, ...more });
const click = async (selector) => {
  const { x, y, width, height } = await boxOf(selector);
  for (const type of ["mousePressed", "mouseReleased"]) await mouse(type, x + width / 2, y + height / 2);
  await settled();
};
const key = async (key, code) => {
  for (const type of ["keyDown", "keyUp"]) await send("Input.dispatchKeyEvent", { type, key, text: key.length === 1 && type === "keyDown" ? key : undefined, windowsVirtualKeyCode: code });
  await settled();
};
const fill = async (name, value) => {
  await click(`#search [name=${name}]`);
  await send("Input.insertText", { text: value });
  await settled();
};
const size = async (width, height) => {
  await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  await settled();
  await pause(150);
};
const picture = async (name) => {
  const { cssContentSize } = await send("Page.getLayoutMetrics");
  const clip = { x: 0, y: 0, width: cssContentSize.width, height: Math.min(cssContentSize.height, 6000), scale: 1 };
  const { data } = await send("Page.captureScreenshot", { captureBeyondViewport: true, clip });
  writeFileSync(`${folder}/${name}.png`, Buffer.from(data, "base64"));
};

async function open() {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
  for (const domain of ["Page", "Runtime", "Log", "Network", "Accessibility", "DOM"]) await send(`${domain}.enable`);
  await size(1400, 900);
  const start = Date.now();
  await send("Page.navigate", { url: `file://${page}` });
  while (!(await run("!!globalThis.flowcast").catch(() => false))) {
    if (Date.now() - start > 30000) throw new Error("the page's program did not start within 30 s");
    await pause(20);
  }
  await settled();
  const took = Date.now() - start;
  console.log(`${page}: ${(readFileSync(page).length / 1e6).toFixed(1)} MB, drawn after ${took} ms`);
  check(took < WITHIN_MS, `the page was drawn after ${took} ms, expected less than ${WITHIN_MS}`);
}

// The shares that are drawn, at two zooms, against the JSON of the same replay.
async function compareShares() {
  const ranks = JSON.parse(readFileSync(replay, "utf8")).ranks;
  const sum = (field) => ranks.reduce((total, rank) => total + rank[field] * 1e9, 0);
  const expected = [sum("compute_s"), sum("overhead_s"), sum("blocked_s")];
  const drawn = await run(`(() => {
    const { app, sharesOf } = flowcast;
    const [panel] = app.panels;
    const sums = (from, to) => {
      app.look(from, to);
      const { view } = app;
      const width = Math.round(panel.g.width);
      const sum = [0, 0, 0];
      for (const lane of panel.lanes) {
        const shares = sharesOf(lane.sources, view, width, lane.ranks);
        for (let k = 0; k < width * 10; k++) if (k % 10 < 9) sum[Math.min(2, k % 10)] += shares[k] * ((view.to - view.from) / width) * lane.ranks;
      }
      return sum;
    };
    const parts = Array.from({ length: 8 }, (_, k) => sums((app.full * k) / 8, (app.full * (k + 1)) / 8));
    return [sums(0, app.full), parts.reduce((one, other) => one.map((time, k) => time + other[k]))];
  })()`);
  const whole = expected.reduce((total, time) => total + time);
  for (const [zoom, sums] of drawn.entries()) {
    sums.forEach((time, k) => check(Math.abs(time - expected[k]) <= 1e-6 * whole, `zoom ${zoom}: found ${time} ns of ${["compute", "overhead", "blocked"][k]} drawn, expected ${expected[k]} as in the JSON`));
  }
}

async function useTimeline() {
  const view = () => run("flowcast.app.view.to - flowcast.app.view.from");
  await click("#reset");
  const whole = await view();
  await click("#zoom-in");
  check((await view()) < whole, "the button + does not zoom in");
  await click("#reset");
  check((await view()) === whole, "`Whole run` does not show the whole run");
  const { x, y, width, height } = await boxOf(".drawing");
  await mouse("mouseMoved", x + width / 2, y + 40, { button: "none" });
  await settled();
  check(await run(`!document.getElementById("tip").hidden && document.getElementById("tip").textContent.length > 10`), "nothing is said of what the pointer is on");
  await mouse("mousePressed", x + width * 0.3, y + 40);
  for (const part of [0.35, 0.45, 0.6]) await mouse("mouseMoved", x + width * part, y + height / 2, { buttons: 1 });
  await mouse("mouseReleased", x + width * 0.6, y + height / 2);
  await settled();
  check(/^Selected: /.test(await text("#selected")), "dragging selects nothing");
  check((await run(`document.querySelectorAll("#selection-table tbody tr").length`)) >= 4, "the selection has no statistics");
  await picture("selection");
  await run(`document.querySelector(".drawing").focus()`);
  await key("Enter", 13);
  check(Math.abs((await view()) / whole - 0.3) < 0.05, `Enter shows ${await view()} ns, expected the selection, about 0.3 of ${whole}`);
  await key("Escape", 27);
  check(await run(`document.getElementById("selection").hidden`), "Escape does not end the selection");
  const before = await run("flowcast.app.view.from");
  await key("ArrowRight", 39);
  check((await run("flowcast.app.view.from")) > before, "the right arrow key does not move the view");
  await mouse("mouseWheel", x + width / 2, y + 40, { deltaX: 0, deltaY: -240, modifiers: 2, button: "none" });
  await pause(100);
  check((await view()) < 0.3 * whole, "Ctrl and the wheel do not zoom in");
  await key("0", 48);
  check((await view()) === whole, "the key 0 does not show the whole run");
  check(await run(`flowcast.svgOf(flowcast.app.panels[0]).split("<rect").length > 20`), "the picture as SVG is empty");
}

// Lanes of nodes, where there are nodes of several ranks.
async function useNodes() {
  if (await run(`document.getElementById("grouping").parentElement.hidden`)) return;
  const choose = (value) => run(`(() => { const it = document.getElementById("grouping"); it.value = "${value}"; it.dispatchEvent(new Event("change")); })()`);
  const lanes = () => run("flowcast.app.panels[0].lanes.length");
  const ranks = await lanes();
  await choose("node");
  await settled();
  const nodes = await run("new Set(flowcast.app.nets[0].nodes).size");
  check((await lanes()) === nodes, `found ${await lanes()} lanes of nodes, expected ${nodes}`);
  await compareShares();
  await choose("rank");
  await settled();
  check((await lanes()) === ranks, `found ${await lanes()} lanes of ranks, expected ${ranks}`);
}

async function useSearch() {
  const found = async () => Number((await text("#found")).replace(/,/g, "").match(/^\d+/)[0]);
  const all = await found();
  await fill("rank", "0");
  const ofRank = await found();
  check(ofRank > 0 && ofRank < all, `a search for rank 0 finds ${ofRank} of ${all} messages`);
  const heads = await run(`[...document.querySelectorAll("#results tbody th")].map((head) => head.textContent)`);
  check(heads.every((head) => head.split(" → ").includes("0")), `a search for rank 0 lists ${heads}`);
  await fill("size", "1 parsec");
  check((await run(`document.querySelector("#search [name=size]").getAttribute("aria-invalid")`)) === "true", "a size that is none is not marked");
  await click("#search button[type=reset]");
  await pause(50);
  check((await found()) === all, "`Clear` does not end the search");
  await click("#results tbody button");
  check(await run(`flowcast.app.view.to - flowcast.app.view.from < flowcast.app.full`), "`show` does not show the message");
  await click("#reset");
}

async function checkNames() {
  const { nodes } = await send("Accessibility.getFullAXTree");
  const controls = ["button", "checkbox", "combobox", "textbox", "searchbox", "img", "region", "group", "search"];
  for (const { role, name, ignored } of nodes) {
    if (!ignored && controls.includes(role?.value)) check(name?.value, `found a ${role.value} without a name`);
  }
  check(nodes.some(({ role, name }) => role?.value === "button" && name?.value === "Zoom in"), "found no button `Zoom in`");
}

// The contrast of all text with what is behind it: 4.5, or 3 if it is large (WCAG 2.1, 1.4.3).
async function checkContrast(scheme) {
  await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  await pause(200);
  const low = await run(`(() => {
    const dot = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const read = (colour) => { dot.clearRect(0, 0, 1, 1); dot.fillStyle = colour; dot.fillRect(0, 0, 1, 1); return [...dot.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
    const behind = (it) => { for (; it; it = it.parentElement) { const colour = read(getComputedStyle(it).backgroundColor); if (colour[3] > 250) return colour; } return [255, 255, 255]; };
    const low = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      const it = node.parentElement;
      if (!node.data.trim() || !it.checkVisibility() || it.closest("script, style, noscript, option")) continue;
      const style = getComputedStyle(it);
      const [one, other] = [light(read(style.color)), light(behind(it))].sort((a, b) => b - a);
      const ratio = (one + 0.05) / (other + 0.05);
      const points = parseFloat(style.fontSize) * 0.75;
      if (ratio < (points >= 18 || (points >= 14 && style.fontWeight >= 700) ? 3 : 4.5)) low.push(ratio.toFixed(2) + " of <" + it.tagName + " class=" + it.className + "> " + node.data.trim().slice(0, 40));
    }
    return [...new Set(low)];
  })()`);
  low.forEach((where) => check(false, `${scheme}: found a contrast of ${where}, expected 4.5 (3 if large)`));
}

try {
  await open();
  await compareShares();
  await useTimeline();
  await useNodes();
  await useSearch();
  await checkNames();
  await checkContrast("dark");
  await picture("dark");
  await checkContrast("light");
  await picture("wide");
  for (const width of [1100, 900, 420]) {
    await size(width, 900);
    const [wide, cut] = await run(`[document.scrollingElement.scrollWidth, document.getElementById("expect").scrollWidth - document.querySelector(".scroll").clientWidth]`);
    check(wide <= width && cut <= 0, `at ${width} pixels the page is ${wide} wide, and the table leaves its place by ${cut}`);
  }
  await picture("narrow");
  const said = events.filter(({ method, params }) => method === "Runtime.exceptionThrown" || method === "Runtime.consoleAPICalled" || (method === "Log.entryAdded" && params.entry.level !== "verbose"));
  said.forEach(({ params }) => check(false, `the page says on the console: ${JSON.stringify(params).slice(0, 300)}`));
  const asked = events.filter(({ method }) => method === "Network.requestWillBeSent").map(({ params }) => params.request.url);
  asked.filter((url) => !url.startsWith("file://") && !url.startsWith("blob:") && !url.startsWith("data:") && url !== "about:blank").forEach((url) => check(false, `the page asks for ${url}`));
} catch (error) {
  faults.push(error.stack);
} finally {
  await Promise.race([send("Browser.close").catch(() => {}), pause(2000)]);
  child.kill();
}
faults.forEach((fault) => console.error(fault));
process.exit(faults.length ? 1 : 0);
