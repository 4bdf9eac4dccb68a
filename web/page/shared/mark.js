// SPDX-License-Identifier: MIT
// The mark of a state: a letter and a shape beside the colour.
import {h} from './util.js';

const MARKS = {error: ['E', 'E', '■'], warning: ['W', 'W', '▲'], pass: ['.', 'P', '●'], unmatched: ['-', 'U', '□'], overflow: ['!', 'E', '↯'],
  none: [' ', 'I', '·']};

export function mark(state) {
  const [letter, cls, shape] = MARKS[state] ?? MARKS.none;
  return h(`span.letter.${cls}`, {title: state, 'data-letter': letter}, `${letter}${state === 'none' ? '' : shape}`);
}
