// SPDX-License-Identifier: MIT
// Bars of ranks: where the time of each goes.
import * as place from './place.js';
import {h, percent, time} from './util.js';
import {w} from './words.js';

// Draws one bar for each rank, cut into its parts, in the order of the legend; each part has a title.
function bars(ranks, kinds, partsOf, whole, told, head) {
  return h('div.bars', {}, h('div.legend', {}, kinds.map((k) => h('span', {}, h(`i.part.${k}`), w(k))), h('span.grow'), h('span', {}, head)),
      ranks.map((r) => h(ranks.some((x) => x.count > 1) ? 'a.bar.group' : 'a.bar', {href: `#${place.write({screen: 'timeline', rank: r.rank})}`}, h('span.mono', {title: r.which ?? ''}, r.count > 1 ? `${r.count} × ${r.which}` : `${w('rank')} ${r.rank}`),
          h('span.track', {}, partsOf(r).map(([k, ns]) => h(`i.part.${k}`, {
            style: `width:${100 * ns / Math.max(whole(r), 1)}%`, title: `${w(k)}: ${time(ns)} (${percent(ns / Math.max(whole(r), 1))})`,
          }))), h('span.mono.num', {}, told(r)))));
}

// Draws the bars of a run with unknown steps: from the first event to the last.
export function shareBars(ranks) {
  const parts = (r) => {
    const wait = Math.min(r.wait, r.comm);
    return [['rest', r.span - r.comm], ['transfer', r.comm - wait], ['waiting', wait]];
  };
  const share = (r, ns) => percent(ns / Math.max(r.span, 1));
  return bars(ranks, ['rest', 'transfer', 'waiting'], parts, (r) => r.span, (r) => `${share(r, r.comm)} · ${share(r, Math.min(r.wait, r.comm))}`,
      `${w('transfer')} · ${w('waiting')}`);
}

// Draws the bars of a mean step. Communication hidden by computing costs nothing, so its bar is next to
// computing.
export function stepBars(use) {
  const parts = (u) => {
    const waiting = Math.min(u.waiting, u.exposed), overlapped = Math.min(u.overlapped, u.computing);
    const known = u.computing + u.exposed;
    return [['computing', u.computing - overlapped], ['overlapped', overlapped], ['exposed', u.exposed - waiting], ['waiting', waiting],
      ['idle', Math.max(0, u.step - known)]];
  };
  return bars(use, ['computing', 'overlapped', 'exposed', 'waiting', 'idle'], parts, (u) => u.step, (u) => `${time(u.step)} · ${overlap(u)}`,
      `${w('step')} · ${w('overlap')}`);
}

// The share of communication that is hidden by computing.
export const overlap = (u) => (u.communication > 0 ? percent(u.overlapped / u.communication) : '–');
