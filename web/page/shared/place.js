// SPDX-License-Identifier: MIT
// The address is the state: "#graph?step=0&rank=1&node=NAME".  Findings use the same form, so a link
// out of a report opens what it speaks of.
const listeners = [];
const SOON_MS = 120;

export const SCREENS = ['overview', 'timeline', 'graph', 'table', 'cluster'];

export function read(text = location.hash.replace(/^#/, '')) {
  const [screen, query] = text.split('?');
  const place = {screen: SCREENS.includes(screen) ? screen : 'overview'};
  for (const [k, v] of new URLSearchParams(query ?? '')) place[k] = v;
  return place;
}

export function write(place) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(place)) {
    if (k !== 'screen' && v !== undefined && v !== null && v !== '') query.set(k, v);
  }
  const text = query.toString();
  return place.screen + (text ? `?${text}` : '');
}

function tell() {
  forget();
  for (const fn of listeners) fn(read());
}

// Go there, so that "back" returns.
export function go(place) {
  const text = typeof place === 'string' ? place : write(place);
  if (`#${text}` === location.hash) return;
  if (soon) note({});
  history.pushState(null, '', `#${text}`);
  tell();
}

// The same for what moves with every frame: browsers allow a page only so many changes a second.
let soon = null, timer;
export function noteSoon(change) {
  soon = {...soon, ...change};
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (soon) note({});
  }, SOON_MS);
}

// The place as it is becomes one that "back" returns to: what is noted from now on is another.
export function keep() {
  if (soon) note({});
  history.pushState(null, '', location.hash);
}

function forget() {
  clearTimeout(timer);
  soon = null;
}

// The same view has moved a little: zoom, selection.  No new entry for "back".
export function note(change) {
  const place = {...read(), ...soon, ...change};
  forget();
  history.replaceState(null, '', `#${write(place)}`);
}

// The next of some values, or the one before, around the end.
export function turn(name, values, by) {
  const i = values.findIndex((v) => String(v) === String(read()[name] ?? values[0]));
  go({...read(), [name]: values[(i + by + values.length) % values.length]});
}

export function listen(fn) {
  listeners.push(fn);
}

addEventListener('popstate', tell); // comes with a changed hash as well
