// SPDX-License-Identifier: MIT
// What a counter's lane shows: its value, or, of times that only grow, their share of the time that passes.
import {bytes, count, digits, percent, time} from '../shared/util.js';

const unitOf = (label) => / \(([^()]+)\)$/.exec(label)?.[1] ?? '';

const FORMATS = {ns: time, B: bytes, bytes, '%': (v) => `${digits(v, 3)} %`};

function grows(c) {
  for (let i = 1; i < c.n; i++) if (c.dur[i] < c.dur[i - 1]) return false;
  return c.n > 1;
}

// The name of a counter's lane: the unit is said beside its figures.
export const nameOf = (label) => label.replace(/ \([^()]+\)$/, '');

// Returns {at: the height of sample i, told: a text for a height, top: the height of the lane; 0: the largest sample}.
export function shown(c, label) {
  const unit = unitOf(label);
  if (unit === 'ns' && grows(c)) {
    const share = (i) => (c.dur[i + 1] - c.dur[i]) / Math.max(1, c.start[i + 1] - c.start[i]);
    return {told: percent, top: 1, at: (i) => (i + 1 < c.n ? Math.min(1, share(i)) : 0)};
  }
  const format = FORMATS[unit] ?? ((v) => `${Number.isInteger(v) ? count(v) : digits(v)} ${unit}`.trim());
  return {told: format, top: 0, at: (i) => Math.abs(c.dur[i])};
}
