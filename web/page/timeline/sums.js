// SPDX-License-Identifier: MIT
// What an area sums up to: a table that is sorted by any of its columns, copied and exported.
import {csvRow} from '../shared/csv.js';
import {copy, count, h, percent, save, time} from '../shared/util.js';
import {w} from '../shared/words.js';

const SUMS = ['name', 'events', 'total', 'mean', 'p99', 'max', 'share'];

function sumTable(rows, by, sortBy) {
  const title = {name: w('name'), events: w('times'), total: w('total'), mean: w('mean'), p99: 'p99', max: w('longest'), share: w('share')};
  return h('table.sums', {}, h('tr', {}, SUMS.map((k) => h(k === 'name' ? 'th' : 'th.num', {'aria-sort': k === by ? (k === 'name' ? 'ascending' : 'descending') : null},
      h('button', {onclick: () => sortBy(k)}, `${k === by ? '▾ ' : ''}${title[k]}`)))),
  rows.map((r) => h('tr', {}, h('td', {title: `${r.domain}: ${r.name}`}, r.name), h('td.num', {}, count(r.events)),
      ['total', 'mean', 'p99', 'max'].map((k) => h('td.num', {}, time(r[k]))), h('td.num', {}, percent(r.share)))));
}

function sumsAsCsv(rows) {
  const head = 'domain,name,count,total_ns,mean_ns,p50_ns,p99_ns,max_ns,share';
  return `${[head, ...rows.map((r) => csvRow([r.domain, r.name, r.events, r.total, r.mean, r.p50, r.p99, r.max, r.share]))].join('\n')}\n`;
}

// Returns elements for the drawer; `sortBy` is called with the chosen column.
export function sumsOf(rows, by, length, sortBy) {
  const sorted = [...rows].sort((a, b) => (by === 'name' ? a.name.localeCompare(b.name) : b[by] - a[by]));
  return [h('h2', {}, `${w('selection')}: ${time(length)} `, h('button', {onclick: () => copy(sumsAsCsv(sorted))}, w('copy')), ' ',
      h('button', {onclick: () => save('selection.csv', 'text/csv', sumsAsCsv(sorted))}, w('exportCsv'))),
  rows.length ? sumTable(sorted, by, sortBy) : h('p.dim', {}, w('noHits'))];
}
