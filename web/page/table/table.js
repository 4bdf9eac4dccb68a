// SPDX-License-Identifier: MIT
// The table: a row for each input and output of a comparison.  The server sorts and filters; the page
// holds the rows in sight and a few screens around them, however many there are.
import {get, told} from '../shared/api.js';
import {csvField, csvRow} from '../shared/csv.js';
import {mark} from '../shared/mark.js';
import * as place from '../shared/place.js';
import {copy, count, debounce, digits, fill, h, onFrame, save} from '../shared/util.js';
import {w} from '../shared/words.js';

const ROW = 24, TALLEST = 12e6; // px; browsers limit the height of an element
const PAGE = 200, PAGES_KEPT = 40, EXPORTED = 2000; // rows
const STATS = ['Max', 'Min', 'Mean', 'Norm'];
const REAL = ['Cosine', 'EucDist', 'MaxAbsErr', 'MaxRelativeErr', 'One Thousandth Err Ratio', 'Five Thousandths Err Ratio'];
const SUMMARY = ['NormRelativeErr', 'Max diff', 'Min diff', 'Mean diff', 'L2norm diff', 'MaxRelativeErr', 'MinRelativeErr', 'MeanRelativeErr'];

// Relative errors have a bar: its length is where the figure lies between rounding and the whole value, on a log scale.
const SCALED = /Relative|Thousand/, LEAST = 1e-8;
function shareOf(c, n, full) {
  if (!c.scaled || !(Math.abs(n) > 0)) return '';
  const v = Math.abs(n) / (full.endsWith('%') ? 100 : 1), share = Math.min(1, Math.max(0, 1 - Math.log10(v) / Math.log10(LEAST)));
  return `;background-image:linear-gradient(90deg, var(--share) ${(100 * share).toFixed(0)}%, transparent 0)`;
}

const text = (title, width, of) => ({title, width, of});
const figure = (field, side, width = 96) => ({
  title: side === 'other' ? `${w('golden')} ${field}` : field, width, number: true, scaled: side === 'item' && SCALED.test(field),
  sort: side === 'other' ? null : field, of: (r) => r[side]?.[field] ?? '',
});
const messageOf = (r) => {
  try {
    return JSON.parse(r.item?.Err_message || '[]').join('  ');
  } catch {
    return r.item?.Err_message ?? '';
  }
};
const nameColumn = () => ({title: w('name'), width: 420, sort: 'name', of: (r) => r.name, pinned: true});
const stateColumn = () => ({title: '', width: 44, sort: 'state', of: (r) => r.item?.Result ?? r.state, state: true, pinned: true});
const field = (name, side, width) => text(side === 'other' ? `${w('golden')} ${name}` : name, width, (r) => r[side]?.[name] ?? '');

// Columns of a set; figures that the task does not compute are omitted.
function columnsOf(set, task, dual) {
  const start = [stateColumn(), nameColumn()];
  const figures = !dual ? [] : task === 'summary' ? SUMMARY : task === 'all' ? REAL : [];
  const types = [field('dtype', 'item', 120), field('shape', 'item', 130)];
  const mine = STATS.map((s) => figure(s, 'item')), theirs = dual ? STATS.map((s) => figure(s, 'other')) : [];
  const digest = task === 'md5' ? [field('md5', 'item', 90), field('md5', 'other', 90)] : [];
  if (set === 'short') {
    const few = task === 'summary' ? ['NormRelativeErr', 'MaxRelativeErr'] : figures.slice(0, 4);
    return [...start, ...few.map((f) => figure(f, 'item', 130)), ...types, ...digest, ...(dual ? [figure('Norm', 'item'), figure('Norm', 'other', 110)] : mine),
      ...(dual ? [text(w('message'), 700, messageOf)] : [])];
  }
  const golden = dual ? [text(w('goldenName'), 420, (r) => r.other_name)] : [];
  const otherTypes = dual ? [field('dtype', 'other', 130), field('shape', 'other', 130)] : [];
  const official = [...start, ...golden, ...types, ...otherTypes, ...figures.map((f) => figure(f, 'item', 130)), ...digest, ...mine, ...theirs,
    ...(dual ? [text(w('message'), 700, messageOf)] : [])];
  if (set === 'official') return official;
  return [...official, field('requires_grad', 'item', 110), field('type', 'item', 120), field('value', 'item', 120), text(w('module'), 420, (r) => r.node),
    ...(dual ? [text(w('partner'), 420, (r) => r.partner)] : []), field('data_name', 'item', 300)];
}

// Columns of a table that a comparison wrote, as its file has them; figures are told by their names.
const FIGURE = /err|diff|max|min|mean|norm|cosine|dist|ratio/i;
function sheetColumns(titles) {
  const result = titles.findIndex((t) => t === 'Result');
  const order = titles.map((_, i) => i), main = titles.indexOf('NormRelativeErr');
  if (main > 1) order.splice(1, 0, ...order.splice(main, 1)); // the figure that says most comes first
  return [{title: '', width: 44, sort: result < 0 ? null : String(result), of: (r) => r.state, state: true, pinned: true},
    ...order.map((i) => [titles[i], i]).map(([title, i]) => ({title, width: i === 0 ? 420 : /name|message|stack/i.test(title) ? 320 : 130, sort: String(i), number: FIGURE.test(title) && !/name|message/i.test(title), pinned: i === 0, scaled: SCALED.test(title), of: (r) => r.values[i] ?? ''}))];
}

class Table {
  constructor(app) {
    Object.assign(this, app);
    this.sheet = app.about.graph ? null : app.about.sheet;
    this.path = this.sheet ? 'sheet' : 'table';
    this.pages = new Map();
    this.total = 0;
    this.top = 0; // first visible row, fractional
    this.cursor = 0;
    this.anchor = 0;
    this.draw = onFrame(() => this.paint());
    this.make();
  }

  get asked() {
    const at = place.read(), g = this.about.graph;
    if (this.sheet) return {q: at.q, sort: at.sort, desc: at.desc, failing: at.failing};
    return {step: at.step ?? g.steps[0], rank: at.rank ?? g.ranks[0], q: at.q, sort: at.sort, desc: at.desc, failing: at.failing};
  }

  make() {
    this.filter = h('input', {type: 'search', placeholder: w('filterRows'), 'aria-label': w('filterRows')});
    this.failing = h('input', {type: 'checkbox'});
    this.sets = h('select', {'aria-label': w('columns')}, ['short', 'official', 'all'].map((s) => h('option', {value: s}, w(s === 'all' ? 'allColumns' : s))));
    this.told = h('span.dim');
    this.head = h('div.thead', {role: 'row'});
    this.space = h('div.tspace', {role: 'rowgroup'});
    this.body = h('div.tbody', {tabIndex: 0, role: 'grid', 'aria-activedescendant': 'row-now', 'aria-label': w('table')}, this.head, this.space);
    fill(this.root, h('div.table', {}, h('div.tbar', {}, this.filter, h('label', {}, this.failing, ` ${w('onlyFailing')}`),
        !this.sheet && h('label', {}, `${w('columns')} `, this.sets), this.told, h('span.grow'),
        h('button', {onclick: () => this.copyRows()}, w('copyRows')), h('button', {onclick: () => this.exportAll()}, w('exportCsv'))), this.body));
    this.filter.addEventListener('input', debounce(() => this.change({q: this.filter.value || null}), 120));
    this.failing.addEventListener('change', () => this.change({failing: this.failing.checked ? 1 : null}));
    this.sets.addEventListener('change', () => {
      place.note({set: this.sets.value});
      localStorage.setItem('msprobe-set', this.sets.value);
      this.columns();
    });
    this.body.addEventListener('scroll', () => this.scrolled(), {passive: true});
    this.body.addEventListener('wheel', (e) => this.wheel(e), {passive: false});
    new ResizeObserver(this.draw).observe(this.body);
    this.addKeys();
  }

  async go(at) {
    this.filter.value = at.q ?? '';
    this.failing.checked = at.failing === '1';
    this.sets.value = at.set ?? localStorage.getItem('msprobe-set') ?? 'short';
    this.columns();
    await this.load();
    if (at.row && this.total) this.choose(Number(at.row));
  }

  change(to) {
    place.note({...to, row: null});
    return this.load();
  }

  columns() {
    const g = this.about.graph;
    this.shown = this.sheet ? sheetColumns(this.sheet.columns) : columnsOf(this.sets.value, g.task, g.dual);
    const {sort = 'order', desc} = place.read();
    let left = 0;
    for (const c of this.shown) {
      c.left = left;
      left += c.pinned ? c.width : 0;
    }
    this.wide = this.shown.reduce((sum, c) => sum + c.width, 0);
    fill(this.head, this.shown.map((c) => h(`div.tcell${c.number ? '.num' : ''}${c.pinned ? '.pinned' : ''}`, {
      style: `width:${c.width}px${c.pinned ? `;left:${c.left}px` : ''}`, role: 'columnheader', title: c.title || w('state'),
      'aria-sort': c.sort === sort ? (desc ? 'descending' : 'ascending') : null,
    }, h(c.sort ? 'button' : 'span', {'aria-label': c.title || w('state'), onclick: c.sort && (() => this.sortBy(c.sort))}, c.sort === sort ? `${desc ? '▾' : '▴'} ` : '', c.title || '\u00a0'))));
    this.head.style.width = `${this.wide}px`;
    this.draw();
  }

  // Cycles the order: natural, largest first, smallest first.
  sortBy(sort) {
    const now = place.read();
    const next = now.sort !== sort ? {sort, desc: 1} : now.desc ? {sort, desc: null} : {sort: null, desc: null};
    this.change(next);
    this.columns();
  }

  // ---- rows -----------------------------------------------------------------------

  async load() {
    this.pages = new Map();
    this.generation = (this.generation ?? 0) + 1;
    this.body.classList.add('stale'); // the old rows stay until the answer arrives
    const mine = this.generation;
    try {
      await this.fetch(0);
      if (mine === this.generation) this.failed = null;
    } catch (e) {
      if (mine !== this.generation) return; // a later request has the say
      this.total = 0;
      this.failed = e.message;
    }
    if (!this.pages.get(0) && !this.failed) return; // a later request is pending
    this.top = this.cursor = this.anchor = 0;
    this.body.scrollTop = 0;
    this.body.classList.remove('stale');
    this.draw();
  }

  async fetch(page) {
    if (this.pages.has(page)) return;
    const mine = this.generation;
    this.pages.set(page, null);
    const got = await get(this.path, {...this.asked, first: page * PAGE, limit: PAGE, quick: this.sheet ? null : page === 0 ? 1 : 0});
    if (mine !== this.generation) return;
    this.pages.set(page, got.rows);
    this.total = got.total;
    this.counting = Boolean(got.more);
    if (got.more) this.countAll(mine);
    if (this.pages.size > PAGES_KEPT) this.pages.delete(this.pages.keys().next().value);
    this.draw();
  }

  // The first rows arrive before the server has read the whole table; the total is requested separately.
  async countAll(mine) {
    const got = await get(this.path, {...this.asked, first: 0, limit: 1}).catch(() => null);
    if (!got || mine !== this.generation) return;
    this.total = got.total;
    this.counting = false;
    this.draw();
  }

  row(i) {
    return this.pages.get(Math.floor(i / PAGE))?.[i % PAGE];
  }

  get height() {
    return Math.min(this.total * ROW, TALLEST);
  }

  get inSight() {
    return Math.max(1, Math.floor((this.body.clientHeight - ROW) / ROW));
  }

  // A million rows exceed the maximum height of an element: then a pixel of the scroll bar is more than a row.
  get rowsPerPixel() {
    const most = this.total - this.inSight, pixels = this.height + ROW - this.body.clientHeight;
    return this.height < this.total * ROW ? most / Math.max(1, pixels) : 1 / ROW;
  }

  scrolled() {
    if (Math.abs(this.body.scrollTop - (this.expected ?? -1)) > 1) this.top = this.body.scrollTop * this.rowsPerPixel;
    this.expected = null;
    this.draw();
  }

  scrollTo(row) {
    this.top = Math.max(0, Math.min(row, this.total - this.inSight));
    this.expected = this.body.scrollTop = this.top / this.rowsPerPixel;
    this.draw();
  }

  wheel(e) {
    if (this.height === this.total * ROW || e.shiftKey || e.ctrlKey || !e.deltaY) return;
    e.preventDefault();
    this.scrollTo(this.top + e.deltaY / ROW);
  }

  paint() {
    if (this.body.classList.contains('stale') && this.space.children.length) return;
    const first = Math.max(0, Math.floor(this.top)), end = Math.min(this.total, first + this.inSight + 2);
    this.told.textContent = `${this.counting ? '> ' : ''}${count(this.total)} ${w('rows')}`;
    Object.assign(this.space.style, {height: `${this.height}px`, width: `${this.wide}px`});
    if (this.total === 0) {
      fill(this.space, h('div.tempty', {}, this.failed ?? w(this.asked.q || this.asked.failing ? 'noRows' : 'noItems')));
      return;
    }
    const offset = this.body.scrollTop - (this.top - first) * ROW;
    const rows = [];
    for (let i = first; i < end; i++) rows.push(this.line(i, offset + (i - first) * ROW));
    fill(this.space, rows);
    for (let p = Math.floor(first / PAGE); p <= Math.floor(Math.max(first, end - 1) / PAGE); p++) this.fetch(p).catch(() => {});
  }

  line(i, y) {
    const row = this.row(i), [a, b] = this.selection;
    const classes = `${i === this.cursor ? '.now' : ''}${i >= a && i <= b ? '.chosen' : ''}`;
    return h(`div.trow${classes}`, {id: i === this.cursor ? 'row-now' : null, role: 'row', 'aria-rowindex': i + 1, 'aria-selected': String(i >= a && i <= b), style: `top:${y}px`,
      onclick: (e) => this.choose(i, e.shiftKey), ondblclick: () => this.toGraph()}, row && this.shown.map((c) => this.cell(c, row)));
  }

  cell(c, row) {
    const full = String(c.of(row) ?? ''), n = Number(full.replace(/%$/, ''));
    const short = c.number && full.trim() !== '' && !Number.isNaN(n) ? digits(n) + (full.endsWith('%') ? '%' : '') : full;
    return h(`span.tcell${c.number ? '.num' : ''}${c.pinned ? '.pinned' : ''}`, {role: 'gridcell', title: full,
      style: `width:${c.width}px${c.pinned ? `;left:${c.left}px` : ''}${shareOf(c, n, full)}`}, c.state ? mark(full) : short);
  }

  // ---- selection and copying --------------------------------------------------------

  get selection() {
    return [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)];
  }

  choose(i, extend) {
    this.cursor = Math.max(0, Math.min(this.total - 1, i));
    if (!extend) this.anchor = this.cursor;
    if (this.cursor < this.top) this.scrollTo(this.cursor);
    else if (this.cursor >= this.top + this.inSight) this.scrollTo(this.cursor - this.inSight + 1);
    this.body.focus({preventScroll: true});
    place.noteSoon({row: this.cursor || null});
    this.draw();
  }

  // Goes to the nearest row with an error in the current order.
  async seekError(by) {
    if (this.sheet) return;
    const {generation} = this;
    const {at, total} = await get('table', {...this.asked, first: this.cursor, error: by});
    if (generation !== this.generation) return;
    this.total = total;
    if (at === null) this.told.textContent = w('noErrors');
    else this.choose(at);
  }

  clear() {
    if (this.anchor !== this.cursor) this.choose(this.cursor);
    else if (place.read().q) this.search('');
  }

  search(words) {
    this.filter.value = words;
    return this.change({q: words || null});
  }

  toGraph() {
    const row = this.row(this.cursor), {step, rank} = this.asked;
    if (row && !this.sheet) place.go({screen: 'graph', step, rank, node: row.node});
    else if (row && this.about.timeline) place.go({screen: 'timeline', q: `"${row.values[0].split('"')[0]}"`});
  }

  csvOf(rows, separator) {
    const put = separator === ',' ? csvField : (v) => String(v ?? '').replaceAll(/[\t\n]/g, ' ');
    return rows.map((r) => this.shown.map((c) => put(c.of(r))).join(separator)).join('\n');
  }

  async copyRows() {
    const [a, b] = this.selection;
    for (let p = Math.floor(a / PAGE); p <= Math.floor(b / PAGE) && p - a / PAGE < 30; p++) await this.fetch(p);
    const rows = [];
    for (let i = a; i <= b; i++) if (this.row(i)) rows.push(this.row(i));
    await copy(this.csvOf(rows, '\t'));
    this.told.textContent = `${count(rows.length)} ${w('copied')}`;
  }

  // Exports all rows of the filter, in order, to a file.
  async exportAll() {
    let {total} = this; // may still be unknown
    const {asked} = this, parts = [`${csvRow(this.shown.map((c) => c.title || w('state')))}\n`];
    const ask = (first) => (first < total ? get(this.path, {...asked, first, limit: EXPORTED}) : null);
    for (let first = 0, next = ask(0); first < total; first += EXPORTED) {
      const got = await next;
      total = got.total;
      next = ask(first + EXPORTED); // requested while these rows are written
      parts.push(new Blob([this.csvOf(got.rows, ','), '\n'])); // blobs are stored by the browser, outside of the page's heap
      this.told.textContent = `${count(Math.min(first + EXPORTED, total))} / ${count(total)}`;
    }
    save(`${this.about.title}.csv`, 'text/csv', ...parts);
  }

  addKeys() {
    const add = (key, does, run) => this.keys.add('view', key, does, run);
    for (const [key, by] of [['arrowdown', 1], ['arrowup', -1]]) {
      add(key, by > 0 ? 'next row' : 'previous row', () => this.choose(this.cursor + by));
      add(`shift+${key}`, 'extend the selection', () => this.choose(this.cursor + by, true));
    }
    add('pagedown', 'a page down', () => this.choose(this.cursor + this.inSight));
    add('pageup', 'a page up', () => this.choose(this.cursor - this.inSight));
    add('home', 'first row', () => this.choose(0));
    add('end', 'last row', () => this.choose(this.total - 1));
    add('enter', 'show the node in the graph', () => this.toGraph());
    add('ctrl+c', 'copy the selected rows', () => this.copyRows());
    for (const [key, text, name, list, by] of [['r', 'next rank', 'rank', 'ranks', 1], ['R', 'previous rank', 'rank', 'ranks', -1],
      ['t', 'next step', 'step', 'steps', 1], ['T', 'previous step', 'step', 'steps', -1]]) {
      if (this.about.graph) add(key, text, () => place.turn(name, this.about.graph[list], by));
    }
    const seek = (by) => this.seekError(by).catch((e) => { this.told.textContent = told(e); });
    add('e', 'next error row', () => seek(1));
    add('E', 'previous error row', () => seek(-1));
    add('escape', 'clear the selection, or the filter', () => this.clear());
    add('f', 'filter', () => this.filter.focus());
    add('x', 'failing rows only', () => this.failing.click());
  }
}

export async function open(app) {
  if (!app.about.graph && !app.about.sheet) {
    fill(app.root, h('div.empty', {}, w('noGraph')));
    return {go() {}};
  }
  const t = new Table(app);
  await t.go(app.place);
  return {
    go: (at) => t.go(at),
    search: (words, direction) => {
      if (!direction) t.search(words);
    },
    hint: () => w(t.sheet && app.about.timeline ? 'sheetHint' : 'tableHint'),
  };
}
