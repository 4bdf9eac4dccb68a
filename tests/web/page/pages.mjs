// SPDX-License-Identifier: MIT
// Drives every page as a visitor would: by keys where there are keys, by the mouse elsewhere.
//   node pages.mjs COMPARISON TRACE     addresses that two servers printed
import {close, equal, failures, launch, openPage, pale, settled, test, truth, until} from './browser.mjs';

const [comparison, trace] = process.argv.slice(2);
const browser = await launch();

const hash = (page) => page.evaluate(() => location.hash);
const go = (page, place) => page.evaluate((p) => { location.hash = p; }, place);
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));

// ---- contrast ---------------------------------------------------------------------

for (const colorScheme of ['light', 'dark']) {
  const a = await openPage(browser, comparison, {colorScheme}), b = await openPage(browser, trace, {colorScheme});
  for (const [page, place] of [[a, 'overview'], [a, 'graph?step=0&rank=1&node=Functional.softmax.3.forward'], [a, 'table'], [b, 'overview'], [b, 'timeline'], [b, 'cluster']]) {
    await test(`text stands out from its background: ${place.split('?')[0]}, ${colorScheme}`, async () => {
      await go(page, place);
      await settled(page);
      equal((await page.evaluate(pale)).join('; '), '', 'too pale');
    });
  }
  await a.context().close();
  await b.context().close();
}

// ---- the frame --------------------------------------------------------------------

const page = await openPage(browser, comparison);

await test('the token does not stay in the address', async () => {
  truth(!(await page.url()).includes('token'), await page.url());
});
await test('findings come first and lead to the first divergence', async () => {
  await page.waitForSelector('.finding.E');
  await page.click('.finding.E a');
  await page.waitForSelector('.line.now');
  truth((await hash(page)).includes('node=Functional.softmax.3.forward'), await hash(page));
});
await test('back returns to the overview', async () => {
  await page.goBack();
  await page.waitForSelector('.findings');
});
await test('question mark lists the keys, the filter finds one, Escape closes', async () => {
  await page.keyboard.press('?');
  await page.waitForSelector('.dialog');
  const all = (await texts(page, '.keylist > div')).length;
  await page.keyboard.type('search');
  const few = (await texts(page, '.keylist > div')).length;
  truth(few > 0 && few < all, `${few} of ${all}`);
  await page.fill('.dialog input', '');
  const said = await texts(page, '.keylist span');
  equal(said.filter((t, i) => said.indexOf(t) !== i).join(), '', 'said twice');
  await page.keyboard.press('Escape');
  equal(await page.$('.dialog'), null, 'dialog');
});
await test('the palette runs a command by its words', async () => {
  await page.keyboard.press('Control+Shift+P');
  await page.waitForSelector('.dialog input:focus');
  await page.keyboard.type('table');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.table .trow');
});
await test('theme and language change and stay after a reload', async () => {
  const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.click('.top button >> nth=0');
  truth(before !== await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'the same background');
  await page.click('.top button >> nth=1');
  await until(page, () => document.querySelector('.rail').textContent.includes('概览'));
  await page.reload();
  await until(page, () => document.documentElement.dataset.theme === 'dark' && document.querySelector('.rail')?.textContent.includes('概览'));
  await page.click('.top button >> nth=1');
  await page.click('.top button >> nth=0');
});

await test('the overview draws the difference of the first finding', async () => {
  await go(page, 'overview');
  await page.waitForSelector('.grows rect.suspect');
  truth(await page.$('.layers a.error'), 'no layer in error');
  await page.click('.grows rect.suspect');
  await until(page, () => document.querySelector('.drawer .letter')?.dataset.letter === 'E');
});

// ---- graph ------------------------------------------------------------------------

await test('a link opens the node that it names', async () => {
  await go(page, 'graph?step=0&rank=1&node=Functional.softmax.3.forward');
  await until(page, () => document.querySelector('.drawer')?.textContent.includes('Functional.softmax.3.forward'));
});
await test('names that are markup are shown as text', async () => {
  await until(page, () => [...document.querySelectorAll('.line')].some((e) => e.textContent.includes('<img src=x')));
  equal(await page.$('.line img'), null, 'element');
  equal(await page.evaluate(() => window.hacked), undefined, 'script');
});
await test('what one side alone has leaves a gap on the other', async () => {
  truth((await texts(page, '.gap')).some((t) => t.includes('only in target')), 'no gap');
});
await test('keys fold, unfold and find errors', async () => {
  await page.focus('.outline');
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelectorAll('.line').length === 1);
  await page.keyboard.press('g');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('softmax.3'));
  await page.keyboard.press('e');
  await until(page, () => !document.querySelector('.line.now')?.textContent.includes('softmax.3'));
  await page.keyboard.press('E');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('softmax.3'));
  await page.keyboard.press('u');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('layers.3'));
});
await test('a module is drawn as boxes and edges, and a box goes to its node', async () => {
  await page.keyboard.press('b');
  await page.waitForSelector('.boxes .box.error');
  truth((await page.$$('.boxes .edge')).length > 0, 'no edge');
  await page.click('.boxes .box.error');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('softmax.3'));
  await page.keyboard.press('u');
});
await test('alike layers are one line with their count', async () => {
  truth((await texts(page, '.line')).some((t) => t.includes('×3')), 'no folded layers');
});
await test('search lists hits as you type and Enter goes to one', async () => {
  await page.keyboard.press('/');
  await page.keyboard.type('softmax state:E');
  await until(page, () => document.querySelectorAll('.hit').length > 0);
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('softmax'));
  await page.keyboard.press('Escape');
});
await test('a wrong search term says why', async () => {
  await page.keyboard.press('/');
  await page.keyboard.type('state:Z');
  await until(page, () => document.querySelector('.hits .failure')?.textContent.length > 5);
  await page.keyboard.press('Escape');
});
await test('M takes a pair apart, Ctrl+Z undoes it', async () => {
  await page.evaluate(() => document.querySelector('.find').value = '');
  await go(page, 'graph?step=0&rank=0&node=Torch.matmul.1.forward');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('matmul.1'));
  await page.focus('.outline');
  await page.keyboard.press('M');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('only in target'));
  await page.keyboard.press('Control+z');
  await until(page, () => !document.querySelector('.line.now')?.textContent.includes('only in target'));
});
await test('B takes a module apart with all in it, Ctrl+Z undoes it', async () => {
  const line = () => document.querySelector('.line.now')?.textContent ?? '';
  await page.focus('.outline');
  await page.keyboard.press('u');
  await until(page, () => !document.querySelector('.line.now')?.textContent.includes('matmul.1'));
  await page.keyboard.press('B');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('only in target'));
  await go(page, 'graph?step=0&rank=0&node=Torch.matmul.1.forward');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('matmul.1'));
  truth((await page.evaluate(line)).includes('only in target'), await page.evaluate(line));
  await page.focus('.outline');
  await page.keyboard.press('Control+z');
  await until(page, () => document.querySelector('.line.now') && !document.querySelector('.line.now').textContent.includes('only in target'));
});
await test('the matrix of ranks and steps is there with letters', async () => {
  const cells = await texts(page, '.matrix td');
  truth(cells.length === 4 && cells.every((t) => /[E.W-]/.test(t)), cells.join('|'));
});
await test('a reload restores node, step and rank', async () => {
  const before = await hash(page);
  await page.reload();
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('matmul.1'));
  equal(await hash(page), before, 'address');
});

// ---- table ------------------------------------------------------------------------

await test('the table sorts by a figure, the largest first', async () => {
  await go(page, 'table?step=0&rank=1');
  await page.waitForSelector('.trow');
  await page.click('.thead .tcell:has-text("NormRelativeErr")');
  // The heading turns at once, the rows when the answer is there.
  await until(page, () => {
    const errors = [...document.querySelectorAll('.trow')].map((r) => parseFloat(r.querySelectorAll('.num')[0]?.title)).filter((v) => !Number.isNaN(v));
    return document.querySelector('.thead [aria-sort="descending"]') && errors.length > 5 && errors[0] > 0 && errors.every((v, i) => i === 0 || errors[i - 1] >= v);
  });
});
await test('the table filters by terms and by failing rows', async () => {
  await page.fill('.tbar input[type=search]', 'softmax');
  await until(page, () => [...document.querySelectorAll('.trow')].every((r) => r.textContent.includes('softmax')));
  await page.check('.tbar input[type=checkbox]');
  await until(page, () => document.querySelectorAll('.trow').length > 0 && [...document.querySelectorAll('.trow')].every((r) => /E|W/.test(r.querySelector('.letter').textContent)));
});
await test('a reload restores filter and sorting', async () => {
  await page.reload();
  await until(page, () => document.querySelectorAll('.trow').length > 0 && [...document.querySelectorAll('.trow')].every((r) => r.textContent.includes('softmax')));
  equal(await page.inputValue('.tbar input[type=search]'), 'softmax', 'filter');
  truth(await page.$('.thead [aria-sort="descending"]'), 'sorting is lost');
});
await test('column sets change what is shown', async () => {
  const short = (await page.$$('.thead .tcell')).length;
  await page.selectOption('.tbar select', 'all');
  truth((await page.$$('.thead .tcell')).length > short + 5, 'no more columns');
});
await test('export writes all rows of the filter', async () => {
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('text=export CSV')]);
  const lines = (await (await import('node:fs/promises')).readFile(await file.path(), 'utf8')).trim().split('\n');
  const rows = Number((await page.textContent('.tbar .dim')).match(/\d+/)[0]);
  equal(lines.length, rows + 1, 'lines');
});
await test('an empty result says so', async () => {
  await page.fill('.tbar input[type=search]', 'nothing_like_this');
  await until(page, () => document.querySelector('.tempty')?.textContent.length > 5);
});
await test('Enter on a row shows its node in the graph', async () => {
  await page.fill('.tbar input[type=search]', 'softmax');
  await page.waitForSelector('.trow');
  await page.focus('.tbody');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.line.now')?.textContent.includes('softmax'));
});
await test('a view without its data says what would fill it', async () => {
  await go(page, 'timeline');
  await until(page, () => document.querySelector('.empty')?.textContent.includes('msprobe run'));
});
await test('no error in the console', async () => equal(page.faults.filter((f) => !f.includes('400 (Bad Request)')).join('; '), '', 'faults'));
await page.context().close();

// ---- timeline ---------------------------------------------------------------------

const tl = await openPage(browser, trace);
const window_ = async () => {
  await settled(tl); // the address follows when the hand rests
  const q = new URLSearchParams((await hash(tl)).split('?')[1]);
  return [Number(q.get('t0')), Number(q.get('t1'))];
};
// Shares of the canvas that are neither background nor panel.
const painted = () => tl.evaluate(() => {
  const c = document.querySelector('.lanes'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
  for (let i = 0; i < d.length; i += 4 * 97) seen.add(`${d[i]},${d[i + 1]},${d[i + 2]}`);
  return seen.size;
});

await test('a finding opens the timeline at its step', async () => {
  await tl.click('.finding a');
  await tl.waitForSelector('.lanes');
  await settled(tl);
  const [a, b] = await window_();
  truth(b - a < 5e6 && a > 10e6, `${a} ${b}`);
  truth(await painted() > 5, 'nothing is drawn');
});
await test('W and S zoom, A and D pan, Space fits all, Backspace goes back', async () => {
  await tl.focus('.lanes');
  const [a, b] = await window_();
  await tl.keyboard.press('w');
  const [c, d] = await window_();
  truth(d - c < b - a, 'no zoom');
  await tl.keyboard.press('d');
  truth((await window_())[0] > c, 'no pan');
  await tl.keyboard.press('Space');
  const [e, f] = await window_();
  truth(f - e > 30e6, 'not all');
  await tl.keyboard.press('Backspace');
  truth((await window_())[1] < f, 'no way back');
});
await test('zoom reaches single nanoseconds', async () => {
  for (let i = 0; i < 60; i++) await tl.keyboard.press('w');
  const [a, b] = await window_();
  truth(b - a <= 10, `${b - a} ns`);
  await tl.keyboard.press('Space');
});
await test('t goes from step to step', async () => {
  await go(tl, 'timeline?t0=0&t1=1000000');
  await settled(tl);
  await tl.focus('.lanes');
  await tl.keyboard.press('t');
  await settled(tl);
  const [a] = await window_();
  truth(a > 500000 && a < 1100000, `at ${a}`);
});
await test('a click shows the slice, an area its sums', async () => {
  await go(tl, 'timeline?t0=0&t1=3000000');
  await settled(tl);
  const box = await (await tl.$('.lanes')).boundingBox();
  await tl.mouse.click(box.x + 400, box.y + 58);
  await until(tl, () => document.querySelector('.drawer h2')?.textContent.startsWith('step'));
  await tl.keyboard.down('Shift');
  await tl.mouse.move(box.x + 300, box.y + 60);
  await tl.mouse.down();
  await tl.mouse.move(box.x + 500, box.y + 130, {steps: 4});
  await tl.mouse.up();
  await tl.keyboard.up('Shift');
  await until(tl, () => [...document.querySelectorAll('.sums td')].some((e) => e.textContent === 'AllReduce'));
});
await test('details stand below the timeline, are resized and closed, and move nothing sideways', async () => {
  const box = async (what) => (await tl.$(what)).boundingBox();
  await go(tl, 'timeline?t0=0&t1=3000000');
  await settled(tl);
  await tl.keyboard.press('Escape');
  const before = await box('.lanes');
  await tl.mouse.click(before.x + 400, before.y + 58);
  await until(tl, () => document.querySelector('.drawer h2')?.textContent.startsWith('step'));
  const lanes = await box('.lanes'), drawer = await box('.drawer');
  equal([lanes.x, lanes.y, lanes.width].join(), [before.x, before.y, before.width].join(), 'place of the lanes');
  truth(drawer.y >= lanes.y + 100 && drawer.width >= lanes.width, 'the details do not stand below');
  await tl.mouse.move(drawer.x + 300, drawer.y + 3);
  await tl.mouse.down();
  await tl.mouse.move(drawer.x + 300, drawer.y - 57, {steps: 3});
  await tl.mouse.up();
  truth(Math.abs((await box('.drawer')).height - drawer.height - 60) < 8, 'not resized');
  await tl.click('.drawer .close');
  truth(await tl.evaluate(() => document.querySelector('.drawer').hidden), 'not closed');
  await tl.focus('.lanes');
  await tl.keyboard.press('Escape'); // nothing is selected any more
  await tl.keyboard.press('q');
  await until(tl, () => document.querySelector('.drawer')?.textContent === 'Nothing is selected.');
  await tl.keyboard.press('q');
});
await test('labels of the ruler differ at every zoom', async () => {
  const wrong = await tl.evaluate(async () => {
    const m = await import('/timeline/painter.js');
    const wrong = [];
    for (let k = 0; k < 9; k++) {
      const from = 5123456789.123, span = 10 ** k * 30, p = Object.create(m.Painter.prototype);
      const labels = p.labels(p.ticks({from, to: from + span}));
      if (new Set(labels).size !== labels.length) wrong.push(labels.join(' '));
    }
    return wrong;
  });
  equal(wrong.join('\n'), '', 'equal labels');
});
await test('texts stay in their slices, whole letters of any script', async () => {
  const shown = await tl.evaluate(async () => {
    const {Painter} = await import('/timeline/painter.js'), p = Object.create(Painter.prototype);
    return [p.fitted('forward', 60), p.fitted('forward', 40), p.fitted('void kernel_of_attention<float, 4>', 150),
      p.fitted('前向传播与反向传播', 75), p.fitted('🙂🙂🙂🙂🙂🙂', 60), p.fitted('x', 5)];
  });
  equal(shown.join(' | '), 'forward | forw… | void kernel_o…at, 4> | 前向传播… | 🙂🙂🙂… | ', 'texts');
});
await test('. chooses a slice and the next one, u what it lies in', async () => {
  const named = (start) => until(tl, (s) => document.querySelector('.drawer h2')?.textContent.startsWith(s), start);
  await go(tl, 'timeline?t0=0&t1=3000000');
  await settled(tl);
  await tl.focus('.lanes');
  await tl.keyboard.press('Escape');
  await tl.keyboard.press('.');
  await named('step');
  await settled(tl);
  await tl.keyboard.press('.');
  await named('layer');
  await settled(tl);
  await tl.keyboard.press('u');
  await named('step');
});
await test('search goes to the next hit, markup in names is text', async () => {
  await tl.keyboard.press('Escape');
  await tl.keyboard.press('/');
  const before = (await window_()).join();
  await tl.keyboard.type('onerror');
  await until(tl, () => document.querySelectorAll('.hitlist .hit').length > 10);
  equal((await window_()).join(), before, 'window after typing');
  truth(/^\d+ hits/.test((await texts(tl, '.drawer h2'))[0]), 'not counted');
  await tl.keyboard.press('Enter');
  await until(tl, () => /^\d+ \/ \d+ hits/.test(document.querySelector('.hitbar span')?.textContent) && document.querySelector('.drawer h2')?.textContent.includes('onerror'));
  await settled(tl);
  const [a, b] = await window_(), start = Number((await hash(tl)).match(/sel=\d+%3A(\d+)/)[1]);
  truth(start >= a && start <= b, `${start} is not between ${a} and ${b}`);
  equal(await tl.evaluate(() => window.hacked), undefined, 'script');
  await tl.keyboard.press('Escape');
  await tl.focus('.lanes');
  await tl.keyboard.press('Escape');
});
await test('a reload restores the window', async () => {
  await go(tl, 'timeline?t0=5000000&t1=6000000');
  await settled(tl);
  await tl.reload();
  await tl.waitForSelector('.lanes');
  await settled(tl);
  equal((await window_()).join(), '5000000,6000000', 'window');
});
await test('a run without communication says how to record some', async () => {
  await go(tl, 'cluster');
  await until(tl, () => document.querySelector('.empty')?.textContent.includes('msprobe run'));
});
await test('every view is reached by keys alone', async () => {
  for (const [key, selector] of [['Alt+2', '.lanes'], ['Alt+1', '.findings'], ['Alt+3', '.empty'], ['Alt+5', '.empty']]) {
    await tl.keyboard.press(key);
    await tl.waitForSelector(selector);
  }
  await until(tl, () => document.querySelector('.empty')?.textContent.includes('msprobe run')); // not that of Alt+3
  await settled(tl);
  await tl.keyboard.press('Tab');
  truth(await tl.evaluate(() => document.activeElement !== document.body), 'Tab goes nowhere');
});
await test('reloading and another tab need no token in the address', async () => {
  const first = await openPage(browser, comparison);
  await first.reload();
  await first.waitForSelector('.finding.E');
  const other = await first.context().newPage();
  await other.goto(comparison.split('#')[0]);
  await other.waitForSelector('.finding.E');
  await first.context().close();
});
await test('a page without a token says what to open', async () => {
  const context = await browser.newContext(), stranger = await context.newPage();
  await stranger.goto(comparison.split('#')[0]);
  await until(stranger, () => document.querySelector('.failure')?.textContent.includes('the whole address'));
  await context.close();
});
await test('a page of an older server says so, and the new address entered in it opens', async () => {
  const context = await browser.newContext(), old = await context.newPage();
  await old.goto(`${comparison.split('#')[0]}#token=${'0'.repeat(32)}`);
  await until(old, () => document.querySelector('.failure')?.textContent.includes('a server that has ended'));
  await old.goto(comparison);
  await old.waitForSelector('.finding.E');
  await context.close();
});
await test('a server that has ended is said in words', async () => {
  await tl.route('**/api/**', (r) => r.abort());
  await go(tl, 'overview');
  await until(tl, () => document.querySelector('.failure')?.textContent.includes('msprobe serve'));
});
await close(browser);
process.exit(failures() ? 1 : 0);
