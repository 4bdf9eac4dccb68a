// SPDX-License-Identifier: MIT
// Looks at every view with axe-core, which knows what hinders people with a screen reader or without a mouse.
//   node axe.mjs KIND ADDRESS ...     addresses that servers printed: run, comparison, trace, dump ...
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {close, equal, failures, launch, openPage, settled, test} from './browser.mjs';

let source;
try {
  source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
} catch {
  console.log('skip views for everybody: no axe-core; npm ci in tests/web/page brings it');
  process.exit(0);
}

const PLACES = {
  run: ['overview', 'timeline', 'cluster', 'graph', 'table'],
  comparison: ['overview', 'graph', 'table', 'timeline', 'cluster'],
};
const browser = await launch();

// Rules that axe reports, each with the first element that it is about.
async function look(page) {
  return page.evaluate(async (text) => {
    if (!window.axe) new Function(text)();
    const {violations} = await window.axe.run(document, {resultTypes: ['violations']});
    return violations.map((v) => `${v.id} (${v.nodes.length}): ${v.nodes[0].target} ${v.nodes[0].failureSummary?.split('\n')[1] ?? ''}`).join('; ');
  }, source);
}

// The page's own policy forbids evaluating text, which is how axe comes in.
async function openFor(address, options) {
  return openPage(browser, address, {bypassCSP: true, ...options});
}

const kinds = process.argv.slice(2);
for (let i = 0; i + 1 < kinds.length; i += 2) {
  const kind = kinds[i];
  for (const [name, options] of [['wide', {}], ['dark', {colorScheme: 'dark'}], ['narrow', {viewport: {width: 400, height: 720}}], ['chinese', {locale: 'zh-CN'}]]) {
    const page = await openFor(kinds[i + 1], options);
    for (const place of PLACES[kind] ?? ['overview']) {
      await test(`axe finds nothing: ${kind}, ${place}, ${name}`, async () => {
        await page.evaluate((p) => { location.hash = p; }, place);
        await settled(page);
        equal(await look(page), '', 'violations');
      });
    }
    if (kind === 'run' || kind === 'comparison') {
      await test(`axe finds nothing: ${kind}, evidence of the first finding, ${name}`, async () => {
        await page.evaluate(() => { location.hash = 'overview'; });
        await page.waitForSelector('.finding a');
        await page.click('.finding a');
        await settled(page);
        equal(await look(page), '', 'violations');
      });
      await test(`axe finds nothing: ${kind}, keys, ${name}`, async () => {
        await page.keyboard.press('?');
        await page.waitForSelector('.dialog');
        equal(await look(page), '', 'violations');
        await page.keyboard.press('Escape');
      });
    }
    await test(`nothing is wider than the window: ${kind}, ${name}`, async () => {
      for (const place of PLACES[kind] ?? ['overview']) {
        await page.evaluate((p) => { location.hash = p; }, place);
        await settled(page);
        const wide = await page.evaluate(() => [...document.querySelectorAll('.top > *, .page > *, .gbar > *, .tbar > *, .rail > *')]
            .filter((e) => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).map((e) => `${e.tagName}.${e.className}`));
        equal(wide.join(' '), '', place);
      }
    });
    await page.context().close();
  }
}
await close(browser);
process.exit(failures() ? 1 : 0);
