// SPDX-License-Identifier: MIT
// Bars of ranks: where the time of each goes.
import * as place from './place.js';
import {h, percent, time} from './util.js';
import {w} from './words.js';

// One bar a rank, cut into its parts; the letter of a part is in its title and in the legend's order.
function bars(ranks, kinds, partsOf, whole, told, head) {
  return h('div.bars', {}, h('div.legend', {}, kinds.map((k) => h('span', {}, h(`i.part.${k}`), w(k))), h('span.grow'), h('span', {}, head)),
      ranks.map((r) => h('a.bar', {href: `#${place.write({screen: 'timeline', rank: r.rank})}`}, h('span.mono', {}, `${w('rank')} ${r.rank}`),
          h('span.track', {}, partsOf(r).map(([k, ns]) => h(`i.part.${k}`, {
            style: `width:${100 * ns / Math.max(whole(r), 1)}%`, title: `${w(k)}: ${time(ns)} (${percent(ns / Math.max(whole(r), 1))})`,
          }))), h('span.mono.num', {}, told(r)))));
}

// Of a run whose steps are not known: from its first event to its last.
export function shareBars(ranks) {
  const parts = (r) => {
    const wait = Math.min(r.wait, r.comm);
    return [['rest', r.span - r.comm], ['transfer', r.comm - wait], ['waiting', wait]];
  };
  const share = (r, ns) => percent(ns / Math.max(r.span, 1));
  return bars(ranks, ['rest', 'transfer', 'waiting'], parts, (r) => r.span, (r) => `${share(r, r.comm)} · ${share(r, Math.min(r.wait, r.comm))}`,
      `${w('transfer')} · ${w('waiting')}`);
}

// A step in the mean.  What is communicated while something is computed costs nothing: it is shown with the work.
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

// Which share of the communication costs nothing because something is computed meanwhile.
export const overlap = (u) => (u.communication > 0 ? percent(u.overlapped / u.communication) : '–');
