// SPDX-License-Identifier: MIT
// The keyboard map, key by key: each changes what is seen.  And addresses: a link reopens the same view.
//   node keys.mjs RUN COMPARISON
import {addressOf, close, equal, failures, launch, openPage, settled, test, truth, until} from './browser.mjs';

const [run, comparison] = process.argv.slice(2);
const browser = await launch();
const go = async (page, place) => {
  await page.evaluate((p) => { location.hash = p; }, place);
  await settled(page);
};

// All that a visitor can see: the address, the text, where the focus is, what the canvas shows.
function seen() {
  let sum = 7;
  for (const c of document.querySelectorAll('canvas')) {
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    for (let i = 0; i < d.length; i++) sum = (sum * 31 + d[i]) % 1000003;
  }
  const {activeElement: e} = document;
  return [location.hash, document.body.innerText, e.tagName, e.className, sum, getComputedStyle(document.querySelector('.view > *')).getPropertyValue('--letters'),
    document.querySelector('.line')?.getBoundingClientRect().height, document.querySelector('.side')?.getBoundingClientRect().width,
    document.querySelector('.now')?.textContent, [...document.querySelectorAll('.off, .flow-up, .flow-down')].length, document.querySelector('.rail').className].join('\n');
}

// Presses the key and waits until something is another than before.
async function changes(page, name, key, before = null) {
  await test(`${name}: ${key}`, async () => {
    if (before) await before();
    await settled(page);
    const was = await page.evaluate(seen);
    await page.keyboard.press(key);
    for (let i = 0; was === await page.evaluate(seen); i++) {
      if (i === 300) throw new Error('nothing changes');
      await page.waitForTimeout(100);
    }
    await settled(page);
  });
}

// ---- the graph ------------------------------------------------------------------------

const NODE = 'graph?step=0&rank=0&node=Functional.softmax.3.forward';
const page = await openPage(browser, comparison);
const away = async (p, place) => {
  for (let i = 0; await p.$('.dialog') && i < 3; i++) await p.keyboard.press('Escape');
  if (await p.evaluate(() => document.activeElement?.className === 'find')) await p.keyboard.press('Escape');
  await p.evaluate((t) => { location.hash = t; }, place);
};
const at = (place, focus = '.outline') => async () => {
  await away(page, place);
  if (place.includes('node=')) await until(page, (n) => document.querySelector('.line.now')?.textContent.includes(n), /node=\w+\.(m\.)?(\w+\.\d+)/.exec(place)[2]);
  await page.waitForSelector(focus);
  await page.focus(focus);
};
const graph = at(NODE);
for (const key of ['w', 's', 'a', 'd', 'ArrowDown', 'ArrowUp', 'Home', 'End', 'u', 'e', 'Space', 'v', 'Escape', 'p', 'Escape', 'q', 'r', 'R', 't', 'T', '/', 'Control+f', '>', 'Control+Shift+P', ':', '?', 'K',
  "'", 'Control+b', 'Shift+Digit2', '4', 'Alt+1', 'Alt+4']) await changes(page, 'graph', key, graph);
await changes(page, 'graph', 'M', graph);
await changes(page, 'graph', 'Control+z');
await changes(page, 'graph', 'f', async () => {
  await at('graph?step=0&rank=0&node=Functional.softmax.5.forward')();
  await graph();
});
await changes(page, 'graph', ',', at('graph?step=0&rank=0&node=Module.m.layers.4.Block.forward.0'));
for (const key of ['Enter', 'ArrowLeft']) await changes(page, 'graph', key, at('graph?step=0&rank=0&node=Module.m.layers.4.Block.forward.0'));
for (const key of ['Alt+Enter', 'ArrowRight']) {
  await changes(page, 'graph', key, async () => {
    await graph();
    await page.keyboard.press('Space'); // all is folded but the root
    await page.keyboard.press('ArrowDown');
  });
}
await changes(page, 'graph', '.', at('graph?step=0&rank=0&node=Module.m.layers.4.Block.forward.0'));
await changes(page, 'graph', 'E', at('graph?step=0&rank=0&node=Functional.softmax.5.forward'));
await changes(page, 'graph', 'g', at('graph?step=0&rank=0&node=Module.m.layers.4.Block.forward.0'));
for (const key of [']', '[']) await changes(page, 'graph', key, at('graph?step=0&rank=0&node=Distributed.all_reduce.0.forward'));
await changes(page, 'graph', 'Backspace', async () => {
  await graph();
  await page.keyboard.press('e');
});
await test('graph: a snapshot is stored by Shift and its digit and recalled by the digit', async () => {
  await graph();
  await page.keyboard.press('Shift+Digit5');
  await at('overview', '.view')();
  await page.keyboard.press('5');
  await until(page, () => location.hash.includes('softmax.3'));
});
await test('graph: Tab goes to the other pane, m to the matched node', async () => {
  await graph();
  await page.keyboard.press('x');
  await until(page, () => document.querySelectorAll('.outline').length === 2);
  await settled(page);
  await until(page, () => document.activeElement === document.querySelector('.outline'));
  const pane = () => page.evaluate(() => [...document.querySelectorAll('.outline')].indexOf(document.activeElement));
  await page.keyboard.press('Tab');
  equal(await pane(), 1, 'pane');
  await page.focus('.outline');
  await page.keyboard.press('m');
  await until(page, () => document.querySelectorAll('.outline')[1].querySelector('.line.now')?.textContent.includes('softmax.3'));
  equal(await pane(), 1, 'pane of the matched node');
  await page.keyboard.press('x');
  await until(page, () => document.querySelectorAll('.outline').length === 1);
});
await test('graph: search, Enter for the next hit, Shift+Enter for the one before', async () => {
  await graph();
  await page.keyboard.press('/');
  await page.keyboard.type('matmul');
  await until(page, () => document.querySelectorAll('.hit').length > 3);
  const line = () => page.evaluate(() => document.querySelector('.line.now')?.textContent);
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('matmul'));
  await settled(page);
  const first = await line();
  await page.focus('.find');
  await page.keyboard.press('Enter');
  await until(page, (t) => document.querySelector('.line.now')?.textContent !== t, first);
  await settled(page);
  await page.focus('.find');
  await page.keyboard.press('Shift+Enter');
  await until(page, (t) => document.querySelector('.line.now')?.textContent === t, first);
});
await test('a dialog keeps the keys to itself, and the page behind is out of reach', async () => {
  await graph();
  await page.keyboard.press('?');
  await page.waitForSelector('.dialog');
  for (let i = 0; i < 6; i++) await page.keyboard.press('Tab');
  truth(await page.evaluate(() => !document.activeElement || document.activeElement === document.body || Boolean(document.activeElement.closest('.dialog'))), 'the focus is behind it');
  await page.keyboard.press('Escape');
  await until(page, () => !document.querySelector('.dialog') && !document.querySelector('[inert]'));
});

// ---- table, overview --------------------------------------------------------------------

const table = at('table?step=0&rank=1', '.tbody');
for (const key of ['ArrowDown', 'End', 'PageDown', 'Shift+ArrowDown', 'e', 'Enter', 'f', 'x', 'r', 't', 'g', '/', '?']) await changes(page, 'table', key, table);
await changes(page, 'table', 'E', async () => {
  await table();
  await page.keyboard.press('End');
});
for (const key of ['e', 'E', 'g', '?', '>', ':', 'q', '/']) await changes(page, 'overview', key, at('overview', '.view'));
await test('no error in the console of the comparison', async () => equal(page.faults.join('; '), '', 'faults'));
await page.context().close();

// ---- the timeline -----------------------------------------------------------------------

const tl = await openPage(browser, addressOf(run, 'timeline'));
const WINDOW = 'timeline?t0=100000000&t1=400000000';
const window_ = (place = WINDOW, selected = false) => async () => {
  if (selected) { // with all processes as they are at first
    await away(tl, 'overview');
    await tl.waitForSelector('.findings');
  }
  await away(tl, place);
  await tl.waitForSelector('.lanes');
  await tl.mouse.move(700, 400);
  await tl.focus('.lanes');
  await tl.keyboard.press('Escape');
  if (!selected) return;
  await settled(tl);
  await tl.keyboard.press('.');
  await until(tl, () => document.querySelector('.drawer h2'));
};
for (const key of ['w', 's', 'a', 'd', 'ArrowLeft', 'ArrowRight', 'Space', '.', 't', 'T', 'r', 'R', 'e', 'E', 'Enter', 'Alt+Enter', 'o', 'q', '?', '>', ':', '/', 'Control+b', 'K', 'Shift+Digit3', 'x', 'X']) {
  await changes(tl, 'timeline', key, window_());
}
for (const key of ['.', 'ArrowRight', 'ArrowDown', 'f', 'p', 'h', 'Escape']) await changes(tl, 'timeline with a slice', key, window_(WINDOW, true));
for (const key of [',', 'ArrowLeft', 'ArrowUp']) {
  await changes(tl, 'timeline with a slice', key, async () => {
    await window_(WINDOW, true)();
    for (const k of ['.', '.', 'ArrowDown', 'ArrowDown']) {
      await tl.keyboard.press(k);
      await settled(tl);
    }
  });
}
await changes(tl, 'timeline', 'H', async () => {
  await window_(WINDOW, true)();
  await tl.keyboard.press('h');
  await until(tl, () => document.querySelector('.status').textContent.includes('hidden'));
});
await changes(tl, 'timeline', 'Backspace', async () => {
  await window_()();
  await tl.keyboard.press('Space');
});

// ---- addresses --------------------------------------------------------------------------

// What a second visitor sees who is given the address.
async function reopened(page_, address, selector) {
  const other = await openPage(browser, addressOf(address, await page_.evaluate(() => location.hash)));
  await other.waitForSelector(selector);
  await settled(other);
  return other;
}
// What stands at the left, which does not depend on how finely slices were asked for; or: is it as wanted?
const labels = (want) => {
  const c = document.querySelector('.lanes'), d = c.getContext('2d').getImageData(0, 28, 220, c.height - 28).data;
  const sum = d.reduce((s, v) => (s * 31 + v) % 1000003, 7);
  return want === undefined ? sum : sum === want;
};
await test('a link reopens window, selection, pinned, hidden and closed lanes of the timeline', async () => {
  await window_(WINDOW, true)();
  for (const key of ['p', 'ArrowDown', 'h', 'ArrowDown', 'ArrowDown', 'Enter', '.']) {
    await tl.keyboard.press(key);
    await settled(tl);
  }
  await tl.mouse.move(5, 5);
  await settled(tl);
  truth(/sel=.*/.test(await tl.evaluate(() => location.hash)) && /hide=/.test(await tl.evaluate(() => location.hash)), await tl.evaluate(() => location.hash));
  const other = await reopened(tl, run, '.drawer h2');
  await until(other, (t) => document.querySelector('.drawer h2').textContent === t, await tl.textContent('.drawer h2'), 'the same slice');
  await until(other, (h) => location.hash === h, await tl.evaluate(() => location.hash), 'the same address');
  await until(other, labels, await tl.evaluate(labels), 'the same lanes');
  await other.context().close();
});
await test('a link reopens the critical path and the ideal timelines', async () => {
  await window_(`${WINDOW}&replay=path,ideal`)();
  await settled(tl);
  const other = await reopened(tl, run, '.lanes');
  const asked = (what) => performance.getEntriesByType('resource').some((e) => new RegExp(`api.replay.${what}`).test(e.name));
  await until(other, asked, 'processes');
  await until(other, asked, 'from');
  truth((await other.evaluate(() => location.hash)).includes('replay=path%2Cideal'), await other.evaluate(() => location.hash));
  await other.context().close();
});
await test('a link reopens an area with its sums, of the lanes that were touched', async () => {
  await window_()();
  const box = await (await tl.$('.lanes')).boundingBox();
  await tl.keyboard.down('Shift');
  await tl.mouse.move(box.x + 300, box.y + 60);
  await tl.mouse.down();
  await tl.mouse.move(box.x + 600, box.y + 62, {steps: 3});
  await tl.mouse.up();
  await tl.keyboard.up('Shift');
  await tl.waitForSelector('.sums td');
  await settled(tl);
  const one = await tl.$$eval('.sums tr', (r) => r.map((e) => e.textContent).join('|'));
  const other = await reopened(tl, run, '.sums td');
  equal(await other.$$eval('.sums tr', (r) => r.map((e) => e.textContent).join('|')), one, 'sums');
  await other.context().close();
});
await test('no error in the console of the run', async () => equal(tl.faults.join('; '), '', 'faults'));
await tl.context().close();

const pair = await openPage(browser, comparison);
await test('a link reopens panes, figure and node of the graph', async () => {
  await go(pair, NODE);
  await until(pair, () => document.querySelector('.line.now'));
  await pair.selectOption('.gbar select', 'Max diff');
  await pair.focus('.outline');
  await pair.keyboard.press('x');
  await until(pair, () => document.querySelectorAll('.outline').length === 2);
  await settled(pair);
  const other = await reopened(pair, comparison, '.line.now');
  equal((await other.$$('.outline')).length, 2, 'panes');
  equal(await other.inputValue('.gbar select'), 'Max diff', 'figure');
  equal(await other.textContent('.line.now'), await pair.textContent('.line.now'), 'line');
  await other.context().close();
});
await test('a link reopens row, filter, order and columns of the table', async () => {
  await go(pair, 'table?step=0&rank=1&q=softmax&sort=Max&desc=1&set=official');
  await pair.waitForSelector('.trow');
  await pair.focus('.tbody');
  for (let i = 0; i < 3; i++) await pair.keyboard.press('ArrowDown');
  await settled(pair);
  const row = await pair.textContent('.trow.now');
  const other = await reopened(pair, comparison, '.trow.now');
  equal(await other.textContent('.trow.now'), row, 'row');
  equal(await other.textContent('.thead'), await pair.textContent('.thead'), 'columns');
  await other.context().close();
});

// ---- several visitors -------------------------------------------------------------------

await test('six visitors at once each see their own, and a match by hand is there for all', async () => {
  const places = ['overview', NODE, 'table?step=1&rank=1&sort=Max&desc=1', 'graph?step=1&rank=1', NODE, 'table?step=0&rank=0&q=softmax'];
  const visitors = await Promise.all(places.map(() => openPage(browser, comparison)));
  await Promise.all(visitors.map((v, i) => go(v, places[i])));
  for (let round = 0; round < 3; round++) {
    await Promise.all(visitors.map((v, i) => go(v, places[(i + round) % places.length])));
    await Promise.all(visitors.map((v, i) => until(v, (p) => document.querySelector({o: '.findings', g: '.line', t: '.trow'}[p[0]]), places[(i + round) % places.length])));
  }
  await Promise.all(visitors.slice(0, 2).map((v) => go(v, 'graph?step=0&rank=0&node=Torch.matmul.1.forward')));
  const [one, two] = visitors;
  await until(one, () => document.querySelector('.line.now')?.textContent.includes('matmul.1'));
  await one.focus('.outline');
  await one.keyboard.press('M');
  await until(one, () => document.querySelector('.line.now')?.textContent.includes('only in target'));
  await two.reload();
  await until(two, () => document.querySelector('.line.now')?.textContent.includes('only in target'));
  await one.focus('.outline');
  await one.keyboard.press('Control+z');
  await until(one, () => document.querySelector('.line.now') && !document.querySelector('.line.now').textContent.includes('only in target'));
  equal(visitors.flatMap((v) => v.faults).join('; '), '', 'faults');
});
await close(browser);
process.exit(failures() ? 1 : 0);
