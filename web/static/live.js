// What changes as packets pass: the counters of the stream /events, and the rates
// between two of them.

import { asking } from './node.js';

const listeners = new Set();
let readings = 0;
const pulse = document.getElementById('pulse');

/** now is the last state: counters, and rates once there are two of them:
 *  tables, edges, drops (maps by id, or "from-to") and ports (by number). */
export const now = { counters: null, rates: null };

/** onCounters has a function called with each new state, and at once with the
 *  present one. It returns how to stop that. */
export function onCounters(tell) {
  listeners.add(tell);
  if (now.counters) tell(now);
  return () => listeners.delete(tell);
}

/** listen begins, and goes on whatever happens to the connection. */
export function listen() {
  const source = new EventSource(asking('/events'));
  source.addEventListener('counters', (event) => take(JSON.parse(event.data)));
  source.addEventListener('fault', (event) => say('fault', event.data));
  source.addEventListener('error', () => {
    if (source.readyState !== EventSource.CLOSED) say('fault', 'connection lost, trying again');
    else ended();
  });
}

// An answer that is none of events ends the stream for good: nobody is let in
// without a new URL, or there are too many readers.
async function ended() {
  const answer = await fetch('/plots').catch(() => null);
  say('fault', answer?.status === 401 ? 'this session has ended: run antrail page' : 'no counters: trying again');
  if (answer?.status !== 401) setTimeout(listen, 3000);
}

function say(state, text) {
  pulse.dataset.state = state;
  pulse.textContent = text;
}

function take(counters) {
  const before = now.counters;
  if (before && before.atNS >= counters.atNS) {
    if (before.atNS === counters.atNS) return;
    now.rates = null; // another agent, with a clock of its own
  } else if (before) {
    now.rates = between(before, counters);
  }
  now.counters = counters;
  readings++;
  if (now.rates) pulse.dataset.first ??= readings; // how many readings the first rates took
  say('live', 'live');
  for (const tell of listeners) tell(now);
}

/** rate is what came a second; what was reset counts as nothing. */
const rate = (after, before, elapsed) => Math.max(0, after - (before ?? 0)) / elapsed;

function between(a, b) {
  const elapsed = (b.atNS - a.atNS) / 1e9;
  const tables = new Map(), drops = new Map(), edges = new Map(), ports = new Map();
  const table = new Map(a.pipeline.tables.map((t) => [t.id, t]));
  for (const t of b.pipeline.tables) {
    const was = table.get(t.id);
    tables.set(t.id, rate(t.packets, was?.packets, elapsed));
    drops.set(t.id, rate(t.dropped, was?.dropped, elapsed));
  }
  const edge = new Map(a.pipeline.edges.map((e) => [edgeKey(e), e]));
  for (const e of b.pipeline.edges) edges.set(edgeKey(e), rate(e.packets, edge.get(edgeKey(e))?.packets, elapsed));
  const port = new Map((a.ports ?? []).map((p) => [p.ofPort, p]));
  for (const p of b.ports ?? []) {
    const was = port.get(p.ofPort) ?? p;
    ports.set(p.ofPort, { rx: rate(p.rx.packets, was.rx.packets, elapsed), tx: rate(p.tx.packets, was.tx.packets, elapsed) });
  }
  return { tables, drops, edges, ports };
}

/** edgeKey names an edge as its element's id does. */
export const edgeKey = (e) => `${e.from}-${e.to}`;
