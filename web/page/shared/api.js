// SPDX-License-Identifier: MIT
// Questions to the server.  A thin bar on top shows when an answer takes long.
import {h} from './util.js';
import {w} from './words.js';

const SLOW_MS = 300;
// The page in the frame of a pair asks for the older run.
export const side = new URLSearchParams(location.search).get('side');
let token = localStorage.getItem('msprobe-token') ?? '';
let waiting = 0;
let bar;

// Takes the token from the URL printed by the server and removes it from the address bar. The token is kept for
// this origin (this port of this host), so that reloading and other tabs work.
export function takeToken() {
  const m = /(?:^#|[#&?])token=([0-9a-f]+)/.exec(location.hash);
  if (!m) return false;
  token = m[1];
  localStorage.setItem('msprobe-token', token);
  history.replaceState(null, '', location.pathname + location.hash.replace(m[0], '') || '#');
  return true;
}

export const canWrite = () => token !== '';

// The server rejected the token: the page has none, or that of an earlier server on this port.
export class Stranger extends Error {
  constructor() {
    super(w(token ? 'otherServer' : 'noToken'));
  }
}

// Returns the message of a failure; a network failure has no useful message of its own.
export const told = (e) => (e instanceof TypeError ? w('lost') : e.message);

// Exposes whether answers are awaited, to assistive technology and tests.
function tellWaiting() {
  if (waiting > 0) document.body.setAttribute('aria-busy', 'true');
  else document.body.removeAttribute('aria-busy');
}

function showBar(on) {
  bar ??= document.body.appendChild(h('div.busy'));
  bar.hidden = !on;
}

async function ask(path, params, options) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(params ?? {})) {
    if (v !== undefined && v !== null) query.set(k, v);
  }
  if (side) query.set('side', side);
  const timer = setTimeout(() => showBar(true), SLOW_MS);
  waiting++;
  tellWaiting();
  try {
    const text = query.toString();
    const r = await fetch(`/api/${path}${text ? `?${text}` : ''}`,
        {...options, headers: token ? {'X-Msprobe-Token': token} : {}});
    if (r.status === 403) throw new Stranger();
    if (!r.ok) throw new Error((await r.json().catch(() => null))?.error ?? `${r.status} ${r.statusText}`);
    return r;
  } finally {
    clearTimeout(timer);
    if (--waiting === 0 && bar) showBar(false);
    tellWaiting();
  }
}

export const get = async (path, params, signal) => (await ask(path, params, {signal})).json();
export const bytes = async (path, params, signal) => (await ask(path, params, {signal})).arrayBuffer();
export const post = async (path, params) => (await ask(path, params, {method: 'POST'})).json();

// Texts of a run by their id, fetched once, in batches.
const texts = new Map([[0, '']]);
let wanted = new Set();
let fetching = false;

export function textOf(id) {
  const t = texts.get(id);
  if (t === undefined) wanted.add(id);
  return t;
}

// Returns one text, fetched at once if unknown, independent of pending batches.
export const knownText = async (id) => textOf(id) ?? (await get('strings', {ids: id}))[0];

export async function fetchTexts(then) {
  if (fetching || wanted.size === 0) return;
  fetching = true;
  const ids = [...wanted].slice(0, 1000);
  for (const id of ids) wanted.delete(id);
  try {
    const got = await get('strings', {ids: ids.join(',')});
    ids.forEach((id, i) => texts.set(id, got[i]));
  } finally {
    fetching = false;
  }
  then();
  if (wanted.size) await fetchTexts(then);
}
