// Uses a report page of several networks: node networks.mjs BROWSER FOLDER PAGE [BROWSER OPTION]...
import { check, checkContrast, checkNames, checkScrolls, click, drawnTexts, files, finish, key, open, picture, run, settled, size, text } from "./devtools.mjs";

const [page] = files;

// No badge lies over a name.
async function checkBadges(width) {
  const covered = await run(`[...document.querySelectorAll(".card")].flatMap((card) => {
    const range = document.createRange();
    range.selectNodeContents(card.querySelector("h2"));
    const apart = (one, other) => one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
    return [...card.querySelectorAll(".ratio")].filter((badge) => [...range.getClientRects()].some((line) => !apart(line, badge.getBoundingClientRect()))).map(() => range.toString());
  })`);
  check(covered.length === 0, `at ${width} pixels badges cover the names ${covered}`);
  check((await run(`document.querySelectorAll(".ratio").length`)) > 3, "found no badges to look at");
}

// The panels of all networks show the same part of the program, each in its own time.
async function useAlignment() {
  const choose = async (name) => {
    await run(`(() => { const it = document.getElementById("align"); it.focus(); it.value = "time"; it.dispatchEvent(new Event("change")); })()`);
    if (name === "position") await key("ArrowDown", 40);
    await settled();
  };
  const windows = () => run(`flowcast.app.panels.map(({ g, net }) => [g.from / net.end, g.to / net.end, net.progress.at(g.from), net.progress.at(g.to)])`);
  for (const other of [2, 3]) if ((await windows()).length < other) await click(`#shown button:nth-child(${other})`);
  check((await windows()).length === 3, "the buttons of the networks do not show them");
  await choose("time");
  check((await drawnTexts()).includes("time since the start"), "the timeline's axis has no title");
  await choose("position");
  check((await run(`document.getElementById("align").value`)) === "position", "the arrow key does not choose the program position");
  await run(`flowcast.app.look(0.4, 0.5)`);
  await settled();
  for (const [from, to, first, last] of await windows()) {
    check(Math.abs(first - 0.4) < 1e-6 && Math.abs(last - 0.5) < 1e-6, `a panel shows the positions ${first} to ${last}, expected 0.4 to 0.5`);
    check(from > 0.05 && to < 0.95, `0.4 to 0.5 of the events lie from ${from} to ${to} of the run`);
  }
  check((await drawnTexts()).includes("program position: events done, %"), "the timeline's axis does not say that it shows the program position");
  const own = await run(`[...document.querySelectorAll(".panel h3")].map((heading) => /shows [0-9.]+ .?s from /.test(heading.textContent) || heading.textContent)`);
  check(own.every((says) => says === true), `panels do not say which part of their time they show: ${own}`);
  check(/^In view: 10 % of the events, from 40 %/.test(await text("#in-view")), `in view: ${await text("#in-view")}`);
  check(await run(`flowcast.app.panels.every((panel) => flowcast.svgOf(panel).includes("program position"))`), "the picture as SVG has no axis title");
  await run(`flowcast.app.select(0.42, 0.44)`);
  check(/duration of this part/.test(await text("#selection-table")), "the selection does not say how long the part takes on each network");
  await picture("aligned");
  await run(`flowcast.app.select(0, 0)`);
  await run(`document.querySelector(".drawing").focus()`);
  await key("0", 48);
  check((await windows()).every(([from, to]) => from === 0 && to === 1), "the key 0 does not show the whole of each run");
  await choose("time");
}

await finish(async () => {
  await open(page, "!!globalThis.flowcast");
  await useAlignment();
  await checkNames();
  for (const width of [1400, 1200, 820, 420]) {
    await size(width, 900);
    await checkBadges(width);
    await checkScrolls(`${page} at ${width} pixels`);
  }
  await checkContrast("dark");
  await picture("networks-narrow");
});
