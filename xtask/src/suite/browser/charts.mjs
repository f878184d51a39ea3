// Uses pages of charts: node charts.mjs BROWSER FOLDER PAGE... [BROWSER OPTION]...
import { boxOf, check, checkContrast, checkNames, files, finish, mouse, open, pause, picture, run, settled, size } from "./devtools.mjs";

const legend = () => run(`document.querySelector(".u-legend").textContent`);

await finish(async () => {
  for (const page of files) {
    await open(page, `document.querySelector(".uplot canvas")?.width > 0`);
    const before = await legend();
    const { x, y, width, height } = await boxOf(".u-over");
    await mouse("mouseMoved", x + width / 2, y + height / 2, { button: "none" });
    await settled();
    check((await legend()) !== before, `${page}: the legend says nothing of the place that is pointed at`);
    await checkNames();
    await checkContrast("light");
    await picture(page.split("/").at(-1).replace(".html", ""));
    await size(420, 900);
    await pause(200);
    const wide = await run("document.scrollingElement.scrollWidth");
    check(wide <= 420, `${page}: ${wide} pixels wide where there are 420`);
  }
});
