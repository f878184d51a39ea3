// Uses pages of charts: node charts.mjs BROWSER FOLDER PAGE... [BROWSER OPTION]...
import { boxOf, check, checkContrast, checkNames, checkScrolls, drawnDashes, drawnTexts, files, finish, mouse, open, pause, picture, run, settled, size } from "./devtools.mjs";

const legend = () => run(`document.querySelector(".u-legend").textContent`);

async function useChart(page) {
  const before = await legend();
  const { x, y, width, height } = await boxOf(".u-over");
  await mouse("mouseMoved", x + width / 2, y + height / 2, { button: "none" });
  await settled();
  check((await legend()) !== before, `${page}: the legend says nothing of the place that is pointed at`);
}

// Both axes of each chart have a title, which is drawn, and curves that coincide are told apart.
async function checkCurves(page) {
  const charts = await run(`[...document.querySelectorAll("[role=img]:has(.uplot)")].map((chart) => chart.getAttribute("aria-label"))`);
  const texts = await drawnTexts();
  for (const chart of charts) {
    const [, ...titles] = chart.split("; ");
    check(titles.length >= 2 && titles.every((title) => texts.includes(title)), `${page}: an axis has no title in: ${chart}`);
  }
  check(charts.length > 0, `${page}: found no chart`);
  if (!/pattern|models/.test(page)) return;
  check(/ \(coincides with /.test(await legend()), `${page}: the legend does not say which curves coincide: ${await legend()}`);
  check((await drawnDashes()).length >= 3, `${page}: curves have the same dashes`);
}

// Each colour of a map stands in the legend above it, once.
async function useMaps(page) {
  const unknown = await run(`[...document.querySelectorAll(".legend")].flatMap((legend) => {
    const colours = [...legend.querySelectorAll("i[class]")].map((sample) => sample.className);
    const used = [...legend.nextElementSibling.querySelectorAll("td[class]")].map((cell) => cell.className);
    return [...used.filter((colour) => !colours.includes(colour)), ...colours.filter((colour, at) => colours.indexOf(colour) < at)];
  }).join(" ")`);
  check(unknown === "", `${page}: colours without a place of their own in the legend: ${unknown}`);
  const count = await run(`document.querySelectorAll(".legend i[class]").length`);
  check(count > 0, `${page}: the legend has no colour`);
  await checkContrast("dark");
}

await finish(async () => {
  for (const page of files) {
    await open(page, `document.querySelector(".uplot canvas")?.width > 0 || document.querySelector(".map") !== null`);
    if (await run(`document.querySelector(".map") !== null`)) await useMaps(page);
    else {
      await useChart(page);
      await checkCurves(page);
    }
    await checkScrolls(page);
    await checkNames();
    await checkContrast("light");
    await picture(page.split("/").at(-1).replace(".html", ""));
    await size(420, 900);
    await pause(200);
    const wide = await run("document.scrollingElement.scrollWidth");
    await checkScrolls(`${page} at 420 pixels`);
    check(wide <= 420, `${page}: ${wide} pixels wide where there are 420`);
  }
});
