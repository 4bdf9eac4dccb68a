// SPDX-License-Identifier: MIT
// Chromium for tests of the page, and checks that print "ok NAME" or "not ok NAME: why".
import {existsSync} from 'node:fs';

const SLOW_MS = 60000; // on a machine that does three other things, under a sanitizer
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

// Launches a browser, or says what is missing and ends.
export async function launch() {
  const executablePath = process.env.CHROMIUM ?? PLACES.find((p) => existsSync(p));
  let chromium;
  try {
    ({chromium} = await import('playwright-core'));
  } catch {
    console.log('skip pages in a browser: no playwright-core; npm ci in tests/web/page brings it');
    process.exit(0);
  }
  if (!executablePath) {
    console.log('skip pages in a browser: no Chromium here');
    process.exit(0);
  }
  const browser = await chromium.launch({executablePath, timeout: 2 * SLOW_MS, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-extensions', '--disable-hang-monitor',
    '--renderer-process-limit=1']});
  browser.on('disconnected', () => closing || lost('Chromium ended'));
  return browser;
}

// Ends it for good.
let closing = false;
export async function close(browser) {
  closing = true;
  await browser.close();
}

// A place of the server that printed the address, with its token.
export function addressOf(address, place) {
  const [base, token] = address.split('/#token=');
  return `${base}/#${place.replace(/^#/, '')}${place.includes('?') ? '&' : '?'}token=${token}`;
}

// A page of which every error is remembered; `init` runs in it before anything of its own.
export async function openPage(browser, address, {init, ...options} = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 720}, colorScheme: 'light', ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(SLOW_MS);
  if (init) await page.addInitScript(init);
  page.faults = [];
  page.on('crash', () => lost('a page crashed'));
  page.on('pageerror', (e) => page.faults.push(e.message));
  page.on('console', (m) => { if (m.type() === 'error') page.faults.push(m.text()); });
  await page.goto(address);
  await page.waitForSelector('.ground > *, .failure');
  await settled(page);
  return page;
}

// Chromium itself has gone: that says nothing about the page.  Who started us may try again.
export const LOST = 75;
function lost(why) {
  console.log(`# ${why}`);
  process.exit(LOST);
}

// All that was asked for has come and is drawn: the page is quiet for some time of its own.  A page is
// slow where the machine is, and so are its timers: nothing here depends on how long it takes.
export async function settled(page) {
  await page.evaluate(async () => {
    const quiet = () => !document.body.ariaBusy && !document.querySelector('.leaving, .stale');
    for (let calm = 0; calm < 3;) {
      await new Promise((r) => setTimeout(r, 80));
      await new Promise((r) => requestAnimationFrame(r));
      calm = quiet() ? calm + 1 : 0;
    }
  });
}

let failed = 0;
export const failures = () => failed;

export async function test(name, run) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (e) {
    failed++;
    console.log(`not ok ${name}: ${String(e.message ?? e).split('\n').slice(0, 3).join(' | ')}`);
  }
}

export function equal(got, wanted, what = 'value') {
  if (got !== wanted) throw new Error(`${what}: ${JSON.stringify(got)}, expected ${JSON.stringify(wanted)}`);
}

export function truth(value, what) {
  if (!value) throw new Error(what);
}

// Waits until a question of the page holds.
export async function until(page, fn, arg, what = String(fn)) {
  await page.waitForFunction(fn, arg, {timeout: SLOW_MS}).catch(() => { throw new Error(`never: ${what}`); });
}

// Text elements whose colour is too near to what is behind them.
export function pale() {
  const parse = (c) => {
    const srgb = /color\(srgb ([\d.]+) ([\d.]+) ([\d.]+)(?: \/ ([\d.]+))?/.exec(c);
    if (srgb) return [srgb[1] * 255, srgb[2] * 255, srgb[3] * 255, srgb[4] === undefined ? 1 : Number(srgb[4])];
    const v = c.match(/[\d.]+/g).map(Number);
    return [v[0], v[1], v[2], v[3] ?? 1];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (e) => {
    for (let p = e; p; p = p.parentElement) {
      const c = parse(getComputedStyle(p).backgroundColor);
      if (c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const out = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest('svg, option, [disabled]') || !e.getClientRects().length) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) out.push(`${e.className || e.tagName} "${e.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return out;
}
