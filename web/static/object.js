// Objects: one with its fields and its entries, and lists of them.

import { bytes, counted, fault, h, number, objectLink, short, tableLink } from './dom.js';
import { get } from './api.js';
import { now, onCounters } from './live.js';
import { lit, tableID } from './map.js';
import { parts } from './table.js';

/** most is how many entries of a table are shown. */
const most = 50;

export async function showObject(panel, name, signal) {
  const heading = h('h2', { tabindex: '-1' }, name);
  const body = h('div', {}, h('p', { class: 'about' }, 'asking …'));
  panel.append(heading, body);
  heading.focus({ preventScroll: true });
  const asked = [get('/explain', { what: name }, signal), name.startsWith('cookie=') ? null : get('/object', { what: name }, signal)];
  const [wanted, text] = await Promise.allSettled(asked);
  if (signal.aborted) return;
  body.replaceChildren(fields(text), entries(wanted));
  const tables = wanted.value ? [...byTable(wanted.value.entries).keys()] : [];
  if (tables.length === 0) return;
  let seen = null;
  signal.addEventListener('abort', onCounters(() => {
    if (seen === now.counters.generation) return;
    seen = now.counters.generation;
    lit({ tables: tables.map((t) => tableID(now.counters, t)), edges: [] });
  }));
}

function fields(answer) {
  if (answer.reason) return fault(answer.reason);
  const o = answer.value;
  if (!o) return h('p', { class: 'about' }, 'Another controller gave entries this cookie.');
  return h('section', {}, h('p', { class: 'about' }, `As this Node understands it${o.source ? `, from ${o.source}` : ''}:`), h('pre', { class: 'yaml', tabindex: '0' }, o.yaml));
}

function entries(answer) {
  if (answer.reason) return fault(answer.reason);
  const { state, reason, editRefused, entries } = answer.value;
  return h('section', {}, h('h3', {}, counted(entries.length, 'entry', 'entries')),
    h('p', { class: state === 'refused' ? 'fault' : 'about' }, `It is ${state || 'known'}${reason ? `: ${reason}` : ''}.`),
    editRefused && h('p', { class: 'fault' }, `It stays as it was, for its edit is refused: ${editRefused}.`),
    [...byTable(entries)].map(([table, list]) => [h('h4', {}, tableLink(table)), h('ol', { class: 'entries plain' }, list.slice(0, most).map(entry)),
      list.length > most && h('p', { class: 'about' }, `and ${number(list.length - most)} more`)]));
}

function entry(e) {
  const places = e.origins.map((o) => [o.field, o.rule && `(${o.rule})`].filter(Boolean).join(' ')).filter(Boolean);
  return h('li', {}, h('code', { class: 'dump' }, parts(withoutTable(e.entry))), places.length > 0 && h('span', { class: 'past' }, [...new Set(places)].join(', ')), e.counters && h('span', { class: 'past' }, `${counted(e.counters.packets, 'packet')}, ${bytes(e.counters.bytes)}`));
}

const tableOf = (text) => text?.match(/\btable=("[^"]*"|[^, ]+)/)?.[1].replaceAll('"', '') ?? '';
const withoutTable = (text) => text?.replace(/^cookie=[^,]*, */, '').replace(/^table=("[^"]*"|[^, ]+), */, '') ?? '';

function byTable(entries) {
  const groups = new Map();
  for (const e of entries) {
    if (!e.entry) continue;
    const t = tableOf(e.entry);
    groups.set(t, [...(groups.get(t) ?? []), e]);
  }
  return groups;
}

// The lists of objects: path, title, and what a row says beside name and counters.
const kinds = [
  ['/policies', 'Policies', (r) => [r.tier && `tier ${r.tier}, priority ${r.priority}`, counted(r.rules?.length ?? 0, 'rule'), counted(r.sessions, 'connection')]],
  ['/services', 'Services', (r) => [r.type, (r.addresses ?? []).join(', '), counted(r.endpoints, 'endpoint')]],
  ['/pods', 'Pods of this Node', (r) => [(r.ips ?? []).join(', '), r.isolated && `isolated: ${r.isolated.join(', ')}`]],
  ['/egresses', 'Egresses', (r) => [r.egressIP, r.node && `on ${r.node}`, counted(r.pods, 'pod')]],
  ['/trafficcontrols', 'TrafficControls', (r) => [r.action, r.direction, r.target && `to ${r.target}`, counted(r.pods, 'pod')]],
];

// Where entries have no objects, they have cookies.
const cookies = ['/cookies', 'Cookies of another controller', (r) => [counted(r.tables, 'table')]];

export async function showObjects(panel, _, signal) {
  const filter = h('input', { type: 'search', placeholder: 'words that rows have', 'aria-label': 'Filter objects' });
  const body = h('div', { class: 'lists' });
  panel.append(h('h2', {}, 'Objects'), h('p', { class: 'tools' }, filter), body);
  let all = await Promise.allSettled(kinds.map(([path]) => get(path, {}, signal))), shown = kinds;
  if (all.every((a) => a.reason) && !signal.aborted) {
    const why = all[0].reason;
    [all, shown] = [await Promise.allSettled([get(cookies[0], {}, signal)]), [cookies]];
    if (all[0].reason) throw why;
  }
  if (signal.aborted) return;
  const show = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    body.replaceChildren(...shown.map(([, title, about], i) => section(title, about, all[i], words)));
  };
  filter.addEventListener('input', show);
  show();
}

function section(title, about, answer, words) {
  if (answer.reason) return h('section', {}, h('h3', {}, title), fault(answer.reason));
  const rows = answer.value.map((r) => ({ r, says: about(r).filter(Boolean).join(' · ') }))
    .filter(({ r, says }) => words.every((w) => `${r.object} ${says}`.toLowerCase().includes(w)));
  return h('section', {}, h('h3', {}, `${title} `, h('span', { class: 'count' }, number(rows.length))),
    rows.length === 0 && h('p', { class: 'about empty' }, words.length > 0 && answer.value.length > 0 ? 'None has these words.' : 'There is none.'), h('ul', { class: 'rows' }, rows.map(({ r, says }) =>
    h('li', { class: r.state }, objectLink(r.object), h('span', {}, says),
      h('span', { class: 'past' }, [`${counted(r.packets, 'packet')}, ${bytes(r.bytes)}`, `${short(r.entries)} entries`, r.state, r.reason, r.editRefused && `edit refused: ${r.editRefused}`].filter(Boolean).join(' · '))))));
}
