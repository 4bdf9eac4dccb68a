// SPDX-License-Identifier: MIT
// The page without a mouse, without colours, with odd names: what is measured rather than seen.
//   node hands.mjs RUN COMPARISON DUMP
import {readFile} from 'node:fs/promises';
import {addressOf, close, equal, failures, launch, openPage, settled, test, truth, until} from './browser.mjs';

const [run, comparison, dump] = process.argv.slice(2);
const browser = await launch();
const go = async (page, place) => {
  await page.evaluate((p) => { location.hash = p; }, place);
  await settled(page);
};
const hash = (page) => page.evaluate(() => location.hash);
const now = (page, text) => until(page, (t) => document.querySelector('.line.now')?.textContent.includes(t), text);

// ---- colours --------------------------------------------------------------------------

// Colours of marks that stand out less than three to one from what they are drawn on, and of slices
// from which their names do not.
async function faint() {
  const {markColour} = await import('/timeline/painter.js'), dark = document.documentElement.dataset.theme === 'dark';
  const probe = document.body.appendChild(document.createElement('i'));
  const light = (colour) => {
    probe.style.color = /^hsl/.test(colour) ? colour : `var(--${colour})`;
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number)
        .map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), out = [];
  for (const ground of ['bg', 'panel']) {
    const own = Array.from({length: 200}, (_, i) => markColour(`layer${i}.forward`, dark)), kinds = ['compute', 'comm', 'copy', ...own];
    for (const k of kinds) if (ratio(light('text'), light(k)) < 4.5) out.push(`text on ${k}: ${ratio(light('text'), light(k)).toFixed(2)}`);
    for (const [tokens, least] of [[['text', 'dim', 'error', 'warning', 'pass', 'unmatched', 'accent'], 4.5], [kinds, 3]]) {
      for (const t of tokens) if (ratio(light(t), light(ground)) < least) out.push(`${t} on ${ground}: ${ratio(light(t), light(ground)).toFixed(2)}`);
    }
  }
  probe.remove();
  return out;
}

// What is coloured by a state and says nothing but its colour.
const onlyColoured = () => [...document.querySelectorAll('.E, .W, .P, .U')]
    .filter((e) => e.getClientRects().length && !/[EW!.■▲●□↯-]|\w{4}/.test(e.textContent)).map((e) => e.outerHTML.slice(0, 80));

for (const colorScheme of ['light', 'dark']) {
  const page = await openPage(browser, comparison, {colorScheme});
  await test(`marks stand out, ${colorScheme}`, async () => equal((await page.evaluate(faint)).join('; '), '', 'faint'));
  for (const place of ['overview', 'graph?step=0&rank=1&node=Functional.softmax.3.forward', 'table']) {
    await test(`no state by colour alone: ${place.split('?')[0]}, ${colorScheme}`, async () => {
      await go(page, place);
      equal((await page.evaluate(onlyColoured)).join('; '), '', 'only coloured');
    });
  }
  await page.context().close();
}

// ---- keys alone -------------------------------------------------------------------------

// Tab goes round the whole page: every control that is seen gets the focus once, and shows it.
async function tabRound(page) {
  const all = await page.evaluate(() => {
    const seen = [...document.querySelectorAll('button, a[href], input, select, summary, [tabindex="0"]')]
        .filter((e) => e.getClientRects().length && !e.disabled && !e.closest('[inert]') && e.tabIndex >= 0);
    seen.forEach((e, i) => { e.dataset.stop = i; });
    document.activeElement.blur();
    return seen.length;
  });
  const stops = new Set(), dull = [];
  for (let i = 0; i < all + 3 && stops.size < all; i++) {
    await page.keyboard.press('Tab');
    const [stop, shown, what] = await page.evaluate(() => {
      const e = document.activeElement, s = getComputedStyle(e);
      return [e.dataset.stop, s.outlineStyle !== 'none' || s.boxShadow !== 'none', e.outerHTML.slice(0, 60)];
    });
    if (stop !== undefined) stops.add(stop);
    if (stop !== undefined && !shown) dull.push(what);
  }
  return {all, reached: stops.size, dull};
}

const page = await openPage(browser, comparison);
for (const place of ['overview', 'graph', 'table']) {
  await test(`Tab reaches every control: ${place}`, async () => {
    await go(page, place);
    const {all, reached, dull} = await tabRound(page);
    equal(reached, all, 'controls reached');
    equal(dull.join('; '), '', 'focus is not seen on');
  });
}
await test('from a finding to its rows and back, by keys', async () => {
  await page.keyboard.press('Alt+1');
  await page.waitForSelector('.finding a');
  await settled(page);
  await page.focus('.finding a + a');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.trow');
  await settled(page);
  truth((await page.$$eval('.trow', (rows) => rows.map((r) => r.textContent))).every((t) => t.includes('softmax.3')), 'other rows');
  await page.keyboard.press('Backspace');
  await page.waitForSelector('.findings');
});
await test('the overview names the suspect and says what was compared', async () => {
  const text = await page.textContent('.page');
  truth(text.includes('Functional.softmax.3.forward introduces'), text.slice(0, 200));
  truth(text.includes('pytorch'), 'no framework');
});

// ---- graph ------------------------------------------------------------------------------

await test('suspects are listed, and the row says what it does', async () => {
  await go(page, 'graph?step=0&rank=0');
  await page.focus('.outline');
  await page.keyboard.press('p');
  await page.waitForSelector('.hit');
  await page.click('.hit >> nth=0');
  await now(page, 'softmax.3');
  truth((await page.textContent('.line.now')).includes('introduces'), 'no role');
  await until(page, () => document.querySelector('.drawer').textContent.includes('introduces'));
});
await test('in a small window with details open a suspect keeps its name and its role', async () => {
  await page.setViewportSize({width: 1024, height: 700});
  const suspect = await page.waitForSelector('.line.now:has(.side b)');
  const room = await suspect.$eval('.name', (e) => e.clientWidth), role = await suspect.$eval('b', (e) => e.scrollWidth - e.clientWidth);
  truth(room >= 60 && role <= 0, `the name has ${room} pixels, ${role} of the role are cut off`);
  truth(await page.isHidden('.rail span'), 'words beside the icons');
  await page.setViewportSize({width: 1280, height: 720});
});
await test('Backspace undoes a jump, F puts the row in the middle, Space folds', async () => {
  await page.focus('.outline');
  await page.keyboard.press('e');
  await until(page, () => !document.querySelector('.line.now')?.textContent.includes('softmax.3'));
  await settled(page);
  await page.keyboard.press('Backspace');
  await now(page, 'softmax.3');
  await page.keyboard.press('f');
  await now(page, 'softmax.3');
  const lines = await page.$$eval('.line', (all) => all.length);
  await page.keyboard.press('Space');
  await until(page, (n) => document.querySelectorAll('.line').length < n, lines);
});
await test('] goes to the same call on the next rank, [ back', async () => {
  await go(page, 'graph?step=0&rank=0&node=Distributed.all_reduce.0.forward');
  await now(page, 'all_reduce');
  await settled(page);
  await page.focus('.outline');
  await page.keyboard.press(']');
  await until(page, () => location.hash.includes('rank=1'));
  await now(page, 'all_reduce');
  await settled(page);
  await page.keyboard.press('[');
  await until(page, () => location.hash.includes('rank=0'));
});
await test('a module shows its children on every rank, a letter each', async () => {
  await settled(page);
  await go(page, 'graph?step=0&rank=0&node=Module.m.layers.3.Block.forward.0');
  await until(page, () => document.querySelectorAll('.matrix').length === 2);
  const cells = await page.$$eval('.matrix >> nth=1 >> td', (all) => all.map((e) => e.textContent));
  truth(cells.length === 4 && cells.every((t) => /^[E.W-]/.test(t)), cells.join('|'));
});
await test('what is unfolded is saved as a drawing', async () => {
  const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('P')]);
  const text = await readFile(await file.path(), 'utf8');
  truth(file.suggestedFilename().endsWith('.svg') && text.startsWith('<svg') && text.includes('>layers.3.'), text.slice(0, 100));
});
await test('odd names break nothing', async () => {
  await go(page, 'graph?step=0&rank=0&node=Torch.%D9%85%D8%B5%D9%81%D9%88%D9%81%D8%A9.0.forward');
  await now(page, 'مصفوفة');
  for (const place of ['graph', 'table', 'overview']) {
    await go(page, place);
    equal(await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth), 0, `${place} is wider than the window`);
  }
});
await test('the table copies the rows that are chosen, whole', async () => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await go(page, 'table?step=0&rank=1&q=softmax');
  await page.focus('.tbody');
  await page.keyboard.press('Home');
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Control+c');
  await until(page, () => /copied/.test(document.querySelector('.tbar').textContent));
  const lines = (await page.evaluate(() => navigator.clipboard.readText())).split('\n');
  equal(lines.length, 2, 'lines');
  truth(lines.every((t) => t.includes('Functional.softmax.') && t.includes('\t')), lines.join('|'));
});
await test('no error in the console of the comparison', async () => equal(page.faults.join('; '), '', 'faults'));
await page.context().close();

// ---- a dump alone -----------------------------------------------------------------------

const alone = await openPage(browser, dump);
await test('the graph of one dump fills its view', async () => {
  await go(alone, 'graph?step=0&rank=0&node=Functional.softmax.3.forward');
  await now(alone, 'softmax.3');
  const {height, lines} = await alone.$eval('.outline', (e) => ({height: e.clientHeight, lines: e.querySelectorAll('.line').length}));
  truth(height > 400 && lines > 8, `${lines} lines in ${height} px`);
});
await test('the table of one dump has its statistics, and no columns of another', async () => {
  await go(alone, 'table?step=0&rank=0');
  await alone.waitForSelector('.trow');
  const head = await alone.textContent('.thead');
  truth(head.includes('Norm') && !head.includes('golden'), head);
});
await test('no error in the console of the dump', async () => equal(alone.faults.join('; '), '', 'faults'));
await alone.context().close();

// ---- timeline ---------------------------------------------------------------------------

const tl = await openPage(browser, addressOf(run, 'timeline'));
const window_ = async () => {
  await settled(tl);
  const q = new URLSearchParams((await hash(tl)).split('?')[1]);
  return [Number(q.get('t0')), Number(q.get('t1'))];
};
await test('Tab reaches every control: timeline', async () => {
  const {all, reached, dull} = await tabRound(tl);
  equal(reached, all, 'controls reached');
  equal(dull.join('; '), '', 'focus is not seen on');
});
await test('a step is chosen from the list', async () => {
  await tl.selectOption('.top select >> nth=0', '7');
  const [a, b] = await window_();
  truth(a > 6e8 && b < 9e8 && b - a < 2e8, `${a} ${b}`);
});
await test('e goes to the finding and says it', async () => {
  await tl.focus('.lanes');
  await tl.keyboard.press('e');
  await until(tl, () => document.querySelector('.verdict')?.textContent.includes('rank 3 makes the others wait') && document.querySelector('.drawer')?.textContent.includes('comes last'));
  await until(tl, () => location.hash.includes('only='));
  await tl.click('.verdict button');
  await until(tl, () => document.querySelector('.verdict').hidden);
});
await test('Enter closes a process, and opens it', async () => {
  const seen = () => tl.evaluate(() => {
    const c = document.querySelector('.lanes');
    return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.reduce((sum, v, i) => (sum * 31 + v * (i % 7)) % 1000003, 7);
  });
  await settled(tl);
  const before = await seen();
  await tl.keyboard.press('Enter');
  await settled(tl);
  truth(before !== await seen(), 'nothing has changed');
  await tl.keyboard.press('Enter');
  await tl.keyboard.press('o'); // all closed: each draws how busy it is, once that is known
  await settled(tl);
  await tl.keyboard.press('o');
});
await test('what is seen is saved as a picture', async () => {
  const [file] = await Promise.all([tl.waitForEvent('download'), tl.keyboard.press('P')]);
  const bytes = await readFile(await file.path());
  equal(bytes.subarray(1, 4).toString(), 'PNG', 'kind');
  truth(bytes.length > 5000, `${bytes.length} bytes`);
});
await test('the cluster divides a step and tells what is overlapped', async () => {
  await go(tl, 'cluster');
  truth(/computing.*communication alone/.test(await tl.textContent('.legend')), 'no parts');
  equal((await tl.$$('details .sums tr')).length, 9, 'rows of figures');
  truth((await tl.textContent('.page')).includes('Sent from rank to rank'), 'no matrix');
  equal(await tl.$('text=No point-to-point transfers'), null, 'transfers are missing');
});
await test('no error in the console of the run', async () => equal(tl.faults.join('; '), '', 'faults'));
await close(browser);
process.exit(failures() ? 1 : 0);
