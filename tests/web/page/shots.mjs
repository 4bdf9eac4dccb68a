// SPDX-License-Identifier: MIT
// Pictures of every view to look at, light and dark, small and large.
//   node shots.mjs ADDRESS FOLDER PREFIX PLACE...
import {close, launch, openPage} from './browser.mjs';

const [address, folder, prefix, ...places] = process.argv.slice(2);
const browser = await launch();
for (const colorScheme of ['light', 'dark']) {
  for (const [width, height] of [[1280, 720], [2560, 1440]]) {
    const page = await openPage(browser, address, {viewport: {width, height}, colorScheme});
    for (const place of places) {
      await page.evaluate((p) => { location.hash = p; }, place);
      await page.waitForTimeout(700);
      await page.screenshot({path: `${folder}/${prefix}-${place.split('?')[0]}-${colorScheme}-${width}.png`});
    }
    if (page.faults.length) console.log(page.faults.join('\n'));
    await page.context().close();
  }
}
await close(browser);
