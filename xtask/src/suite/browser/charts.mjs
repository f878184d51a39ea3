// Uses pages of charts: node charts.mjs BROWSER FOLDER PAGE... [BROWSER OPTION]...
import { boxOf, check, checkContrast, checkNames, checkScrolls, files, finish, mouse, open, pause, picture, run, settled, size } from "./devtools.mjs";

const legend = () => run(`document.querySelector(".u-legend").textContent`);

async function useChart(page) {
  const before = await legend();
  const { x, y, width, height } = await boxOf(".u-over");
  await mouse("mouseMoved", x + width / 2, y + height / 2, { button: "none" });
  await settled();
  check((await legend()) !== before, `${page}: the legend says nothing of the place that is pointed at`);
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
    else await useChart(page);
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
