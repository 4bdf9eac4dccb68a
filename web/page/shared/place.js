// SPDX-License-Identifier: MIT
// The address is the state: "#graph?step=0&rank=1&node=NAME".  Findings use the same form, so a link
// from a report opens the evidence.
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

// Goes to a place and adds a history entry, so that "back" returns.
export function go(place) {
  const text = typeof place === 'string' ? place : write(place);
  if (`#${text}` === location.hash) return;
  if (soon) note({});
  history.pushState(null, '', `#${text}`);
  tell();
}

// Notes a change that happens in every frame with a delay: browsers limit history changes per second.
let soon = null, timer;
export function noteSoon(change) {
  soon = {...soon, ...change};
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (soon) note({});
  }, SOON_MS);
}

// Adds a history entry for the current place; later changes are noted in the new entry.
export function keep() {
  if (soon) note({});
  history.pushState(null, '', location.hash);
}

function forget() {
  clearTimeout(timer);
  soon = null;
}

// Replaces the current history entry after a small change of the view, such as zoom or selection.
export function note(change) {
  const place = {...read(), ...soon, ...change};
  forget();
  history.replaceState(null, '', `#${write(place)}`);
}

// Goes to the next or previous of some values, cyclically.
export function turn(name, values, by) {
  const i = values.findIndex((v) => String(v) === String(read()[name] ?? values[0]));
  go({...read(), [name]: values[(i + by + values.length) % values.length]});
}

export function listen(fn) {
  listeners.push(fn);
}

addEventListener('popstate', tell); // also fired when the hash changes
