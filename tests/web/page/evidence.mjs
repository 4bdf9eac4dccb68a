// SPDX-License-Identifier: MIT
// What a finding's link shows, what a search lists, and thousands of ranks as a few rows.
//   node evidence.mjs RUN MANY     addresses of a run of 8 ranks of which rank 3 is slow, and of one of hundreds
import {addressOf, close, equal, failures, launch, openPage, settled, test, truth, until} from './browser.mjs';

const [run, many] = process.argv.slice(2);
const browser = await launch();
const hash = (page) => page.evaluate(() => decodeURIComponent(location.hash));
const go = async (page, place) => {
  await page.evaluate((p) => { location.hash = p; }, place);
  await settled(page);
};
const texts = (page, selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
// Pixels of a colour of the theme on the lanes.
const pixels = (page, token) => page.evaluate((name) => {
  const g = new OffscreenCanvas(1, 1).getContext('2d'), c = document.querySelector('.lanes');
  g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  g.fillRect(0, 0, 1, 1);
  const want = g.getImageData(0, 0, 1, 1).data, all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 0; i < all.length; i += 4) n += all[i] === want[0] && all[i + 1] === want[1] && all[i + 2] === want[2];
  return n;
}, token);

// ---- evidence ----------------------------------------------------------------------

const page = await openPage(browser, run);
await test('the overview draws the worst step of the first finding', async () => {
  await page.waitForSelector('canvas.glimpse');
});
await test('a finding of a run opens its evidence: the collective, its culprit and who waits for it', async () => {
  await page.click('.finding a');
  await until(page, () => /only=[\d%C]*3/.test(location.hash) && location.hash.includes('sel='));
  await settled(page);
  truth((await texts(page, '.verdict')).join().includes('rank 3 makes the others wait'), 'no sentence');
  truth((await texts(page, '.drawer')).join().includes('rank 3 comes last'), 'the collective is not selected');
  truth(/pin=\d/.test(await hash(page)) && (await hash(page)).includes('replay=ideal'), await hash(page));
  truth(await pixels(page, 'error') > 200, 'no verdict and no arrows on the canvas');
});
await test('the evidence survives a reload', async () => {
  await page.waitForTimeout(300);
  const before = await hash(page);
  await page.reload();
  await page.waitForSelector('.lanes');
  await settled(page);
  await until(page, () => document.querySelector('.drawer')?.textContent.includes('comes last'));
  equal((await hash(page)).match(/only=[\d,]*/)[0], before.match(/only=[\d,]*/)[0], 'ranks');
});
await test('all ranks come back', async () => {
  await page.click('.verdict button');
  await until(page, () => !location.hash.includes('only='));
});

// ---- search ------------------------------------------------------------------------

const search = async (text) => {
  await page.fill('.find', text);
  await page.waitForTimeout(150);
  await settled(page);
};
await test('the search knows rank, kind, duration, expressions and "not"', async () => {
  await search('rank:3 kind:comm dur>5ms');
  const rows = await texts(page, '.hitlist .hit');
  truth(rows.length > 5 && rows.every((t) => t.includes('rank 3')), rows[0]);
  await search('/Hccl(Send|Recv)/ -Recv');
  truth((await texts(page, '.hitlist .hit')).every((t) => t.includes('HcclSend')), 'others than HcclSend');
});
await test('a term that is none is said, and a term of the graph too', async () => {
  await search('dur>5');
  truth((await texts(page, '.drawer')).join().includes('write dur>5ms'), 'dur>5');
  await search('state:E');
  truth((await texts(page, '.drawer')).join().includes('terms of the graph'), 'state:E');
});
await test('hits are counted and stepped, and the window stays while a text is typed', async () => {
  await go(page, 'timeline?t0=100000000&t1=200000000');
  await search('AllReduce');
  truth((await hash(page)).includes('t0=100000000'), 'the window has moved');
  truth(/^[\d,]+ hits/.test((await texts(page, '.drawer h2'))[0]), 'not counted');
  await page.press('.find', 'Enter');
  await until(page, () => document.querySelector('.hitbar')?.textContent.includes(' / '));
  const first = await hash(page);
  await page.press('.find', 'Enter');
  await page.waitForTimeout(300);
  await settled(page);
  truth(first !== await hash(page), 'Enter goes nowhere');
  await page.press('.find', 'Escape');
});

// ---- addresses ---------------------------------------------------------------------

for (const place of ['timeline?t0=abc&t1=def', 'timeline?from=x&to=y&rank=z', `timeline?t0=1e400&t1=-5&pin=${Array.from({length: 3000}, (_, i) => i).join()}`,
  'timeline?sel=a:b:c&area=1,2,x&only=q&folds=z&top=many', 'nowhere?x=1', 'timeline?rank=99999999999999999999&flip=-1']) {
  await test(`nonsense in an address opens what is nearest: ${place.slice(0, 40)}`, async () => {
    page.faults.length = 0;
    await go(page, place);
    await page.reload();
    await page.waitForSelector('.ground > *');
    await settled(page);
    equal(await page.$('.failure'), null, 'failure');
    equal(page.faults.filter((f) => !/40\d/.test(f)).join('; '), '', 'errors');
  });
}

// ---- many ranks --------------------------------------------------------------------

const crowd = await openPage(browser, addressOf(many, 'timeline'));
await test('ranks that behave alike are one row with a count, and it opens', async () => {
  const rows = await crowd.evaluate(() => document.querySelectorAll('*').length);
  truth(rows < 400, `${rows} elements`);
  const box = await (await crowd.$('.lanes')).boundingBox();
  let opened = '';
  for (let y = 40; y < 300 && !opened.includes('folds='); y += 22) {
    await crowd.mouse.click(box.x + 60, box.y + y);
    await crowd.waitForTimeout(200);
    opened = await hash(crowd);
  }
  truth(opened.includes('folds='), 'no group of ranks');
});
await test('a rank is typed where there are hundreds, and its group opens', async () => {
  await crowd.fill('.top input.few', '100');
  await crowd.press('.top input.few', 'Enter');
  await until(crowd, () => location.hash.includes('rank=100'));
});
await test('the cluster has a cell for every rank, worst first, and folds by a dimension', async () => {
  await go(crowd, 'cluster');
  truth(await crowd.evaluate(() => document.querySelectorAll('*').length) < 1500, 'many elements');
  await crowd.focus('canvas.heatmap >> nth=0');
  await crowd.keyboard.press('ArrowLeft');
  const worst = (await texts(crowd, '.told'))[0];
  truth(/rank \d+: comes last in \d+ %/.test(worst), worst);
  await crowd.selectOption('label:has-text("fold by") select', '0');
  await crowd.focus('canvas.heatmap >> nth=0');
  await crowd.keyboard.press('ArrowLeft');
  truth(/^ranks \d+–\d+/.test((await texts(crowd, '.told'))[0]), (await texts(crowd, '.told'))[0]);
});
await close(browser);
process.exit(failures() ? 1 : 0);
