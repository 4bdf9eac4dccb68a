// SPDX-License-Identifier: MIT
// The graph: nested modules of one side or two, loaded when they are unfolded.
import {canWrite, get, post} from '../shared/api.js';
import {mark} from '../shared/mark.js';
import {openNode} from './node.js';
import {Outline} from './outline.js';
import * as place from '../shared/place.js';
import {copy, count, digits, fill, h, shortName, VirtualList} from '../shared/util.js';
import {language, w} from '../shared/words.js';

const ROW = 22, ROW_LEAST = 16, ROW_MOST = 44, HOVER_MS = 150, SPLIT_LEAST = 0.15, SPLIT_USUAL = 0.58, SPLIT_STEP = 0.02, FIGURES_MAX = 100;
const METRICS = {summary: ['NormRelativeErr', 'MaxRelativeErr', 'MeanRelativeErr', 'MinRelativeErr', 'L2norm diff', 'Max diff', 'Mean diff'],
  all: ['Cosine', 'EucDist', 'MaxAbsErr', 'MaxRelativeErr', 'One Thousandth Err Ratio', 'Five Thousandths Err Ratio']};

// A list of lines: of both sides, or of one of two sides that are folded independently.
class Pane {
  constructor(graph, side) {
    this.side = side;
    this.cursor = 0;
    this.outline = new Outline(graph.spot, side); // empty until read
    this.body = h('div.outline', {tabIndex: 0, role: 'tree', 'aria-activedescendant': `now-${side ?? 'both'}`, 'aria-label': side ? w(side) : w('graph')});
    this.list = new VirtualList(this.body, graph.row ?? ROW, (i) => graph.line(this, i), () => graph.askFigures());
    this.body.addEventListener('focus', () => graph.enter(this));
    this.body.addEventListener('wheel', (e) => graph.wheel(e), {passive: false});
  }
}

class Graph {
  constructor(app) {
    Object.assign(this, app);
    this.dual = app.about.graph.dual;
    this.metrics = this.dual ? METRICS[app.about.graph.task] ?? [] : [];
    const at = place.read(), wanted = at.metric ?? localStorage.getItem('msprobe-metric');
    this.metric = this.metrics.find((m) => m === wanted) ?? this.metrics[0];
    this.figures = new Map();
    this.synced = !this.dual || at.apart !== '1';
    this.hits = [];
    this.suspects = new Map();
    this.make();
  }

  get outline() { return this.pane.outline; }
  get list() { return this.pane.list; }
  get body() { return this.pane.body; }
  get cursor() { return this.pane.cursor; }
  set cursor(i) { this.pane.cursor = i; }

  get spot() {
    const at = place.read(), g = this.about.graph;
    return {step: at.step ?? g.steps[0], rank: at.rank ?? g.ranks[0], micro: at.micro};
  }

  make() {
    this.head = h('div.sides');
    this.field = h('div.panes');
    this.hitBox = h('div.hits', {hidden: true});
    this.frame = h(`div.graph${this.dual ? '.dual' : ''}`, {}, this.bar(), this.head, this.field, this.hitBox);
    fill(this.root, this.frame);
    this.split(Number(localStorage.getItem('msprobe-split')) || SPLIT_USUAL);
    this.makePanes();
    this.addKeys();
  }

  // Choices for the whole view: the metric of each row, the micro step, whether both sides fold together.
  bar() {
    const {micro_steps: micros} = this.about.graph;
    const choice = (label, values, now, choose) => h('label.dim', {}, `${label} `,
        h('select', {onchange: (e) => choose(e.target.value)}, values.map(([v, t]) => h('option', {value: v, selected: v === now}, t))));
    this.syncBox = h('input', {type: 'checkbox', checked: this.synced, onchange: () => this.sync()});
    const parts = [
      this.metrics.length > 0 && choice(w('metric'), this.metrics.map((m) => [m, m]), this.metric, (m) => this.show(m)),
      micros > 1 && choice(w('microStep'), [['', w('all')], ...Array.from({length: micros}, (_, i) => [String(i), String(i)])], place.read().micro ?? '',
          (v) => place.go({...place.read(), micro: v || null})),
      this.dual && h('label.dim', {title: 'x'}, this.syncBox, ` ${w('sync')}`),
      h('button', {onclick: () => this.boxes(), title: 'b'}, w('boxes')),
      h('span.grow'),
      this.dual && h('button', {onclick: () => this.listSuspects(), title: 'p'}, w('suspects')),
      this.dual && h('button', {onclick: () => this.first(), title: 'g'}, w('first')),
      this.dual && h('span', {}, h('button', {onclick: () => this.seek('error', true), title: 'E', 'aria-label': w('previous error')}, '‹'), ` ${w('errors')} `,
          h('button', {onclick: () => this.seek('error', false), title: 'e', 'aria-label': w('next error')}, '›'))];
    return h('div.gbar', {hidden: !parts.some((p) => p && p.tagName !== 'SPAN')}, parts);
  }

  makePanes() {
    this.panes = this.synced ? [new Pane(this, null)] : [new Pane(this, 'target'), new Pane(this, 'golden')];
    this.pane = this.panes[0];
    this.frame.classList.toggle('apart', !this.synced);
    fill(this.head, h('span', {}, w('target')), this.dual && h('span', {}, w('golden')));
    fill(this.field, this.panes.map((p) => p.body), this.dual && this.splitter());
  }

  enter(pane) {
    if (this.pane === pane) return;
    const before = this.pane;
    this.pane = pane;
    before.list.refresh();
    pane.list.refresh();
  }

  splitter() {
    const bar = h('div.splitter', {role: 'separator', tabIndex: 0, 'aria-orientation': 'vertical', 'aria-label': w('splitter'), 'aria-valuenow': String(Math.round(100 * this.share))});
    bar.addEventListener('pointerdown', (e) => bar.setPointerCapture(e.pointerId));
    bar.addEventListener('pointermove', (e) => {
      const box = this.field.getBoundingClientRect();
      if (e.buttons) this.split((e.clientX - box.left) / box.width);
    });
    bar.addEventListener('keydown', (e) => {
      const by = {ArrowLeft: -SPLIT_STEP, ArrowRight: SPLIT_STEP}[e.key];
      if (!by) return;
      e.preventDefault();
      e.stopPropagation();
      this.split(this.share + by);
    });
    return bar;
  }

  split(share) {
    this.share = Math.min(Math.max(share, SPLIT_LEAST), 1 - SPLIT_LEAST);
    this.field.querySelector('.splitter')?.setAttribute('aria-valuenow', Math.round(100 * this.share));
    localStorage.setItem('msprobe-split', this.share);
    this.frame.style.setProperty('--split', `${(100 * this.share).toFixed(1)}%`);
  }

  // Switches between joint and independent folding; the selection is kept.
  async sync() {
    this.synced = !this.synced;
    place.note({apart: this.synced ? null : 1});
    this.syncBox.checked = this.synced;
    this.makePanes();
    await this.start(place.read());
    this.body.focus();
  }

  // Goes to another place in the same tree, or reads another tree.
  async go(at) {
    const {step, rank, micro} = this.spot, key = `${step} ${rank} ${micro}`;
    if (key !== this.shown) await this.start(at);
    else {
      await this.reading;
      if (at.node) await this.showNode(at.node, at.golden === '1');
    }
  }

  // Reads the suspects of this step and rank from the findings.
  async readSuspects() {
    if (!this.dual) return;
    this.findings ??= get('findings', {lang: language()}).catch(() => []);
    const {step, rank} = this.spot;
    this.suspects.clear();
    for (const f of await this.findings) {
      const at = place.read(f.place);
      const here = at.screen === 'graph' && at.node && String(at.step) === String(step) && f.ranks.split(',').includes(String(rank));
      if (here && f.kind !== 'divergence') this.suspects.set(at.node, {...f, golden: at.golden === '1'});
    }
  }

  listSuspects() {
    const list = [...this.suspects];
    if (!list.length) {
      this.say(w('noSuspects'));
      return;
    }
    this.hitBox.hidden = false;
    fill(this.hitBox, h('div.dim', {}, w('suspects')), list.map(([name, s], i) => h('button.hit', {onclick: () => this.jump(name, s.golden)},
        h('b.E', {}, `${i + 1} E■ `), `${name}  `, h('span.dim', {}, s.text))));
  }

  start(at) {
    this.reading = this.read(at);
    return this.reading;
  }

  async read(at) {
    const {step, rank, micro} = this.spot;
    this.shown = `${step} ${rank} ${micro}`;
    const suspects = this.readSuspects();
    for (const pane of this.panes) { // the current lines stay until the new ones have been read
      const outline = new Outline(this.spot, pane.side);
      await outline.start();
      await suspects;
      pane.outline = outline;
      pane.cursor = Math.min(pane.cursor, outline.lines.length - 1);
      pane.list.reset(outline.lines.length);
    }
    this.figures.clear();
    if (at.node) await this.showNode(at.node, at.golden === '1');
    this.status();
  }

  redraw() {
    this.list.reset(this.outline.lines.length);
  }

  // Counts of states in the whole tree.
  summary() {
    const line = this.panes[0].outline?.lines[0];
    return line?.pair.below ? badge(line) : null;
  }

  // ---- lines ----------------------------------------------------------------------

  line(pane, i) {
    const line = pane.outline.lines[i];
    const fold = line.foldable ? (line.open ? '▾' : '▸') : ' ';
    const e = h(`div.line${i === pane.cursor && pane === this.pane ? '.now' : ''}${line.open ? '.open' : ''}`, {
      role: 'treeitem', 'aria-level': line.depth + 1, 'aria-expanded': line.foldable ? String(line.open) : null,
      'aria-selected': String(i === pane.cursor),
      onpointerenter: () => this.hover(line), onclick: (ev) => this.choose(i, ev, pane), ondblclick: () => this.toggle(i),
    });
    if (i === pane.cursor) e.id = `now-${pane.side ?? 'both'}`;
    if (line.kind === 'more') {
      e.append(indent(line, '▸'), w('more'));
      return e;
    }
    const {target: t, golden: g, where} = line.pair;
    const n = line.kind === 'run' ? ` ×${line.members.length}` : '';
    if (pane.side) {
      e.append(h('span.side', {}, indent(line, fold), this.side(line.pair[pane.side], line, n)));
      return e;
    }
    e.append(h('span.side', {}, indent(line, fold), this.side(t, line, n, this.dual && !t && w('onlyGolden'))));
    if (this.dual) {
      e.append(h('span.side', {}, indent(line, ' '), this.side(g, null, n, !g && w('onlyTarget')),
          where === 'moved' && h('span.dim', {}, ` ${w('moved')}`)));
    }
    return e;
  }

  side(row, line, n, missing) {
    if (!row) return h('span.dim.gap', {}, missing ? `· · ·  ${missing}` : '');
    return [line && mark(row.overflow ? 'overflow' : row.state), h('span.name', {title: row.name}, shortName(row) + n), line && this.role(row),
      row.modified && h('span.dim', {}, ' ✎'), line && h('span.ends', {}, badge(line), line.pair.target && this.figure(line))];
  }

  // Shows the role of a suspect.
  role(row) {
    const suspect = row.suspect && this.suspects.get(row.name);
    return suspect && h('b.E', {title: suspect.text}, w(suspect.kind));
  }

  // ---- figures of the rows --------------------------------------------------------

  figure(line) {
    if (!this.metric || line.kind !== 'node') return null;
    const {name} = line.pair.target, v = this.figures.get(name);
    return h('span.figure', {'data-node': name, title: this.metric}, v === undefined || v === null ? '' : digits(v, 2));
  }

  show(metric) {
    this.metric = metric;
    localStorage.setItem('msprobe-metric', metric);
    place.note({metric});
    this.figures.clear();
    for (const p of this.panes) p.list.reset(p.outline.lines.length);
  }

  // Requests the unknown figures of the visible rows together.
  async askFigures() {
    if (!this.metric || this.asking) return;
    const cells = [...this.field.querySelectorAll('.figure')].filter((c) => !this.figures.has(c.dataset.node)).slice(0, FIGURES_MAX);
    if (!cells.length) return;
    const names = cells.map((c) => c.dataset.node), {metric} = this;
    this.asking = true;
    const got = await get('figures', {...this.spot, metric, names: names.join('\n')}).catch(() => names.map(() => null));
    this.asking = false;
    if (metric !== this.metric) return;
    names.forEach((name, i) => this.figures.set(name, got[i]));
    for (const c of this.field.querySelectorAll('.figure')) {
      const v = this.figures.get(c.dataset.node);
      c.textContent = v === undefined || v === null ? '' : digits(v, 2);
    }
    this.askFigures();
  }

  // ---- navigation -----------------------------------------------------------------

  choose(i, ev, pane = this.pane) {
    this.enter(pane);
    this.cursor = i;
    const line = this.outline.lines[i];
    if (ev && (ev.target.closest('.fold') || line.kind !== 'node')) {
      this.toggle(i, ev.altKey);
      return;
    }
    this.redrawRows();
    if (line?.kind === 'node') this.details(line);
  }

  redrawRows() {
    this.list.refresh();
    this.list.reveal(this.cursor);
    this.body.focus({preventScroll: true});
  }

  async toggle(i, all) {
    const o = this.outline, line = o.lines[i];
    if (line.open && line.kind === 'node' && !all) o.fold(i);
    else if (all) await o.unfoldAll(i);
    else await o.unfold(i);
    this.redraw();
  }

  move(by) {
    const n = this.outline.lines.length;
    this.choose(Math.max(0, Math.min(n - 1, this.cursor + by)));
  }

  // Jumps to a node on the user's request and adds a history entry.
  async jump(name, golden) {
    place.keep();
    await this.showNode(name, golden);
  }

  async showNode(name, golden) {
    if (!this.synced) this.pane = this.panes[golden ? 1 : 0];
    const i = await this.outline.reveal(name, golden).catch((e) => this.say(e.message) ?? -1);
    if (i < 0) return;
    this.redraw();
    this.choose(i);
  }

  async details(line) {
    const golden = this.pane.side === 'golden' || !line.pair.target;
    const row = golden ? line.pair.golden : line.pair.target;
    place.note({...this.spot, node: row.name, golden: golden ? 1 : null});
    this.partners = [];
    const {partners} = await openNode({...this, line, golden, spot: this.spot, reveal: (n, g) => this.jump(n, g), verdict: this.suspects.get(row.name)?.text});
    this.partners = partners;
  }

  // Jumps to the next or previous node in a state.
  async seek(state, back) {
    const line = this.outline.lines[this.cursor];
    const from = line?.kind === 'node' && line.pair.target ? line.pair.target.order : -1;
    const {rows} = await get('next', {...this.spot, state, from, back: back ? 1 : 0});
    if (rows.length) await this.jump(rows[0].name, false);
  }

  // ---- searching --------------------------------------------------------------------

  // Enter waits for the hits of the complete text: those shown may belong to its first letters.
  async search(text, direction) {
    if (!direction) {
      this.asking = this.find(text);
      return;
    }
    await this.asking;
    if (!this.hits.length) return;
    this.hit = (this.hit + direction + this.hits.length) % this.hits.length;
    await this.jump(this.hits[this.hit].name, false);
  }

  // The first letter sends a request at once; each further letter cancels the pending request.
  async find(text) {
    this.asked?.abort();
    const asked = this.asked = new AbortController();
    this.hitBox.hidden = !text;
    if (!text) {
      this.hits = [];
      return;
    }
    try {
      const got = await get('search', {...this.spot, q: text, limit: 100}, asked.signal);
      this.hits = got.rows;
      this.hit = -1;
      fill(this.hitBox, h('div.dim', {}, got.rows.length ? `${count(got.rows.length)}${got.more ? '+' : ''}` : w('noHits')),
          got.rows.map((r) => h('button.hit', {onclick: () => this.jump(r.name, false)}, mark(r.state), r.name)));
    } catch (e) {
      if (e.name !== 'AbortError') fill(this.hitBox, h('div.failure', {}, e.message));
    }
  }

  // ---- keys -------------------------------------------------------------------------

  addKeys() {
    // While a tree is being read a key waits, since it is meant for the new lines.
    const add = (key, text, run) => this.keys.add('view', key, text, async (e) => {
      await this.reading?.catch(() => {});
      await run(e);
    });
    const now = () => this.cursor;
    add('arrowdown', 'next line', () => this.move(1));
    add('arrowup', 'previous line', () => this.move(-1));
    add('pagedown', 'a page down', () => this.move(20));
    add('pageup', 'a page up', () => this.move(-20));
    add('home', 'first line', () => this.move(-1e9));
    add('end', 'last line', () => this.move(1e9));
    add('enter', 'fold or unfold', () => this.toggle(now()));
    add('alt+enter', 'unfold all below', () => this.toggle(now(), true));
    add('arrowright', 'unfold', () => !this.outline.lines[now()].open && this.toggle(now()));
    add('arrowleft', 'fold, or go to the parent', () => this.left());
    add('u', 'parent', () => this.choose(this.outline.parent(now())));
    add('e', 'next error', () => this.seek('error', false));
    add('E', 'previous error', () => this.seek('error', true));
    add('.', 'next sibling', () => this.sibling(1));
    add(',', 'previous sibling', () => this.sibling(-1));
    add('m', 'go to the matched node', () => this.matched());
    add('v', 'trace what it reads and what reads it', () => this.trace());
    if (this.dual) add('x', 'both sides together or each on its own', () => this.sync());
    add('escape', 'clear the selection', () => this.clear());
    add('g', 'first', () => this.first());
    add(']', 'next communication partner', () => this.partner(1));
    add('[', 'previous communication partner', () => this.partner(-1));
    add('p', 'suspects', () => this.listSuspects());
    add('f', 'to the middle; again: fold the rest', () => this.focusNow());
    add('space', 'fold to the top', () => this.foldAll());
    add('w', 'larger', () => this.zoom(2));
    add('s', 'smaller', () => this.zoom(-2));
    if (this.dual) {
      add('a', 'less room for the target', () => this.split(this.share - SPLIT_STEP));
      add('d', 'more room for the target', () => this.split(this.share + SPLIT_STEP));
    }
    add('P', 'savePicture', () => this.picture());
    add('b', 'boxes', () => this.boxes());
    add('y', 'copyName', () => copy(this.outline.lines[now()].row?.name ?? ''));
    for (const [key, text, name, list, by] of [['r', 'next rank', 'rank', 'ranks', 1], ['R', 'previous rank', 'rank', 'ranks', -1],
      ['t', 'next step', 'step', 'steps', 1], ['T', 'previous step', 'step', 'steps', -1]]) {
      add(key, text, () => place.turn(name, this.about.graph[list], by));
    }
    if (this.dual && canWrite()) {
      add('M', 'matchOrNot', () => this.change(0));
      add('B', 'matchBelow', () => this.change(1));
      add('ctrl+z', 'undo', () => this.undo());
      add('ctrl+s', 'writeCopy', () => this.write(0));
      add('', 'writeOver', () => this.write(1));
    }
  }

  clear() {
    this.traced = this.marks = this.waiting = null;
    this.hitBox.hidden = true;
    this.markFlow();
    this.showDrawer();
  }

  // Goes to the same call on the next or previous rank that took part.
  partner(by) {
    if (!this.partners?.length) {
      this.say(w('noPartner'));
      return;
    }
    const here = Number(this.spot.rank), list = [...this.partners].sort((a, b) => by * (a.rank - b.rank));
    const next = list.find((p) => by * (p.rank - here) > 0) ?? list[0];
    place.go({...place.read(), rank: next.rank, node: next.node, golden: null});
  }

  // First call: scrolls to the middle. Second call: folds everything except for the ancestors.
  async focusNow() {
    const {outline, list} = this, middle = list.middle(this.cursor);
    if (this.body.scrollTop !== middle) {
      this.body.scrollTop = middle;
      if (this.body.scrollTop !== this.last?.top || this.last.at !== this.cursor) {
        this.last = {top: this.body.scrollTop, at: this.cursor};
        return;
      }
    }
    this.cursor = outline.foldAround(this.cursor);
    this.redraw();
    this.redrawRows();
  }

  foldAll() {
    const {outline} = this;
    for (let i = outline.lines.length - 1; i > 0; i--) if (outline.lines[i]?.open) outline.fold(i);
    this.redraw();
    this.choose(0);
  }

  wheel(e) {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    this.zoom(e.deltaY < 0 ? 2 : -2);
  }

  zoom(by) {
    this.row = Math.min(ROW_MOST, Math.max(ROW_LEAST, (this.row ?? ROW) + by));
    this.frame.style.setProperty('--row', `${this.row}px`);
    this.frame.style.setProperty('--letters', `${Math.round(this.row * 0.55)}px`);
    for (const p of this.panes) p.list.resize(this.row);
  }

  async picture() {
    const {savePicture} = await import('../shared/picture.js');
    savePicture(this.panes.map((p) => p.outline.lines), this.dual && this.synced, this.about.title);
  }

  // Draws the module under the cursor, or the one around an operator, as boxes and edges.
  async boxes() {
    const {lines} = this.outline, at = lines[this.cursor]?.foldable ? this.cursor : this.outline.parent(this.cursor), row = lines[at]?.pair?.target;
    if (!row) {
      this.say(w('noBoxes'));
      return;
    }
    const {boxes} = await import('./boxes.js'), made = await boxes(this.spot, row.name, (name) => this.jump(name, false));
    if (made) this.showDrawer(h('h2.mono', {}, row.name), h('p.dim', {}, w(made.edges ? 'boxesHint' : 'noFlow')), h('div.scroll', {tabIndex: 0}, made.image));
    else this.say(w('noBoxes'));
  }

  left() {
    const line = this.outline.lines[this.cursor];
    if (line.open) this.toggle(this.cursor);
    else this.choose(this.outline.parent(this.cursor));
  }

  async first() {
    const {rows} = await get('first', this.spot);
    if (rows.length) await this.jump(rows[0].name, false);
    else this.say(w('noDivergence'));
  }

  say(text) {
    this.hitBox.hidden = false;
    fill(this.hitBox, h('div.dim', {role: 'status'}, text));
  }

  // ---- data flow --------------------------------------------------------------------

  // Follows the data flow for up to three steps in both directions; visible lines are marked.
  async flow(name) {
    const marks = new Map([[name, 'here']]);
    for (const [readers, kind] of [[0, 'up'], [1, 'down']]) {
      let edge = [name];
      for (let hop = 0; hop < 3 && edge.length; hop++) {
        const pages = await Promise.all(edge.slice(0, 16).map((n) => get('flow', {...this.spot, name: n, readers})));
        edge = [...new Set(pages.flatMap((p) => p.rows.map((r) => r.name)))].filter((n) => !marks.has(n));
        for (const n of edge) marks.set(n, kind);
      }
    }
    return marks;
  }

  hover(line) {
    clearTimeout(this.hovering);
    if (this.traced || !line?.pair.target) return;
    this.hovering = setTimeout(async () => {
      this.marks = await this.flow(line.pair.target.name).catch(() => null);
      this.markFlow();
    }, HOVER_MS);
  }

  markFlow() {
    for (const [i, e] of this.list.rows) { // of the active pane
      const kind = this.marks?.get(this.outline.lines[i]?.pair.target?.name);
      e.classList.toggle('flow-up', kind === 'up');
      e.classList.toggle('flow-down', kind === 'down');
      e.classList.toggle('off', Boolean(this.traced) && !kind);
    }
  }

  // v: keeps the trace, dims the rest, and lists folded nodes; v again ends the trace.
  async trace() {
    const row = this.outline.lines[this.cursor].pair.target;
    this.traced = this.traced || !row ? null : row.name;
    this.marks = this.traced ? await this.flow(this.traced) : null;
    this.hitBox.hidden = !this.traced;
    if (this.traced) {
      const names = [...this.marks].filter(([, kind]) => kind !== 'here');
      fill(this.hitBox, names.length ? null : h('div.dim', {}, w('noFlow')), [['up', 'reads'], ['down', 'usedBy']].map(([kind, title]) => {
        const list = names.filter(([, k]) => k === kind);
        return list.length > 0 && [h('div.dim', {}, w(title)), list.map(([n]) => h('button.hit', {onclick: () => this.jump(n, false)}, kind === 'up' ? '← ' : '→ ', n))];
      }));
    }
    this.markFlow();
  }

  // Jumps to the partner, unless it is in the same line.
  matched() {
    const {target: t, golden: g, where} = this.outline.lines[this.cursor].pair;
    const name = t ? t.partner ?? g?.name : g?.partner;
    if (name && (where === 'moved' || !g || !t)) this.jump(name, Boolean(t));
  }

  sibling(by) {
    const {lines} = this.outline, depth = lines[this.cursor].depth;
    let i = this.cursor + by;
    while (lines[i] && lines[i].depth > depth) i += by;
    if (lines[i]?.depth === depth) this.choose(i);
  }

  // ---- changes ------------------------------------------------------------------------

  // M on a pair removes the match; M on a single node waits for one of the other side. B includes all
  // descendants of both.
  async change(below) {
    const {target: t, golden: g} = this.outline.lines[this.cursor].pair;
    if (t && g) await post('unmatch', {...this.spot, target: t.name, below});
    else if (this.waiting && Boolean(this.waiting.target) !== Boolean(t)) {
      await post('match', {...this.spot, target: (t ?? this.waiting.target).name, partner: (g ?? this.waiting.golden).name, below});
      this.waiting = null;
    } else {
      this.waiting = {target: t, golden: g};
      this.say(`${(t ?? g).name}: ${w('waitsFor')}`);
      return;
    }
    await this.again();
  }

  async undo() {
    await post('undo');
    await this.again();
  }

  // Writes the changes to a file; without that they are lost.
  async write(over) {
    const {path} = await post('write', {over});
    this.say(`${w('wrote')} ${path}`);
  }

  async again() {
    await this.start(place.read());
  }
}

// Draws the indentation: a line at the left for each ancestor.
function indent(line, fold) {
  return [Array.from({length: line.depth}, () => h('i.rule')), h('span.fold', {}, fold)];
}

function badge(line) {
  const [e, wa, u, o] = line.pair.below ?? [0, 0, 0, 0];
  if (!line.foldable || e + wa + u + o === 0) return null;
  return h('span.badge', {}, e > 0 && h('span.E', {}, `${count(e)}E`), wa > 0 && h('span.W', {}, `${count(wa)}W`),
      u > 0 && h('span.U', {}, `${count(u)}-`), o > 0 && h('span.E', {}, `${count(o)}!`));
}

export async function open(app) {
  if (!app.about.graph) {
    fill(app.root, h('div.empty', {}, w('noGraph')));
    return {go() {}};
  }
  const g = new Graph(app);
  await g.start(app.place);
  return {
    go: (at) => g.go(at),
    search: (text, direction) => g.search(text, direction),
    summary: () => g.summary(),
    hint: () => w('graphHint'),
  };
}

