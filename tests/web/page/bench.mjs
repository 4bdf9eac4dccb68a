// SPDX-License-Identifier: MIT
// Measures the page and its server; each line is a figure beside its bar.
//   node bench.mjs RUN GRAPH     addresses of servers of a large run and a large graph
import {readFileSync} from 'node:fs';
import {stat} from 'node:fs/promises';
import http from 'node:http';
import {addressOf, close, launch, openPage} from './browser.mjs';

const [run, graph] = process.argv.slice(2);
let missed = 0;
function line(what, value, unit, bar) {
  if (value > bar) missed++;
  console.log(`${what.padEnd(58)} ${value.toFixed(value < 10 ? 2 : 0).padStart(9)} ${unit.padEnd(3)} bar ${bar} ${value > bar ? 'MISSED' : 'ok'}`);
}
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(list.length * q))];
const [base, token] = [(address) => address.split('/#')[0], (address) => address.split('token=')[1]];

// ---- the server alone -------------------------------------------------------------

const agent = new http.Agent({keepAlive: true, maxSockets: 64});
function ask(address, path) {
  return new Promise((done, fail) => {
    const start = performance.now();
    http.get(`${base(address)}/api/${path}`, {agent, headers: {'X-Msprobe-Token': token(address)}}, (r) => {
      const parts = [];
      r.on('data', (d) => parts.push(d));
      r.on('end', () => done({ms: performance.now() - start, status: r.statusCode, body: Buffer.concat(parts)}));
    }).on('error', fail);
  });
}
const json = async (address, path) => JSON.parse((await ask(address, path)).body);

const about = await json(run, 'about'), lanes = await json(run, 'lanes');
const tracks = lanes.filter((l) => l.track !== undefined).map((l) => l.track), length = about.timeline.length;
console.log(`# run of ${about.timeline.events} events, ${about.timeline.processes} processes, ${about.timeline.tracks} tracks`);

const parts = new Set((process.env.PARTS ?? 'load run draw graph table').split(' '));

// A window two screens wide on the tracks that one screen shows, as the page asks for it.
function windowOf(i, n) {
  const span = length * 0.5 ** (i % 16), at = (length - span) * ((i * 7919) % 1000) / 1000;
  const first = (i * 13) % Math.max(1, tracks.length - n);
  return `slices?tracks=${tracks.slice(first, first + n).join(',')}&from=${Math.floor(at)}&to=${Math.ceil(at + span)}&px=2120`;
}

if (parts.has('load')) {
  for (let i = 0; i < 20; i++) await ask(run, windowOf(i, 24));
  const times = [];
  for (let i = 0; i < 200; i++) times.push((await ask(run, windowOf(i, 24))).ms);
  line('pan or zoom of 24 tracks, median', quantile(times, 0.5), 'ms', 20);
  line('pan or zoom of 24 tracks, 2 screens, p99', quantile(times, 0.99), 'ms', 20);

  let errors = 0;
  const crowd = [];
  await Promise.all(Array.from({length: 64}, async (_, client) => {
    for (let i = 0; i < 20; i++) {
      await new Promise((r) => setTimeout(r, (client * 37 + i * 11) % 400 + 200)); // people look before they move on
      const r = await ask(run, windowOf(client * 20 + i, 24)).catch(() => ({status: 0, ms: 1e9}));
      errors += r.status !== 200;
      crowd.push(r.ms);
    }
  }));
  line('64 clients, errors', errors, '', 0);
  line('64 clients with 0.2 to 0.6 s between requests, p99', quantile(crowd, 0.99), 'ms', 100);
}

// ---- the page ----------------------------------------------------------------------

const browser = await launch();

// Memory of the page's process, without what it shares with others.
async function rendererBytes() {
  const cdp = await browser.newBrowserCDPSession();
  const {processInfo} = await cdp.send('SystemInfo.getProcessInfo');
  const sizes = processInfo.filter((p) => p.type === 'renderer').map((p) => {
    try {
      return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${p.id}/smaps_rollup`, 'utf8'))[1]) * 1024;
    } catch {
      return 0;
    }
  });
  return Math.max(...sizes);
}

if (parts.has('run')) {
  const page = await openPage(browser, run);
  await page.waitForTimeout(1500);
  const got = await page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
      .reduce((sum, e) => sum + (e.transferSize || e.encodedBodySize), 0));
  line('first paint, transferred', got / 1000, 'KB', 150);
  const paints = [];
  for (let i = 0; i < 7; i++) {
    await page.reload();
    await page.waitForTimeout(700);
    paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 1e9));
  }
  line('first contentful paint, median', quantile(paints, 0.5), 'ms', 300);
  await page.context().close();
}
if (parts.has('run')) {
  const firsts = [];
  for (let i = 0; i < 5; i++) {
    const page = await openPage(browser, addressOf(run, 'timeline'));
    await page.waitForFunction(() => performance.getEntriesByName('timeline').length > 0, null, {timeout: 20000});
    firsts.push(await page.evaluate(() => performance.getEntriesByName('timeline')[0].startTime));
    if (i === 4) {
      await page.focus('.lanes');
      for (let k = 0; k < 40; k++) {
        await page.keyboard.press('wwwdddsssaaa'[k % 12]);
        await page.waitForTimeout(30);
      }
      line('memory of the page after 40 moves', await rendererBytes() / 1e6, 'MB', 300);
    }
    await page.context().close();
  }
  line('first picture of the timeline, median', quantile(firsts, 0.5), 'ms', 1000);
}
if (parts.has('draw')) {
  const page = await openPage(browser, addressOf(run, 'timeline'), {viewport: {width: 2560, height: 1440}});
  const frames = await page.evaluate(async () => {
    const {Painter} = await import('/timeline/painter.js');
    const canvas = document.querySelector('.lanes'), p = new Painter(canvas), N = 50000, LANES = 60, each = Math.floor(N / LANES);
    const lanes = Array.from({length: LANES}, () => ({rows: 1, domain: ''}));
    const shapes = Array.from({length: 8}, (_, i) => ({name: 1 + i, depth: 0, kind: 2, flags: 0}));
    const data = lanes.map(() => ({n: each, shapes, shape: Uint16Array.from({length: each}, (_, i) => i % 8), count: () => 1, start: Float64Array.from({length: each}, (_, i) => i * 3), dur: new Float64Array(each).fill(2.2)}));
    const times = [];
    for (let k = 0; k < 60; k++) {
      const start = performance.now();
      p.resize();
      const view = {from: k * 0.05, to: each * 3, scale: (p.width - 220) / (each * 3)};
      p.begin(view, 220, LANES);
      lanes.forEach((l, i) => p.slices(data[i], l, 28 + i * 22, view));
      p.finish();
      p.g.getImageData(0, 0, 1, 1); // what was asked for is really drawn
      times.push(performance.now() - start);
      await new Promise((r) => requestAnimationFrame(r));
    }
    return times;
  });
  line('a frame of 50,000 rectangles at 2560 × 1440, p95', quantile(frames, 0.95), 'ms', 16);
  await page.context().close();
}
// Notes the frame behind the one in which the first lines of a graph are there.
function seeLines() {
  const seek = () => requestAnimationFrame(() => {
    if (document.querySelectorAll('.line').length > 1) requestAnimationFrame(() => { window.linesAt = performance.now(); });
    else seek();
  });
  seek();
}

if (parts.has('graph')) {
  const opened = [], unfolded = [], found = [];
  for (let i = 0; i < 3; i++) {
    const page = await openPage(browser, addressOf(graph, 'graph'), {init: seeLines});
    await page.waitForFunction(() => window.linesAt > 0);
    opened.push(await page.evaluate(() => window.linesAt));
    await page.evaluate(() => { location.hash = 'graph?node=Module.blocks.5.Block.forward.0'; });
    await page.waitForFunction(() => document.querySelector('.line.now')?.getAttribute('aria-level') === '2', null, {timeout: 10000});
    await page.waitForTimeout(300);
    unfolded.push(await page.evaluate(async () => {
      const before = document.querySelectorAll('.line').length, line = document.querySelector('.line.now'), start = performance.now();
      const name = line.textContent;
      line.querySelector('.fold').click();
      while (!document.querySelector('.line[aria-level="3"]')) await new Promise((r) => requestAnimationFrame(r));
      return before && name ? performance.now() - start : 1e9;
    }));
    for (const text of ['soft', 'gelu.19', 'matmul.1999', 'nothing.here']) {
      found.push(await page.evaluate(async (t) => {
        const input = document.querySelector('.find'), box = document.querySelector('.hits');
        let end = 0;
        const seen = new MutationObserver(() => { end = performance.now(); });
        seen.observe(box, {childList: true, subtree: true});
        input.value = t;
        const start = performance.now();
        input.dispatchEvent(new Event('input'));
        while (!end) await new Promise((r) => setTimeout(r, 1));
        return end - start;
      }, text));
    }
    await page.context().close();
  }
  const n = await json(graph, 'search?q=&limit=1');
  console.log(`# graph of 1,000,000 nodes; first ${n.rows[0]?.name}`);
  line('graph opens, median', quantile(opened, 0.5), 'ms', 500);
  line('1,000 children unfold to the screen, median', quantile(unfolded, 0.5), 'ms', 50);
  line('search as you type, worst of 4 texts', Math.max(...found), 'ms', 100);
}
if (parts.has('table')) {
  const page = await openPage(browser, addressOf(graph, 'table')), shown = () => page.evaluate(() => [...document.querySelectorAll('.trow')].map((r) => r.textContent).join('|'));
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  // How long until other rows are seen, all of them complete.
  const timed = async (what, act) => {
    const before = await shown(), start = performance.now();
    await act();
    await page.waitForFunction((b) => {
      const rows = [...document.querySelectorAll('.trow')], text = rows.map((r) => r.textContent).join('|');
      return rows.length && text !== b && rows.every((r) => r.children.length) && !document.querySelector('.stale');
    }, before, {timeout: 60000});
    console.log(`# table of a million rows, ${what}: ${(performance.now() - start).toFixed(0)} ms`);
  };
  await page.waitForSelector('.trow');
  await page.waitForFunction(() => /1,000,\d\d\d/.test(document.querySelector('.tbar').textContent), null, {timeout: 60000});
  await page.focus('.tbody');
  await timed('to the end', () => page.keyboard.press('End'));
  await timed('to the middle by the scroll bar', () => page.evaluate(() => { document.querySelector('.tbody').scrollTop = 6e6; }));
  await page.mouse.move(640, 400);
  await timed('ten rows by the wheel', () => page.mouse.wheel(0, 240));
  await timed('sorted by a figure', () => page.click('.thead .tcell:has-text("Max")'));
  await timed('sorted by name', () => page.click('.thead .tcell:has-text("name")'));
  await timed('filtered by name', () => page.fill('.tbar input[type=search]', 'gelu'));
  await timed('filtered by one name', () => page.fill('.tbar input[type=search]', 'softmax.1999'));
  await timed('no filter', () => page.fill('.tbar input[type=search]', ''));
  await page.focus('.tbody');
  for (let i = 0; i < 99; i++) await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Control+c');
  await page.waitForFunction(() => /100 copied/.test(document.querySelector('.tbar').textContent));
  line('table of a million rows, memory of the page', await rendererBytes() / 1e6, 'MB', 300);
  const start = performance.now(), [file] = await Promise.all([page.waitForEvent('download', {timeout: 300000}), page.click('text=export CSV')]);
  const size = (await stat(await file.path())).size;
  console.log(`# table of a million rows, exported: ${((performance.now() - start) / 1000).toFixed(1)} s, ${(size / 1e6).toFixed(0)} MB`);
  console.log(`# table of a million rows, memory of the page with the exported file in it: ${(await rendererBytes() / 1e6).toFixed(0)} MB`);
  await page.context().close();
}
await close(browser);
console.log(missed ? `# ${missed} bars missed` : '# all bars met');
