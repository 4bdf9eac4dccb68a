// SPDX-License-Identifier: MIT
import {fill, h} from './util.js';
import {w} from './words.js';

export async function open({root}) {
  fill(root, h('div.empty', {}, w('noGraph')));
  return {go() {}};
}
