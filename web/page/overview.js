// SPDX-License-Identifier: MIT
// The first screen: what is wrong with this run, each finding a link to its evidence.
import {get} from './api.js';
import {shareBars} from './cluster.js';
import * as place from './place.js';
import {count, fill, h, svg, time} from './util.js';
import {w} from './words.js';

const SHOWN = 10, RANKS = 16;
const LETTER = {error: 'E', warning: 'W', info: 'i'};
const CLASS = {error: 'E', warning: 'W', info: 'I'};

function finding(f) {
  const screen = place.read(f.place).screen;
  return h(`div.finding.${CLASS[f.severity]}`, {},
      h('span.letter', {title: f.severity}, LETTER[f.severity]), h('span.text', {}, f.text),
      h('a', {href: `#${f.place}`}, w(screen)));
}

function findingList(list, about) {
  const box = h('div.findings');
  const draw = (n) => fill(box, list.slice(0, n).map(finding),
      list.length > n && h('button', {onclick: () => draw(list.length)}, `${w('showAll')} (${list.length})`));
  if (list.length) draw(SHOWN);
  else fill(box, h('div.finding.P', {}, h('span.letter', {}, '.'), h('span.text', {}, w('nothingWrong'), ' ', checked(about))));
  return box;
}

function checked({timeline: t, graph: g}) {
  const parts = [];
  if (t) parts.push(`${count(t.events)} ${w('events')} (${w('step')}, ${w('rank')}, dropped)`);
  if (g) parts.push(`${g.ranks.length} × ${w('rank')}, ${g.steps.length} × ${w('step')}${g.dual ? `, ${w('target')} – ${w('golden')}` : ''}`);
  return parts.join('; ');
}

// Bars of the steps of a process, the longest of several where there are many; a click goes there.
function stepPlot(steps) {
  const width = 900, height = 80, most = Math.max(...steps.map((s) => s[3]));
  const each = width / steps.length;
  const plot = svg('svg', {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', class: 'steps', role: 'img'});
  steps.forEach((s, i) => {
    const tall = Math.max(1, (s[3] / most) * (height - 4));
    const bar = svg('rect', {x: i * each, y: height - tall, width: Math.max(1, each - 1), height: tall});
    bar.append(svg('title', {}, `${w('step')} ${s[1]}: ${time(s[3])}`));
    bar.addEventListener('click', () => place.go({screen: 'timeline', t0: s[2], t1: s[2] + s[3]}));
    plot.append(bar);
  });
  const sorted = steps.map((s) => s[3]).sort((a, b) => a - b), median = sorted[Math.floor(sorted.length / 2)];
  return [h('div.dim.legend', {}, h('span', {}, `${w('longest')} ${time(most)}`), h('span', {}, `${w('median')} ${time(median)}`),
    h('span', {}, `${w('step')} ${steps[0][1]} – ${steps.at(-1)[1]}`)), plot];
}

function facts({timeline: t, graph: g, path, golden}) {
  const rows = [[w('path'), path]];
  if (golden) rows.push([w('golden'), golden]);
  if (t) {
    rows.push([w('events'), count(t.events)], [w('duration'), time(t.length)],
        [w('processes'), count(t.processes)], [w('tracks'), count(t.tracks)]);
  }
  if (g) {
    rows.push([w('task'), g.task || '–'], [w('rank'), g.ranks.join(', ')], [w('step'), g.steps.join(', ')]);
  }
  return h('div.facts', {}, rows.map(([k, v]) => [h('span.dim', {}, k), h('span.mono', {}, v)]));
}

export async function open({root, about}) {
  const draw = async () => {
    const [list, steps, cluster] = await Promise.all([get('findings'), about.timeline ? get('steps') : [], about.timeline ? get('cluster') : null]);
    fill(root, h('div.page', {}, h('h2', {}, w('wrong')), findingList(list, about),
        steps.length > 1 && [h('h2', {}, w('stepTime')), stepPlot(steps)],
        cluster?.ranks.length > 0 && [h('h2', {}, w('perRank')), shareBars(cluster.ranks.slice(0, RANKS))],
        h('h2', {}, w('facts')), facts(about)));
  };
  await draw();
  return {
    go() {},
    refresh(now) {
      about = now;
      return draw();
    },
    hint: () => w('overviewHint'),
  };
}

