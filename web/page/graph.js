// SPDX-License-Identifier: MIT
// The graph: nested modules of one side or two, folded until they are asked for.
import {canWrite, get, post} from './api.js';
import {mark} from './mark.js';
import {openNode} from './node.js';
import * as place from './place.js';
import {copy, count, fill, h, shortName, VirtualList} from './util.js';
import {w} from './words.js';

const ROW = 22, PAGE = 1000, HOVER_MS = 150, RUN_LEAST = 3;

// One line of the outline: a pair, a run of equal layers, or "more".
class Line {
  constructor(kind, depth, pair) {
    Object.assign(this, {kind, depth, pair, open: false});
  }

  get row() {
    return this.pair.target ?? this.pair.golden;
  }

  get foldable() {
    return this.kind !== 'node' || Boolean(this.pair.target?.children || this.pair.golden?.children);
  }
}

// The flat list of what is unfolded.  Pages come from the server; nothing else is kept.
class Outline {
  constructor(spot) {
    this.spot = spot;
    this.lines = [];
  }

  lineOf(reply, depth) {
    const out = [];
    for (let i = 0; i < reply.rows.length;) {
      const p = reply.rows[i];
      if (p.run >= RUN_LEAST) {
        const line = new Line('run', depth, p);
        line.members = reply.rows.slice(i, i + p.run);
        out.push(line);
        i += p.run;
      } else {
        out.push(new Line('node', depth, p));
        i++;
      }
    }
    return out;
  }

  async page(parent, depth, after) {
    const reply = await get('children', {
      ...this.spot, limit: PAGE, after: after?.after, after_golden: after?.after_golden,
      target: parent?.pair.target?.name, partner: parent?.pair.where === 'moved' ? undefined : parent?.pair.golden?.name,
    });
    const lines = this.lineOf(reply, depth);
    if (reply.more) {
      const more = new Line('more', depth, {});
      Object.assign(more, {parent, after: reply});
      lines.push(more);
    }
    return lines;
  }

  async start() {
    this.lines = await this.page(null, 0);
    if (this.lines.length === 1) await this.unfold(0);
  }

  end(i) {
    let j = i + 1;
    while (j < this.lines.length && this.lines[j].depth > this.lines[i].depth) j++;
    return j;
  }

  async unfold(i) {
    const line = this.lines[i];
    if (line.kind === 'run') {
      this.lines.splice(i, 1, ...line.members.map((p) => new Line('node', line.depth, p)));
    } else if (line.kind === 'more') {
      const lines = await this.page(line.parent, line.depth, line.after);
      this.lines.splice(this.lines.indexOf(line), 1, ...lines);
    } else if (!line.open && line.foldable) {
      line.open = true;
      const lines = await this.page(line, line.depth + 1);
      const at = this.lines.indexOf(line);
      if (at >= 0 && line.open) this.lines.splice(at + 1, 0, ...lines);
    }
  }

  fold(i) {
    if (!this.lines[i].open) return;
    this.lines.splice(i + 1, this.end(i) - i - 1);
    this.lines[i].open = false;
  }

  async unfoldAll(i, most = 5000) {
    const depth = this.lines[i].depth;
    for (let j = i; j < this.lines.length && (j === i || this.lines[j].depth > depth) && this.lines.length < most; j++) {
      if (this.lines[j].kind === 'node') await this.unfold(j);
    }
  }

  parent(i) {
    let j = i;
    while (j > 0 && this.lines[j].depth >= this.lines[i].depth) j--;
    return j;
  }

  // Unfold what is in the way to a node and return its line.
  async reveal(name, golden) {
    const {rows} = await get('path', {...this.spot, name, golden: golden ? 1 : 0});
    const side = golden ? 'golden' : 'target';
    let at = -1;
    for (const step of rows) {
      if (at >= 0) await this.unfold(at);
      at = await this.child(at, step, side);
      if (at < 0) break;
    }
    return at;
  }

  async child(parent, want, side) {
    const depth = parent < 0 ? 0 : this.lines[parent].depth + 1;
    for (let i = parent + 1; i < this.lines.length && this.lines[i].depth >= depth; i++) {
      const line = this.lines[i];
      if (line.depth !== depth) continue;
      if (line.kind === 'node' && line.pair[side]?.name === want.name) return i;
      const holds = line.kind === 'more' || line.kind === 'run' && line.members.some((m) => m[side]?.name === want.name);
      if (holds) {
        await this.unfold(i);
        i--;
      }
    }
    return -1;
  }
}

class Graph {
  constructor(app) {
    Object.assign(this, app);
    this.dual = app.about.graph.dual;
    this.cursor = 0;
    this.hits = [];
    this.make();
  }

  get spot() {
    const at = place.read(), g = this.about.graph;
    return {step: at.step ?? g.steps[0], rank: at.rank ?? g.ranks[0]};
  }

  make() {
    this.body = h('div.outline', {tabIndex: 0, role: 'tree', 'aria-label': w('graph')});
    this.head = h('div.sides', {}, h('span', {}, w('target')), this.dual && h('span', {}, w('golden')));
    this.hitBox = h('div.hits', {hidden: true});
    fill(this.root, h(`div.graph${this.dual ? '.dual' : ''}`, {}, this.head, this.body, this.hitBox));
    this.list = new VirtualList(this.body, ROW, (i) => this.line(i));
    this.addKeys();
  }

  async start(at) {
    this.outline = new Outline(this.spot);
    await this.outline.start();
    this.redraw();
    if (at.node) await this.showNode(at.node, at.golden === '1');
  }

  redraw() {
    this.list.reset(this.outline.lines.length);
  }

  // ---- lines ----------------------------------------------------------------------

  line(i) {
    const line = this.outline.lines[i];
    const fold = line.foldable ? (line.open ? '▾' : '▸') : ' ';
    const e = h(`div.line${i === this.cursor ? '.now' : ''}`, {
      role: 'treeitem', 'aria-level': line.depth + 1, 'aria-expanded': line.foldable ? String(line.open) : null,
      'aria-selected': String(i === this.cursor),
      onpointerenter: () => this.hover(line), onclick: (ev) => this.choose(i, ev), ondblclick: () => this.toggle(i),
    });
    if (line.kind === 'more') {
      e.append(indent(line, '▸'), w('more'));
      return e;
    }
    const {target: t, golden: g, where} = line.pair;
    const n = line.kind === 'run' ? ` ×${line.members.length}` : '';
    e.append(h('span.side', {}, indent(line, fold), this.side(t, line, n, this.dual && !t && w('onlyGolden'))));
    if (this.dual) {
      e.append(h('span.side', {}, indent(line, ' '), this.side(g, null, n, !g && w('onlyTarget')),
          where === 'moved' && h('span.dim', {}, ` ${w('moved')}`)));
    }
    return e;
  }

  side(row, line, n, missing) {
    if (!row) return h('span.dim.gap', {}, missing ? `· · ·  ${missing}` : '');
    return [line && mark(row.overflow ? 'error' : row.state), h('span.name', {title: row.name}, shortName(row.name) + n),
      row.modified && h('span.dim', {}, ' ✎'), line && badge(line)];
  }

  // ---- moving ---------------------------------------------------------------------

  choose(i, ev) {
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
    this.list.rows.forEach((r) => r.remove());
    this.list.rows.clear();
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

  async showNode(name, golden) {
    const i = await this.outline.reveal(name, golden);
    if (i < 0) return;
    this.redraw();
    this.choose(i);
  }

  async details(line) {
    const row = line.row, golden = !line.pair.target;
    place.note({...this.spot, node: row.name, golden: golden ? 1 : null});
    await openNode({...this, line, golden, spot: this.spot, reveal: (n, g) => this.showNode(n, g)});
  }

  // Next or previous node in a state, from where we are.
  async seek(state, back) {
    const line = this.outline.lines[this.cursor];
    const from = line?.kind === 'node' && line.pair.target ? line.pair.target.order : -1;
    const {rows} = await get('next', {...this.spot, state, from, back: back ? 1 : 0});
    if (rows.length) await this.showNode(rows[0].name, false);
  }

  // ---- searching --------------------------------------------------------------------

  search(text, direction) {
    if (direction) {
      if (this.hits.length) {
        this.hit = (this.hit + direction + this.hits.length) % this.hits.length;
        this.showNode(this.hits[this.hit].name, false);
      }
      return;
    }
    this.find(text);
  }

  // The first letter asks at once; those typed while an answer is awaited call that question off.
  async find(text) {
    this.asked?.abort();
    const asked = this.asked = new AbortController();
    this.hitBox.hidden = !text;
    if (!text) return;
    try {
      const got = await get('search', {...this.spot, q: text, limit: 100}, asked.signal);
      this.hits = got.rows;
      this.hit = -1;
      fill(this.hitBox, h('div.dim', {}, got.rows.length ? `${count(got.rows.length)}${got.more ? '+' : ''}` : w('noHits')),
          got.rows.map((r) => h('button.hit', {onclick: () => this.showNode(r.name, false)}, mark(r.state), r.name)));
    } catch (e) {
      if (e.name !== 'AbortError') fill(this.hitBox, h('div.failure', {}, e.message));
    }
  }

  // ---- keys -------------------------------------------------------------------------

  addKeys() {
    const add = (key, text, run) => this.keys.add('view', key, text, run);
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
    add('escape', 'clear the selection', () => this.clear());
    add('g', w('first'), () => this.first());
    add('y', w('copyName'), () => copy(this.outline.lines[now()].row?.name ?? ''));
    for (const [key, text, name, list, by] of [['r', 'next rank', 'rank', 'ranks', 1], ['R', 'previous rank', 'rank', 'ranks', -1],
      ['t', 'next step', 'step', 'steps', 1], ['T', 'previous step', 'step', 'steps', -1]]) {
      add(key, text, () => this.turn(name, this.about.graph[list], by));
    }
    if (this.dual && canWrite()) {
      add('M', `${w('match')} / ${w('unmatch')}`, () => this.change());
      add('ctrl+z', w('undo'), () => this.undo());
    }
  }

  clear() {
    this.traced = this.marks = this.waiting = null;
    this.hitBox.hidden = true;
    this.markFlow();
    this.showDrawer();
  }

  left() {
    const line = this.outline.lines[this.cursor];
    if (line.open) this.toggle(this.cursor);
    else this.choose(this.outline.parent(this.cursor));
  }

  turn(name, values, by) {
    const i = values.findIndex((v) => String(v) === String(this.spot[name]));
    const next = values[(i + by + values.length) % values.length];
    place.go({...place.read(), [name]: next});
  }

  async first() {
    const {rows} = await get('first', this.spot);
    if (rows.length) await this.showNode(rows[0].name, false);
    else this.say(w('noDivergence'));
  }

  say(text) {
    this.hitBox.hidden = false;
    fill(this.hitBox, h('div.dim', {role: 'status'}, text));
  }

  // ---- flow -------------------------------------------------------------------------

  // Up to three steps along what is read and written; lines in sight are marked.
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
    for (const [i, e] of this.list.rows) {
      const kind = this.marks?.get(this.outline.lines[i]?.pair.target?.name);
      e.classList.toggle('flow-up', kind === 'up');
      e.classList.toggle('flow-down', kind === 'down');
      e.classList.toggle('off', Boolean(this.traced) && !kind);
    }
  }

  // v: the trace stays, the rest is dimmed, and what lies folded is listed; v again ends it.
  async trace() {
    const row = this.outline.lines[this.cursor].pair.target;
    this.traced = this.traced || !row ? null : row.name;
    this.marks = this.traced ? await this.flow(this.traced) : null;
    this.hitBox.hidden = !this.traced;
    if (this.traced) {
      const names = [...this.marks].filter(([, kind]) => kind !== 'here');
      fill(this.hitBox, names.length ? null : h('div.dim', {}, w('noFlow')), [['up', 'reads'], ['down', 'usedBy']].map(([kind, title]) => {
        const list = names.filter(([, k]) => k === kind);
        return list.length > 0 && [h('div.dim', {}, w(title)), list.map(([n]) => h('button.hit', {onclick: () => this.showNode(n, false)}, kind === 'up' ? '← ' : '→ ', n))];
      }));
    }
    this.markFlow();
  }

  // The partner on the other side; in the same line unless it lies elsewhere.
  matched() {
    const {target: t, golden: g, where} = this.outline.lines[this.cursor].pair;
    const name = t ? t.partner ?? g?.name : g?.partner;
    if (name && (where === 'moved' || !g || !t)) this.showNode(name, Boolean(t));
  }

  sibling(by) {
    const {lines} = this.outline, depth = lines[this.cursor].depth;
    let i = this.cursor + by;
    while (lines[i] && lines[i].depth > depth) i += by;
    if (lines[i]?.depth === depth) this.choose(i);
  }

  // ---- changes ------------------------------------------------------------------------

  // M on a pair takes it apart; M on a single node waits for one of the other side.
  async change() {
    const {target: t, golden: g} = this.outline.lines[this.cursor].pair;
    if (t && g) await post('unmatch', {...this.spot, target: t.name});
    else if (this.waiting && Boolean(this.waiting.target) !== Boolean(t)) {
      await post('match', {...this.spot, target: (t ?? this.waiting.target).name, partner: (g ?? this.waiting.golden).name, below: 1});
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

  async again() {
    await this.start(place.read());
  }
}

function indent(line, fold) {
  return h('span.fold', {}, '\u00a0'.repeat(line.depth * 3) + fold + '\u00a0');
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
    go: (at) => g.start(at),
    search: (text, direction) => g.search(text, direction),
    hint: () => w('graphHint'),
  };
}

