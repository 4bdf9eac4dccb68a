// SPDX-License-Identifier: MIT
// Drives the pages of a run of eight ranks of which rank 3 is slow, and of one that grows meanwhile.
//   node cluster.mjs RUN COMPARISON GROWING "COMMAND THAT MAKES IT GROW"
import {execSync} from 'node:child_process';
import {close, equal, failures, launch, openPage, pale, settled, test, truth, until} from './browser.mjs';

const [run, comparison, growing, grow] = process.argv.slice(2);
const browser = await launch();
const go = (page, place) => page.evaluate((p) => { location.hash = p; }, place);
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));

for (const colorScheme of ['light', 'dark']) {
  const page = await openPage(browser, run, {colorScheme});
  await test(`text stands out from its background: cluster, ${colorScheme}`, async () => {
    await go(page, 'cluster');
    await page.waitForSelector('.plot');
    equal((await page.evaluate(pale)).join('; '), '', 'too pale');
  });
  await page.context().close();
}

// ---- the cluster --------------------------------------------------------------------

const page = await openPage(browser, run);
await test('the slow rank is the first finding', async () => {
  truth((await texts(page, '.finding'))[0].includes('rank 3 makes the others wait'), (await texts(page, '.finding')).join(' | '));
});
await test('the cluster has a bar for each rank, in parts that fill it', async () => {
  await go(page, 'cluster');
  await page.waitForSelector('.heatmap'); // the overview has bars as well
  const shares = await page.$$eval('.bar .track', (all) => all.map((t) => [...t.children].reduce((sum, e) => sum + e.getBoundingClientRect().width, 0) / t.getBoundingClientRect().width));
  equal(shares.length, 8, 'bars');
  truth(shares.every((s) => s > 0.98 && s < 1.02), shares.join(' '));
});
await test('who makes others wait is marked by more than a colour', async () => {
  const first = (await texts(page, '.ranking tr'))[1];
  truth(first.startsWith('▲ 3'), first);
});
await test('the heat map says its values and its scale', async () => {
  const told = [];
  await page.focus('canvas.heatmap >> nth=1');
  for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'ArrowRight']) { // who waits for rank 3
    await page.keyboard.press(key);
    told.push((await texts(page, '.told')).join(' '));
  }
  truth(told.some((t) => / 3: .*ms/.test(t)), 'no value by keys');
  const map = page.locator('canvas.heatmap').nth(1), box = await map.boundingBox();
  await map.hover({position: {x: box.width - 30, y: 30}});
  await until(page, () => /: .*s/.test([...document.querySelectorAll('.told')][1].textContent));
  truth(/0.*ms/.test((await texts(page, '.dim.legend')).join(' ')), 'no scale');
});
await test('bandwidth has a dot for each size and the line that fits', async () => {
  truth((await page.$$('.plot circle')).length >= 3, 'dots');
  truth((await page.getAttribute('.plot .fit', 'points')).split(' ').length > 20, 'no line');
});

// ---- collectives aligned --------------------------------------------------------------

await test('a collective is aligned over its ranks, and the last one is named', async () => {
  await go(page, 'timeline?t0=0&t1=100000000');
  await settled(page);
  const box = await (await page.$('.lanes')).boundingBox();
  let told = '';
  for (let x = 260; x < 900 && !told.includes('comes last'); x += 23) { // wherever a call of rank 2 lies
    await page.mouse.click(box.x + x, box.y + 212);
    await settled(page);
    told = await page.evaluate(() => document.querySelector('.drawer')?.textContent ?? '');
  }
  truth(/rank \d+ comes last/.test(told), told.slice(0, 200));
  truth(/^[×\s]*Hccl\w+ · tensor_1 · [\d.]+ MB/.test(told), told.slice(0, 200));
  // The picture in README.md.
  if (process.env.SHOTS) await page.screenshot({path: `${process.env.SHOTS}/timeline.png`});
  equal((await page.$$('.sums .E')).length, 1, 'stragglers that are marked');
});
await test('sums of an area are sorted by the column that is chosen, and exported', async () => {
  const box = await (await page.$('.lanes')).boundingBox();
  await page.keyboard.down('Shift');
  await page.mouse.move(box.x + 260, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 200, {steps: 4});
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await page.waitForSelector('.sums th[aria-sort]');
  await page.click('.sums th button:has-text("count")');
  const counts = (await page.$$eval('.sums tr', (rows) => rows.slice(1).map((r) => Number(r.children[1].textContent.replace(/,/g, '')))));
  truth(counts.length > 1 && counts.every((v, i) => i === 0 || counts[i - 1] >= v), counts.join(' '));
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('.drawer button:has-text("export")')]);
  const lines = (await (await import('node:fs/promises')).readFile(await file.path(), 'utf8')).trim().split('\n');
  equal(lines.length, counts.length + 1, 'lines');
});

// ---- SQL, places, words ---------------------------------------------------------------

await test('the SQL box answers, and refuses what would change something', async () => {
  await page.focus('.lanes');
  await page.keyboard.press(':');
  await page.waitForSelector('.dialog textarea');
  await page.fill('.dialog textarea', 'SELECT count(*) AS n FROM events');
  await page.keyboard.press('Control+Enter');
  await until(page, () => Number(document.querySelector('.result td')?.textContent) > 1000);
  await page.fill('.dialog textarea', 'DROP TABLE events');
  await page.keyboard.press('Control+Enter');
  await until(page, () => document.querySelector('.result .failure')?.textContent.includes('not authorized'));
  await page.keyboard.press('Escape');
  equal(await page.$('.dialog'), null, 'dialog');
});
await test('a snapshot leads back', async () => {
  await go(page, 'timeline?t0=5000000&t1=6000000');
  await settled(page);
  await page.focus('.lanes');
  await page.keyboard.press('Shift+Digit3');
  await page.waitForSelector('.toast');
  await go(page, 'overview');
  await page.waitForSelector('.findings');
  await page.keyboard.press('3');
  await until(page, () => location.hash.includes('t0=5000000'));
});
await test('in Chinese no key is left without words', async () => {
  await page.click('.top button >> nth=1');
  await settled(page);
  await page.focus('.lanes');
  await page.keyboard.press('?');
  await page.waitForSelector('.keylist > div');
  const left = (await texts(page, '.keylist span')).filter((t) => !/[\u4e00-\u9fff]/.test(t));
  equal(left.join('; '), '', 'English');
  await page.keyboard.press('Escape');
  for (const place of ['overview', 'cluster']) {
    await go(page, place);
    await page.waitForSelector('.page h2');
    equal((await texts(page, '.page h2')).filter((t) => !/[\u4e00-\u9fff]/.test(t)).join('; '), '', place);
    equal((await texts(page, '.finding .text')).filter((t) => !/[\u4e00-\u9fff]/.test(t)).join('; '), '', `findings of ${place}`);
  }
});
await test('no error in the console', async () => equal(page.faults.filter((f) => !f.includes('400 (Bad Request)')).join('; '), '', 'faults'));
await page.context().close();

// ---- two sides --------------------------------------------------------------------------

const pair = await openPage(browser, comparison);
await test('x folds each side on its own, and together again', async () => {
  await go(pair, 'graph?step=0&rank=1&node=Functional.softmax.3.forward');
  await until(pair, () => document.querySelector('.line.now'));
  await pair.focus('.outline');
  await pair.keyboard.press('x');
  await until(pair, () => document.querySelectorAll('.outline').length === 2);
  const count = (n) => pair.$$eval('.outline', (all, k) => all[k].querySelectorAll('.line').length, n);
  await settled(pair);
  const before = await count(1);
  await pair.focus('.outline >> nth=0');
  await pair.keyboard.press('Home');
  await pair.keyboard.press('Enter');
  await until(pair, () => document.querySelector('.outline').querySelectorAll('.line').length === 1);
  equal(await count(1), before, 'lines of the other side');
  await pair.keyboard.press('x');
  await until(pair, () => document.querySelectorAll('.outline').length === 1);
  await settled(pair);
});
await test('the splitter moves by keys', async () => {
  const width = () => document.querySelector('.line .side')?.getBoundingClientRect().width;
  await go(pair, 'graph?step=0&rank=1&node=Functional.softmax.3.forward');
  await settled(pair); // folding together again takes the focus when it ends
  await until(pair, width);
  const before = await pair.evaluate(width);
  await pair.focus('.splitter');
  for (let i = 0; i < 5; i++) await pair.keyboard.press('ArrowRight');
  await until(pair, (old) => document.querySelector('.line .side')?.getBoundingClientRect().width > old + 20, before);
});
await test('each row shows the figure that was chosen', async () => {
  await until(pair, () => document.querySelector('.line.now .figure')?.textContent === '8');
  await pair.selectOption('.gbar select', 'Max diff');
  await until(pair, () => document.querySelector('.line.now .figure')?.textContent === '40');
});
await test('no error in the console of the comparison', async () => equal(pair.faults.join('; '), '', 'faults'));
await pair.context().close();

// ---- a run that grows -----------------------------------------------------------------

const live = await openPage(browser, growing);
await test('a run that is still written is followed', async () => {
  const events = () => live.$eval('.status span', (e) => Number(e.textContent.replace(/\D/g, '')));
  const before = await events();
  execSync(grow, {stdio: 'ignore'});
  await live.waitForFunction((n) => Number(document.querySelector('.status span').textContent.replace(/\D/g, '')) > n, before, {timeout: 120000});
  await until(live, () => document.querySelector('.status').textContent.includes('live'));
});
await close(browser);
process.exit(failures() ? 1 : 0);
