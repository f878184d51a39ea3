// Uses a report page: node check.mjs BROWSER FOLDER PAGE REPLAY.json [BROWSER OPTION]...
import { readFileSync } from "node:fs";

import { boxOf, check, checkContrast, checkNames, click, files, finish, key, mouse, open, pause, picture, run, send, settled, size, text } from "./devtools.mjs";

const [page, replay] = files;
const WITHIN_MS = 3000;

const fill = async (name, value) => {
  await click(`#search [name=${name}]`);
  await send("Input.insertText", { text: value });
  await settled();
};

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

await finish(async () => {
  const took = await open(page, "!!globalThis.flowcast");
  console.log(`${page}: ${(readFileSync(page).length / 1e6).toFixed(1)} MB, drawn after ${took} ms`);
  check(took < WITHIN_MS, `the page was drawn after ${took} ms, expected less than ${WITHIN_MS}`);
  await compareShares();
  await useTimeline();
  await useNodes();
  await useSearch();
  const names = await checkNames();
  check(names.some(([role, name]) => role === "button" && name === "Zoom in"), "found no button `Zoom in`");
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
});
