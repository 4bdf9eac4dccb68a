// SPDX-License-Identifier: MIT
// The frame of the page: title bar, rail of views, the view, details, status line.
import {get, side, Stranger, takeToken, told} from './shared/api.js';
import {Keys} from './shared/keys.js';
import * as place from './shared/place.js';
import * as snapshot from './shared/snapshot.js';
import {count, fill, h, svg, time} from './shared/util.js';
import {extent, language, switchLanguage, w} from './shared/words.js';

const views = {
  overview: () => import('./overview.js'),
  timeline: () => import('./timeline/timeline.js'),
  graph: () => import('./graph/graph.js'),
  table: () => import('./table/table.js'),
  cluster: () => import('./timeline/cluster.js'),
};
// The modules of each view, so that they are fetched in parallel.
const parts = {
  overview: ['shared/bars', 'shared/heat'],
  timeline: ['timeline/slices', 'timeline/painter', 'timeline/hands', 'timeline/marks', 'timeline/sums', 'timeline/counters', 'timeline/replay', 'timeline/evidence', 'timeline/found', 'timeline/folds'],
  graph: ['graph/node', 'shared/mark', 'graph/outline'],
  table: ['shared/mark'],
  cluster: ['shared/bars', 'shared/heat'],
};
const icons = {
  overview: 'M2 2h5v5H2zM9 2h5v3H9zM9 7h5v7H9zM2 9h5v5H2z',
  timeline: 'M1 4h6M5 8h8M3 12h5M10 12h4',
  graph: 'M2 2h5v4H2zM9 10h5v4H9zM4 6v6h5',
  table: 'M2 3h12v10H2zM2 6.5h12M6 3v10',
  cluster: 'M8 2l5 3v6l-5 3-5-3V5zM8 2v12M3 5l10 6M13 5L3 11',
};
const POLL_MS = 2000, LIVE_MS = 15000, LOW_LEAST = 60, LOW_USUAL = 190, LOW_STEP = 20, LISTED = 200;
let grownAt = -Infinity; // time at which the run was last seen to grow

const app = {about: {}, view: null, keys: new Keys()};

// ---- frame ------------------------------------------------------------------------

const top = h('header.top'), rail = h('nav.rail'), view = h('main.view', {tabIndex: -1});
const drawer = h('aside.drawer', {hidden: true}), status = h('footer.status');
const find = h('input.find', {type: 'search', 'aria-label': 'search'});

function selector(label, values, now, choose) {
  if (values.length < 2) return null;
  if (values.length > LISTED) { // thousands of ranks are typed, not listed
    return h('label.dim', {}, `${label} `, h('input.few', {type: 'number', min: values[0], max: values.at(-1), value: String(now ?? ''),
      onchange: (e) => values.map(String).includes(e.target.value) && choose(e.target.value)}));
  }
  return h('label.dim', {}, `${label} `, h('select', {onchange: (e) => choose(e.target.value)},
      values.map((v) => h('option', {value: v, selected: String(v) === String(now)}, v === '' ? w('all') : v))));
}

function drawTop() {
  const at = place.read(), g = app.about.graph;
  fill(top, h('h1.title', {}, 'msprobe'), app.about.shelf && (app.about.timeline || app.about.graph || app.about.trend || app.about.sheet) && h('button', {title: w('choose'), onclick: backToList}, `‹ ${w('list')}`),
      h('span.dim', {title: app.about.path}, app.about.title),
      app.view?.choices?.().map((c) => selector(...c)),
      g && app.view?.screen !== 'timeline' && selector(w('step'), g.steps, at.step ?? g.steps[0], (v) => place.go({...place.read(), step: v})),
      g && app.view?.screen !== 'timeline' && selector(w('rank'), g.ranks, at.rank ?? g.ranks[0], (v) => place.go({...place.read(), rank: v})),
      find,
      h('button', {title: w('theme'), onclick: switchTheme}, '◐'),
      h('button', {title: w('language'), onclick: otherLanguage}, language() === 'zh' ? 'EN' : 'ZH'),
      h('button', {title: w('help'), onclick: () => app.keys.show()}, '?'));
  find.ariaLabel = w('search');
  find.placeholder = w({timeline: 'searchSlices', graph: 'searchNodes', table: 'searchNodes'}[at.screen] ?? 'search');
}

function drawRail() {
  const now = place.read().screen;
  fill(rail, place.SCREENS.map((s) => h('button', {
    'aria-current': s === now ? 'page' : null, title: w(s), onclick: () => place.go({screen: s}),
  }, svg('svg', {viewBox: '0 0 16 16'}, svg('path', {d: icons[s]})), h('span', {}, w(s)))));
}

function drawStatus() {
  const {timeline: t, graph: g} = app.about;
  fill(status, t && h('span', {}, `${count(t.events)} ${w('events')}`),
      t?.clock > 0 && h('span', {}, `${w('clock')} ±${time(t.clock)}`),
      t && t.dropped > 0 && h('span.W', {}, `${count(t.dropped)} ${w('dropped')}`),
      g && h('span', {}, extent(g)),
      g?.changes > 0 && h('span.W', {}, `${count(g.changes)} ${w('unwritten')}`),
      lost && h('span.W', {role: 'alert'}, w('lost')), app.view?.summary?.(), h('span.grow'), performance.now() - grownAt < LIVE_MS && h('span.P', {title: w('liveHint')}, `${w('live')} ●`), h('span', {}, app.view?.hint?.() ?? ''));
}

// ---- theme and language -------------------------------------------------------------

function switchTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
  localStorage.setItem('msprobe-theme', root.dataset.theme);
  app.view?.restyle?.();
}

function otherLanguage() {
  switchLanguage();
  drawFrame();
  show(place.read(), true);
}

function firstTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme =
      localStorage.getItem('msprobe-theme') ?? (dark ? 'dark' : 'light');
  document.documentElement.lang = language();
  document.documentElement.classList.toggle('inner', side !== null);
}

// ---- views ------------------------------------------------------------------------

function showFailure(e) {
  fill(view, h('div.failure', {role: 'alert'}, h('p', {}, told(e)), h('button', {onclick: () => show(place.read(), true)}, w('tryAgain'))));
}

// The server has opened something else: everything is read anew.
async function opening() {
  const about = await get('about');
  if (about.opened === app.about.opened) return; // whoever chose and the poll both notice; the first one acts
  app.about = about;
  document.title = `${app.about.title} · msprobe`;
  place.note({screen: 'overview'});
  history.replaceState(null, '', '#overview');
  drawFrame();
  await show(place.read(), true);
}

async function backToList() {
  try {
    await (await import('./shelf.js')).choose(undefined, undefined, app.about.opened);
    await opening();
  } catch (e) {
    showFailure(e);
  }
}

// Keeps the picture of the previous view, dimmed, until the next one is drawn.
function leave() {
  const [last, ...older] = view.children;
  for (const e of older) e.remove();
  if (!last) return;
  last.inert = true;
  last.classList.add('leaving');
}

let turns = 0; // number of the latest request for a view
async function show(at, anew = false) {
  drawTop();
  drawRail();
  if (app.view && app.view.screen === at.screen && !anew) {
    app.view.go(at);
    return;
  }
  const turn = ++turns;
  try {
    const {open} = await views[at.screen]();
    if (turn !== turns) return; // another view was requested meanwhile
    app.view?.close?.();
    app.view = null;
    drawer.hidden = true;
    app.keys.clear('view');
    const root = h('div.ground');
    leave();
    view.prepend(root);
    const opened = await open({...app, root, showDrawer: (...c) => turn === turns && showDrawer(...c), place: at, status: drawStatus, frame: drawFrame, opening});
    if (turn !== turns) return;
    app.view = opened;
    app.view.screen = at.screen;
    document.body.dataset.screen = at.screen;
    for (const e of [...view.children]) if (e !== root) e.remove(); // keeps the focus
    drawTop();
    drawStatus();
  } catch (e) {
    if (turn !== turns) return;
    app.view = null;
    showFailure(e);
  }
}

// Shows details at the right, or below the timeline; a call without content closes the drawer.
function showDrawer(...content) {
  drawer.hidden = content.length === 0;
  if (drawer.hidden) fill(drawer);
  else fill(drawer, grip(), h('button.close', {title: w('close'), 'aria-label': w('close'), onclick: () => { drawer.hidden = true; }}, '×'), ...content);
}

// The upper edge of the drawer below the timeline, by which its height is changed.
function grip() {
  const bar = h('div.grip', {role: 'separator', tabIndex: 0, 'aria-orientation': 'horizontal', 'aria-label': w('height'), 'aria-valuemin': String(LOW_LEAST), 'aria-valuemax': String(innerHeight - LOW_LEAST), 'aria-valuenow': String(drawer.offsetHeight || LOW_USUAL)});
  const to = (px) => {
    const now = Math.min(Math.max(px, LOW_LEAST), innerHeight - LOW_LEAST);
    bar.setAttribute('aria-valuenow', Math.round(now));
    document.body.style.setProperty('--low', `${now}px`);
  };
  bar.addEventListener('pointerdown', (e) => bar.setPointerCapture(e.pointerId));
  bar.addEventListener('pointermove', (e) => e.buttons && to(drawer.getBoundingClientRect().bottom - e.clientY));
  bar.addEventListener('keydown', (e) => {
    const by = {ArrowUp: LOW_STEP, ArrowDown: -LOW_STEP}[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    to(drawer.offsetHeight + by);
  });
  return bar;
}

function drawFrame() {
  drawTop();
  drawRail();
  drawStatus();
}

let lost = false; // the last poll had no answer

// Polls a run that is still being written, and informs the view of new data.
async function poll() {
  const before = app.about;
  try {
    const about = await get('about');
    if (app.about !== before) return void setTimeout(poll, POLL_MS); // something else was opened meanwhile
    if (lost) {
      lost = false;
      drawStatus();
      app.view?.refresh?.(about);
      if (!app.view) await show(place.read(), true);
    }
    if (about.opened !== app.about.opened) await opening();
    const grown = about.version !== app.about.version, edited = about.graph?.changes !== app.about.graph?.changes;
    app.about = about;
    if (edited) drawStatus();
    if (grown) {
      grownAt = performance.now();
      drawFrame();
      app.view?.refresh?.(about);
    }
  } catch (e) { // other failures are reported by the view's next request
    if (e instanceof Stranger) return showFailure(e);
    lost = true;
    drawStatus();
  }
  setTimeout(poll, POLL_MS);
}

// Focuses the search field and selects the old text, so that typing replaces it.
function startSearch() {
  find.focus();
  find.select();
}

function flipDrawer() {
  if (drawer.hidden && !drawer.children.length) fill(drawer, h('p.dim', {}, w('noDetails')));
  drawer.hidden = !drawer.hidden;
}

// Goes to the node at which the two sides begin to differ.
async function goToFirst() {
  const {graph: g} = app.about, at = place.read();
  if (!g) return;
  const {step = g.steps[0], rank = g.ranks[0]} = at, {rows} = await get('first', {step, rank});
  place.go({screen: 'graph', step, rank, node: rows[0]?.name});
}

async function showPalette() {
  (await import('./shared/palette.js')).openPalette(app.keys);
}

function globalKeys() {
  const k = app.keys;
  k.add('app', '/', 'search', startSearch);
  k.add('app', 'ctrl+f', 'search', startSearch);
  k.add('app', '>', 'commands', showPalette);
  k.add('app', 'ctrl+shift+p', 'commands', showPalette);
  k.add('app', ':', 'ask in SQL', async () => (await import('./table/sql.js')).openSql(app.about));
  for (let n = 1; n <= 9; n++) k.add('app', String(n), `recall snapshot ${n}`, () => snapshot.recall(n));
  for (let n = 1; n <= 9; n++) k.add('app', `shift+${n}`, `store snapshot ${n}`, () => snapshot.store(n));
  k.add('app', 'K', 'note about this place', () => snapshot.note());
  k.add('app', "'", 'notes and snapshots', () => snapshot.list());
  k.add('app', '?', 'help', () => k.show());
  k.add('app', 'backspace', 'back', () => history.back());
  k.add('app', 'ctrl+b', 'icons alone at the left', () => rail.classList.toggle('small'));
  k.add('app', 'q', 'details', flipDrawer);
  k.add('app', 'g', 'first', () => goToFirst().catch(showFailure));
  k.add('app', 'escape', 'close the details', () => { drawer.hidden = true; });
  k.add('app', '', 'theme', switchTheme);
  k.add('app', '', 'language', otherLanguage);
  place.SCREENS.forEach((s, i) => k.add('app', `alt+${i + 1}`, s, () => place.go({screen: s})));
  find.addEventListener('input', () => app.view?.search?.(find.value, 0));
  find.addEventListener('keydown', (e) => {
    if (e.key === 'Enter') app.view?.search?.(find.value, e.shiftKey ? -1 : 1);
    else if (e.key === '>' && find.value === '') {
      e.preventDefault();
      showPalette();
    } else if (e.key === 'Escape') {
      find.value = '';
      app.view?.search?.('', 0);
      view.focus();
    } else return;
    e.stopPropagation();
  });
}

async function start() {
  takeToken();
  // Entering the URL of a newer server in the tab of an older one changes only the hash.
  addEventListener('hashchange', () => takeToken() && location.reload());
  firstTheme();
  document.body.append(top, rail, view, drawer, status);
  globalKeys();
  place.listen((at) => show(at));
  try {
    const {screen} = place.read();
    views[screen](); // fetched in parallel with the first answer
    for (const p of parts[screen]) import(`./${p}.js`);
    app.about = await get('about');
    document.title = `${app.about.title} · msprobe`;
    await show(place.read());
    setTimeout(poll, POLL_MS);
  } catch (e) {
    drawFrame();
    showFailure(e);
  }
}

start();
