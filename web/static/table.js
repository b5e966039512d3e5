// A table: its entries in the syntax of dumps, with what they counted and count
// now. An entry opens the objects that want it.

import { counted, fault, h, number, objectLink, perSecond, seconds } from './dom.js';
import { get } from './api.js';
import { now, onCounters } from './live.js';
import { lit, tableID } from './map.js';

/** most is how many entries a view shows, and asks for. */
const most = 500;
const period = 2000;

export async function showTable(panel, name, signal) {
  const heading = h('h2', { tabindex: '-1' }, name);
  const about = h('p', { class: 'about' });
  const filter = h('input', { type: 'search', placeholder: 'words that entries have', 'aria-label': 'Filter entries', oninput: () => show() });
  const busy = h('input', { type: 'checkbox', onchange: () => show() });
  const list = h('ol', { class: 'entries' });
  const note = h('p', { class: 'about' });
  panel.append(heading, about, h('p', { class: 'tools' }, filter, h('label', {}, busy, ' busiest first')), list, note);
  heading.focus({ preventScroll: true });

  const cards = new Map(); // by an entry's line
  let flows = [];
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = flows.filter((f) => words.every((w) => line(f).toLowerCase().includes(w)));
    if (busy.checked) shown = shown.toSorted((a, b) => (b.rate ?? 0) - (a.rate ?? 0) || b.packets - a.packets);
    const elements = shown.map((f) => card(cards, f));
    // An order that stays is left alone, and with it the focus.
    if (elements.length !== list.children.length || elements.some((e, i) => e !== list.children[i])) list.replaceChildren(...elements);
    note.textContent = flows.length === 0 ? 'No entry: packets that come here are dropped, or return to who asked.' : shown.length === 0 ? 'No entry has these words.' : flows.length < most ? '' : `The first ${most} entries. antrail dump-flows ${name} prints all.`;
  };
  const load = async () => {
    const at = performance.now();
    const fresh = await get('/flows', { table: name, limit: most }, signal);
    const before = new Map(flows.map((f) => [line(f), f]));
    for (const f of fresh) {
      const was = before.get(line(f));
      f.at = at;
      f.rate = was ? Math.max(0, f.packets - was.packets) / ((at - was.at) / 1000) : null;
    }
    flows = fresh;
    show();
  };
  signal.addEventListener('abort', onCounters(() => {
    const id = tableID(now.counters, name);
    tell(about, id);
    if (panel.dataset.lit !== name && id != null) {
      panel.dataset.lit = name;
      lit(around(id));
    }
  }));
  signal.addEventListener('abort', () => delete panel.dataset.lit);
  await load();
  const timer = setInterval(() => load().catch(() => {}), period); // a lost connection is told above
  signal.addEventListener('abort', () => clearInterval(timer));
}

// around is a table with the edges that touch it.
function around(id) {
  const edges = now.counters.pipeline.edges.filter((e) => e.from === id || e.to === id);
  return { focus: id, tables: edges.flatMap((e) => [e.from, e.to]).filter((t) => t !== id), edges: edges.map((e) => `${e.from}-${e.to}`) };
}

function tell(about, id) {
  const t = now.counters.pipeline.tables.find((t) => t.id === id);
  if (!t) return;
  const lost = now.rates?.drops.get(id) ?? 0;
  about.replaceChildren(
    `Table ${id}${t.stage ? `, stage ${t.stage}` : ''}: ${counted(t.entries, 'entry', 'entries')}, ${perSecond(now.rates?.tables.get(id))} packets`,
    t.dropped > 0 ? h('span', { class: lost > 0 ? 'bad' : '' }, `, ${number(t.dropped)} dropped${lost > 0 ? `, ${perSecond(lost)} now` : ''}`) : '');
}

/** line is an entry as a dump prints it, without its past. */
export const line = (f) => `${[`priority=${f.priority}`, f.match].filter(Boolean).join(',')} actions=${f.actions}`;

/** marked are the names of bits, behind their numbers. */
export const marked = (words) => (words?.length > 0 ? h('span', { class: 'past' }, ` ${words.join(', ')}`) : '');

/** dumped is an entry's line with its parts told apart. */
export function dumped(f) {
  return h('code', { class: 'dump' }, h('span', { class: 'priority' }, `priority=${f.priority}`), f.match && parts(`,${f.match}`),
    h('span', { class: 'actions' }, ' actions='), h('span', { class: f.actions === 'drop' ? 'bad' : '' }, parts(f.actions)));
}

/** parts lets a line break behind each comma. */
export const parts = (text) => text.split(/(?<=,)/).map((part) => [part, h('wbr', {})]);

function card(cards, f) {
  let c = cards.get(line(f));
  if (!c) {
    const past = h('span', { class: 'past' });
    const more = h('div', { class: 'more', hidden: true });
    const button = h('button', { type: 'button', class: 'entry', 'aria-expanded': 'false', onclick: () => toggle(button, more, f) }, dumped(f), past);
    c = { past, element: h('li', {}, button, more) };
    cards.set(line(f), c);
  }
  const words = [`${perSecond(f.rate)}`, `n_packets=${f.packets}`, `n_bytes=${f.bytes}`, `duration=${seconds(f.durationNS)}`];
  if (f.packets > 0) words.push(`idle ${seconds(f.idleNS)}`);
  if (f.cookie) words.push(`cookie=${f.cookie}`);
  if (f.learned) words.push('learned');
  if (f.asks) words.push(`asks for ${f.asks.join(', ')}`);
  if (f.sets) words.push(`sets ${f.sets.join(', ')}`);
  c.past.textContent = words.join(' · ');
  c.element.classList.toggle('busy', (f.rate ?? 0) > 0);
  return c.element;
}

async function toggle(button, more, f) {
  const open = more.hidden;
  more.hidden = !open;
  button.setAttribute('aria-expanded', String(open));
  if (!open || more.childElementCount > 0) return;
  try {
    const wanted = await get('/explain', { what: `table=${f.table}, ${line(f)}` });
    const origins = wanted.flatMap((e) => e.origins);
    more.replaceChildren(origins.length > 0 ? h('ul', { class: 'origins' }, origins.map((o) => h('li', {}, origin(o)))) : h('p', {}, 'No object wants it.'));
  } catch (error) {
    more.replaceChildren(fault(error));
  }
}

/** origin is an object, and the place in it that asks for an entry. */
export const origin = (o, node = undefined) => [objectLink(o.object, node), o.field ? ` ${o.field}` : '', o.rule ? h('span', { class: 'rule' }, ` (${o.rule})`) : ''];

