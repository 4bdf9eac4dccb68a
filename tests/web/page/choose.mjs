// SPDX-License-Identifier: MIT
// A folder of runs, dumps and comparisons: its list, what is opened of it, and a server that goes away.
//   node choose.mjs FOLDER PID     the address of a server of the folder, and its process
//   the folder has dumps t and g, runs sim and before, statistics over steps tr, a table compare_result_1.csv and a record
//   memory_block.csv
import {close, equal, failures, launch, openPage, settled, test, truth, until} from './browser.mjs';

const [address, pid] = process.argv.slice(2);
const browser = await launch();
const page = await openPage(browser, address);
const texts = (selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent));
const open = async (name) => {
  await page.click(`.shelf button.link >> text=/^${name}$/`);
};
const back = async () => {
  await page.click('.top button:has-text("list")');
  await page.waitForSelector('.shelf');
};

await test('a folder is a list with facts', async () => {
  const rows = await texts('.shelf tr');
  for (const [name, fact] of [['sim', 'run'], ['t', 'dump'], ['g', 'dump'], ['tr', 'trend']]) {
    truth(rows.some((r) => r.startsWith(name) && r.includes(fact) && /20\d\d-\d\d-\d\d/.test(r) && /\d [kM]?B/.test(r)), `${name}: ${rows.join(' | ')}`);
  }
});
await test('the list is sorted by a column', async () => {
  await page.click('.shelf th button >> nth=0');
  const names = await texts('.shelf button.link');
  equal(names.join(), [...names].sort((a, b) => a.localeCompare(b)).join(), 'order');
});
await test('a run of the list opens, and the list comes back', async () => {
  await open('sim');
  await page.waitForSelector('.finding.E');
  truth((await texts('.finding .text')).join().includes('rank 3'), 'another finding');
  await back();
});
await test('two dumps are paired in the page', async () => {
  await page.check('.shelf input[aria-label$=" t"]');
  await page.check('.shelf input[aria-label$=" g"]');
  await page.click('button:has-text("t (target) – g (golden)")');
  await page.waitForSelector('.grows rect.suspect');
  truth((await texts('.finding .text'))[0].includes('Functional.softmax.3.forward'), 'no suspect');
  await back();
});
await test('two runs are paired: the timeline of one, and what takes longer in it', async () => {
  await page.check('.shelf input[aria-label$=" sim"]');
  await page.check('.shelf input[aria-label$=" before"]');
  await page.click('button:has-text("sim (target) – before (golden)")');
  await page.waitForSelector('.finding.W');
  truth((await texts('.finding .text')).some((t) => /^\+.* a step \[.*of rank 3/.test(t)), (await texts('.finding .text')).join(' | '));
  await page.waitForSelector('.flame button');
  await page.click('.flame button >> nth=0');
  truth(/^step: .* → .*\(/.test((await texts('.flame + .told'))[0]), (await texts('.flame + .told')).join());
  await page.click('.finding.W a >> text=/^table$/i');
  await page.waitForSelector('.trow');
  truth((await texts('.trow')).every((t) => t.includes('cause: ')), 'rows that are no cause');
  await page.evaluate(() => { location.hash = 'table?q=HcclSend'; });
  await until(page, () => document.querySelectorAll('.trow').length === 1);
  await page.click('.trow');
  await page.keyboard.press('Enter');
  await until(page, () => document.querySelector('.hitbar')?.textContent.includes('1 / '));
  await page.focus('.lanes');
  await page.keyboard.press('t');
  const older = page.frames().find((f) => f.url().includes('side=old'));
  // Where the window begins and ends, from the beginning of the first step in it.
  const offset = (frame, query) => frame.evaluate(async (q) => {
    const steps = await (await fetch(`/api/steps${q}`, {headers: {'X-Msprobe-Token': localStorage.getItem('msprobe-token')}})).json();
    const at = new URLSearchParams(location.hash.split('?')[1]), [a, b] = ['t0', 't1'].map((k) => Number(at.get(k))), i = steps.findIndex((s) => s[2] >= a && s[2] < b);
    return i < 0 ? null : [i, Math.round((a - steps[i][2]) / 1000), Math.round((b - steps[i][2]) / 1000)].join();
  }, query);
  let seen = [];
  for (let k = 0; k < 200 && (!seen[0] || seen[0] !== seen[1]); k++) {
    await page.waitForTimeout(100);
    seen = [await offset(page, ''), await offset(older, '?side=old')];
  }
  truth(seen[0], 'no step in the window');
  equal(seen[0], seen[1], 'step and window of the older run');
  await page.evaluate(() => { location.hash = 'overview'; });
  await back();
});
await test('a record of memory opens as a table', async () => {
  await open('memory_block.csv');
  await page.waitForSelector('.finding.P');
  await page.click('.finding a');
  await page.waitForSelector('.trow');
  truth((await texts('.trow')).some((t) => t.includes('parameter') && t.includes('4096')), (await texts('.trow')).join(' | '));
  await page.evaluate(() => { location.hash = 'overview'; });
  await back();
});
await test('statistics over steps open as a map, and a cell as curves', async () => {
  await open('tr');
  await page.waitForSelector('canvas.heatmap');
  await page.focus('canvas.heatmap');
  await page.keyboard.press('ArrowDown');
  truth(/, step \d+: /.test((await texts('.told'))[0]), 'the cell is not said');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.plot .curve', {state: 'attached'}); // a line that is flat has no height
  await back();
});
await test('a table of a comparison opens, sorted and filtered', async () => {
  await open('compare_result_1.csv');
  await page.waitForSelector('.finding.E');
  await page.click('.finding a');
  await page.waitForSelector('.trow');
  truth((await texts('.trow')).every((t) => /^[EW]/.test(t)), 'rows that pass');
  equal((await texts('.thead .tcell'))[2].trim(), 'NormRelativeErr', 'the first figure');
  await page.fill('.tbar input[type="search"]', 'b');
  await until(page, () => /^[1-9]\d* rows/.test(document.querySelector('.tbar .dim').textContent));
  await page.evaluate(() => { location.hash = 'overview'; });
  await back();
});
await test('what lies outside of the folder is not opened', async () => {
  const status = await page.evaluate(async () => {
    const r = await fetch('/api/choose?name=../..', {method: 'POST', headers: {'X-Msprobe-Token': localStorage.getItem('msprobe-token')}});
    return [r.status, (await r.json()).error];
  });
  equal(status[0], 404, status[1]);
});
await test('a lost server is said, and its return is seen', async () => {
  process.kill(Number(pid), 'SIGSTOP');
  await page.route('**/api/about', (r) => r.abort());
  await until(page, () => document.querySelector('.status')?.textContent.includes('does not answer'));
  process.kill(Number(pid), 'SIGCONT');
  await page.unroute('**/api/about');
  await until(page, () => !document.querySelector('.status').textContent.includes('does not answer'));
  await settled(page);
  truth(await page.$('.shelf'), 'no list');
});
await close(browser);
process.exit(failures() ? 1 : 0);
