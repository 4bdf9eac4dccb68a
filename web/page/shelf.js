// SPDX-License-Identifier: MIT
// The list of what a folder holds: runs, dumps and comparisons with their facts, to open one or to compare two dumps.
import {get, post, told} from './shared/api.js';
import {bytes, count, fill, h, moment} from './shared/util.js';
import {w} from './shared/words.js';

const AGAIN_MS = 300, SLOWEST_MS = 600000;

const COLUMNS = [['name', 'name'], ['what', 'kind'], ['changed', 'changed_ms'], ['worldSize', 'ranks'], ['size', 'bytes'], ['findings', 'findings']];

// Asks the server for another input, and waits until it has it.
export async function choose(name, golden, opened) {
  await post('choose', {name, golden}).catch((e) => {
    if (!(e instanceof TypeError)) throw e; // the old server may be gone before its answer has come
  });
  for (let waited = 0; waited < SLOWEST_MS; waited += AGAIN_MS) {
    await new Promise((r) => setTimeout(r, AGAIN_MS));
    const about = await get('about').catch(() => null);
    if (about && about.opened !== opened) return;
  }
  throw new Error(w('lost'));
}

export async function open({root, about, opening}) {
  const state = {by: 'changed_ms', down: true, marked: []}, table = h('div'), note = h('p', {role: 'status'});
  let list = null;
  const go = async (name, golden) => {
    note.textContent = `${w('opening')} ${name}${golden ? ` – ${golden}` : ''}`;
    try {
      await choose(name, golden, about.opened);
      await opening();
    } catch (e) {
      note.textContent = told(e);
    }
  };
  const mark = (name, on) => {
    state.marked = on ? [...state.marked, name].slice(-2) : state.marked.filter((n) => n !== name);
    draw();
  };
  const cell = (e, k) => (k === 'bytes' ? bytes(e.bytes) : k === 'changed_ms' ? moment(e.changed_ms) : k === 'what' ? w(`kind_${e.kind}`) : e[k] < 0 ? '–' : count(e[k]));
  const draw = () => {
    const rows = [...list.entries].sort((a, b) => (typeof a[state.by] === 'string' ? a[state.by].localeCompare(b[state.by], undefined, {numeric: true}) : a[state.by] - b[state.by]) * (state.down ? -1 : 1));
    fill(table, h('div.scroll', {}, h('table.sums.narrow.shelf', {}, h('tr', {}, h('td', {}), COLUMNS.map(([t, k]) => h(k === 'name' || k === 'kind' ? 'th' : 'th.num', {'aria-sort': k === state.by ? (state.down ? 'descending' : 'ascending') : null},
        h('button', {onclick: () => { Object.assign(state, {by: k, down: k === state.by ? !state.down : k !== 'name'}); draw(); }}, w(t), k === state.by ? (state.down ? ' ▾' : ' ▴') : '')))),
    rows.map((e) => h('tr', {}, h('td', {}, e.pairs && h('input', {type: 'checkbox', checked: state.marked.includes(e.name), 'aria-label': `${w('compareThis')} ${e.name}`, onchange: (ev) => mark(e.name, ev.target.checked)})),
        h('td', {}, h('button.link', {onclick: () => go(e.name)}, e.name)), h('td', {}, w(`kind_${e.kind}`)),
        ['changed_ms', 'ranks', 'bytes', 'findings'].map((k) => h(`td.num${k === 'findings' && e.findings > 0 ? '.W' : ''}`, {}, cell(e, k))))))));
    const [a, b] = state.marked;
    if (b) {
      table.append(h('p', {}, h('button.act', {onclick: () => go(a, b)}, `${w('compareTwo')}: ${a} (${w('target')}) – ${b} (${w('golden')})`), ' ',
          h('button.act', {onclick: () => { state.marked.reverse(); draw(); }}, w('swap'))));
    } else if (list.entries.some((e) => e.pairs)) table.append(h('p.dim', {}, w('markTwo')));
  };
  const read = async () => {
    list = await get('shelf');
    fill(root, h('div.page', {tabIndex: 0, role: 'region', 'aria-label': w('choose')}, h('h2', {}, w('choose')), h('p.dim.mono', {}, list.path),
        list.failed && h('div.failure', {role: 'alert'}, list.failed), note, table, list.more && h('p.dim', {}, w('moreHere'))));
    draw();
  };
  await read();
  return {go() {}, refresh: read, hint: () => w('overviewHint')};
}
