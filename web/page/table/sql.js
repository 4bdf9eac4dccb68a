// SPDX-License-Identifier: MIT
// The SQL box: one statement that may only look, its rows as a table.
import {get} from '../shared/api.js';
import {csvRow} from '../shared/csv.js';
import {openDialog} from '../shared/keys.js';
import {copy, count, digits, fill, h, save} from '../shared/util.js';
import {w} from '../shared/words.js';

const EXAMPLES = {
  timeline: 'SELECT name, count(*) AS n, sum(dur_ns) / 1e6 AS ms FROM events GROUP BY name ORDER BY ms DESC LIMIT 20',
  graph: 'SELECT node_name, precision_index FROM tb_nodes ORDER BY node_order LIMIT 20',
};
let last = {};

const shown = (v) => (v === null ? '' : typeof v === 'number' && !Number.isInteger(v) ? digits(v, 6) : String(v));
const csv = ({columns, rows}) => `${[columns, ...rows].map(csvRow).join('\n')}\n`;

function table(got) {
  return [h('div.legend', {}, h('span', {role: 'status'}, `${count(got.rows.length)}${got.more ? '+' : ''} ${w('rows')}`),
      h('button', {onclick: () => copy(csv(got))}, w('copy')), h('button', {onclick: () => save('query.csv', 'text/csv', csv(got))}, w('exportCsv'))),
    h('div.scroll', {}, h('table.sums', {}, h('tr', {}, got.columns.map((c) => h('th', {}, c))),
        got.rows.map((r) => h('tr', {}, r.map((v) => h(`td${typeof v === 'number' ? '.num' : ''}`, {title: v}, shown(v)))))))];
}

export function openSql(about) {
  const of = ['timeline', 'graph'].filter((k) => about[k]);
  if (!of.length) return;
  const which = h('select', {'aria-label': w('database')}, of.map((k) => h('option', {value: k, selected: last.of === k}, w(k))));
  const text = h('textarea', {rows: 4, spellcheck: false, 'aria-label': 'SQL'}), result = h('div.result');
  const example = () => { text.value = last.of === which.value ? last.text : EXAMPLES[which.value]; };
  const run = async () => {
    last = {of: which.value, text: text.value};
    fill(result, h('p.dim', {}, w('running')));
    try {
      fill(result, table(await get('sql', {q: text.value, graph: which.value === 'graph' ? 1 : 0})));
    } catch (e) {
      fill(result, h('div.failure', {role: 'alert'}, e.message));
    }
  };
  which.addEventListener('change', example);
  text.addEventListener('keydown', (e) => {
    if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    run();
  });
  openDialog('SQL', h('div.legend', {}, h('b', {}, 'SQL'), which, h('span', {}, w('sqlHint')), h('span.grow'), h('button', {onclick: run}, w('run'))), text, result);
  example();
  text.focus();
}
