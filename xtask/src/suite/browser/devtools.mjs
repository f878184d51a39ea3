// A page in a real browser: node SCRIPT.mjs BROWSER FOLDER FILE... [BROWSER OPTION]...
// Speaks the browser's DevTools protocol over a pipe, so that neither a port nor a package is needed. Prints what does not
// hold and then fails; pictures stay in FOLDER.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const [browser, folder, ...rest] = process.argv.slice(2);
const options = rest.filter((word) => word.startsWith("--"));
// The files that the script was given.
export const files = rest.filter((word) => !word.startsWith("--"));
const faults = [];
export const check = (holds, fault) => holds || faults.push(fault);

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
export const send = (method, params = {}) => new Promise((resolve, reject) => {
  waiting.set(++number, [resolve, reject]);
  child.stdio[3].write(JSON.stringify({ id: number, method, params, sessionId: session }) + "\0");
});
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const run = async (expression) => {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
  if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description || exceptionDetails.text}`);
  return result.value;
};
// What was asked for is drawn in the next frame.
export const settled = () => run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
export const text = (selector) => run(`document.querySelector(${JSON.stringify(selector)}).textContent`);
export const boxOf = (selector) => run(`(() => { const it = document.querySelector(${JSON.stringify(selector)}); it.scrollIntoView({ block: "center", behavior: "instant" }); const { x, y, width, height } = it.getBoundingClientRect(); return { x, y, width, height }; })()`);
export const mouse = (type, x, y, more = {}) => send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1, ...more });
export const click = async (selector) => {
  const { x, y, width, height } = await boxOf(selector);
  for (const type of ["mousePressed", "mouseReleased"]) await mouse(type, x + width / 2, y + height / 2);
  await settled();
};
export const key = async (key, code) => {
  for (const type of ["keyDown", "keyUp"]) await send("Input.dispatchKeyEvent", { type, key, text: key.length === 1 && type === "keyDown" ? key : undefined, windowsVirtualKeyCode: code });
  await settled();
};
export const size = async (width, height) => {
  await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
  await settled();
  await pause(150);
};
export const picture = async (name) => {
  const { cssContentSize } = await send("Page.getLayoutMetrics");
  const clip = { x: 0, y: 0, width: cssContentSize.width, height: Math.min(cssContentSize.height, 6000), scale: 1 };
  const { data } = await send("Page.captureScreenshot", { captureBeyondViewport: true, clip });
  writeFileSync(`${folder}/${name}.png`, Buffer.from(data, "base64"));
};

// Keeps the texts and the dashes that are drawn.
const WATCH = `{
  globalThis.drawnTexts = new Set();
  globalThis.drawnDashes = new Set();
  const { fillText, setLineDash } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...more) { drawnTexts.add(String(text)); fillText.call(this, text, ...more); };
  CanvasRenderingContext2D.prototype.setLineDash = function (dash) { drawnDashes.add(dash.join(" ")); setLineDash.call(this, dash); };
}`;
let watches = false;
export const drawnTexts = () => run("[...drawnTexts]");
export const drawnDashes = () => run("[...drawnDashes].filter(Boolean)");

// Each box of which a part is out of sight says so, and nothing else is cut.
export async function checkScrolls(where) {
  const faults = await run(`[...document.querySelectorAll("main *")].flatMap((it) => {
    const style = getComputedStyle(it);
    const isWide = it.scrollWidth > it.clientWidth + 1 && it.clientWidth > 0;
    if (!isWide || !it.checkVisibility() || style.display === "inline" || style.overflowX === "visible" || style.clipPath !== "none" || it.closest("svg, .u-wrap, .stack, select, input")) return [];
    const hint = it.previousElementSibling;
    const says = hint?.checkVisibility() && hint.textContent.includes("Scroll sideways");
    return says && style.maskImage !== "none" ? [] : ["<" + it.tagName + " class=" + it.className + "> " + it.textContent.trim().slice(0, 40)];
  })`);
  faults.forEach((fault) => check(false, `${where}: cut without a sign: ${fault}`));
}

// Opens a page and waits until `isDrawn`, an expression, holds there; how many milliseconds that took.
export async function open(page, isDrawn) {
  if (session === undefined) {
    const { targetId } = await send("Target.createTarget", { url: "about:blank" });
    session = (await send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network", "Accessibility", "DOM"]) await send(`${domain}.enable`);
  }
  if (!watches) await send("Page.addScriptToEvaluateOnNewDocument", { source: WATCH });
  watches = true;
  await size(1400, 900);
  const start = Date.now();
  await send("Page.navigate", { url: `file://${page}` });
  while (!(await run(isDrawn).catch(() => false))) {
    if (Date.now() - start > 30000) throw new Error(`${page} was not drawn within 30 s`);
    await pause(20);
  }
  await settled();
  return Date.now() - start;
}

// Every control has a name; the names by role.
export async function checkNames() {
  const { nodes } = await send("Accessibility.getFullAXTree");
  const controls = ["button", "checkbox", "combobox", "textbox", "searchbox", "img", "region", "group", "search"];
  for (const { role, name, ignored } of nodes) {
    if (!ignored && controls.includes(role?.value)) check(name?.value, `found a ${role.value} without a name`);
  }
  return nodes.map(({ role, name }) => [role?.value, name?.value]);
}

// The contrast of all text with what is behind it: 4.5, or 3 if it is large (WCAG 2.1, 1.4.3).
export async function checkContrast(scheme) {
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

// Uses pages by `steps`, then tells what does not hold and ends.
export async function finish(steps) {
  try {
    await steps();
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
}
