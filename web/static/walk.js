// A packet's way over the map, table by table: a packet that somebody describes,
// or one that passes now.

import { fault, h, tableLink } from './dom.js';
import { get, lines, post } from './api.js';
import { now } from './live.js';
import { hasEdge, lit } from './map.js';
import { origin, parts } from './table.js';
import { examples } from './examples.js';

/** How many packets a watch catches, and how long it lasts. */
const mostCaught = 20, watchFor = 30e9;

/** hops groups a walk's steps by turns of tables. A table that asked others and
 *  goes on has another turn, without an entry. */
export function hops(walk) {
  const all = [];
  for (const step of walk.steps ?? []) {
    const last = all.at(-1);
    if (step.kind === 'entry') all.push({ table: step.table, id: step.tableID, depth: step.depth, entry: step.entry ?? null, looked: true, steps: [] });
    else if (!last || last.id !== step.tableID || last.depth !== step.depth) all.push({ table: step.table, id: step.tableID, depth: step.depth, looked: false, steps: [step] });
    else last.steps.push(step);
  }
  return all;
}

// ways are the edges of the map that a walk took: each looked-up table was reached
// from the last one that has an edge to it.
function ways(all) {
  const edges = [];
  all.forEach((hop, i) => {
    if (!hop.looked) return;
    for (let k = i - 1; k >= 0; k--) {
      if (!hasEdge(now.counters, all[k].id, hop.id)) continue;
      edges.push({ at: i, key: `${all[k].id}-${hop.id}` });
      return;
    }
  });
  return edges;
}

export async function showWalk(panel, _, signal) {
  const flow = h('textarea', { rows: 4, 'aria-label': 'Packet in flow syntax', spellcheck: 'false', placeholder: 'in_port="client-a",tcp,nw_src=…,nw_dst=…,tp_dst=80' });
  const choose = h('select', { 'aria-label': 'Examples', hidden: true, onchange: () => { flow.value = choose.value; } });
  const way = h('div', { id: 'way' });
  const walk = async (event) => {
    event?.preventDefault();
    try {
      show(way, (await post('/trace', { flow: flow.value.trim() }, signal)).walk, signal);
    } catch (error) {
      if (!signal.aborted) end(way, error);
    }
  };
  const heading = h('h2', { tabindex: '-1' }, 'A packet walks');
  panel.append(heading, h('form', { id: 'typed', onsubmit: walk }, choose, flow,
    h('p', { class: 'tools' }, h('button', { class: 'first' }, 'Walk'), h('span', { class: 'about' }, 'Nothing is sent, counted or learned.'))), watching(way, signal), way);
  flow.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.shiftKey) walk(event); });
  heading.focus({ preventScroll: true });
  const offered = await examples(signal).catch(() => []);
  if (signal.aborted || offered.length === 0) return;
  choose.append(h('option', { value: '' }, 'an example …'), ...offered.map((o) => h('option', { value: o.flow }, o.title)));
  choose.hidden = false;
  if (!flow.value) flow.value = offered[0].flow;
}

function end(way, error) {
  lit(null);
  way.replaceChildren(fault(error));
}

// watching is the part that catches packets as they pass.
function watching(way, signal) {
  const filter = h('input', { type: 'search', placeholder: 'tcpdump expression, such as tcp port 80', 'aria-label': 'Filter of live packets' });
  const dropped = h('input', { type: 'checkbox' });
  const list = h('ol', { class: 'caught' }), says = h('span', { class: 'about', role: 'status' });
  const button = h('button', {}, 'Watch');
  let stop = null;
  const watch = async (event) => {
    event.preventDefault();
    if (stop) {
      stop.abort();
      return;
    }
    stop = new AbortController();
    button.textContent = 'Stop';
    list.replaceChildren();
    try {
      await take({ filter: filter.value.trim(), droppedOnly: dropped.checked, count: mostCaught, forNS: watchFor }, AbortSignal.any([signal, stop.signal]));
    } catch (error) {
      says.textContent = stop.signal.aborted || signal.aborted ? 'stopped' : error.message;
    }
    stop = null;
    button.textContent = 'Watch';
  };
  const take = async (request, signal) => {
    for await (const { armed, walk, counts } of lines('/trace/live', request, signal)) {
      if (armed) says.textContent = 'watching';
      if (walk) list.append(h('li', {}, caught(walk, way, signal)));
      if (counts) says.textContent = `${counts.matched ?? 0} passed`;
    }
    says.textContent += ', done';
  };
  return h('details', {}, h('summary', {}, 'or pick one of those that pass now'),
    h('form', { id: 'live', class: 'tools', onsubmit: watch }, filter, h('label', {}, dropped, ' lost ones only'), button, says), list);
}

function caught(walk, way, signal) {
  const lost = Boolean(walk.verdict.reason);
  return h('button', { type: 'button', class: lost ? 'bad' : '', onclick: () => show(way, walk, signal) },
    `${new Date(walk.time).toLocaleTimeString()} ${brief(walk.packet)}: ${walk.verdict.text}`);
}

// brief is a packet's flow without what says little at a glance.
const brief = (packet) => packet.split(',').filter((p) => !/^(dl_|eth_|reg|nw_ttl|metadata|nw_tos|nw_ecn)/.test(p)).join(',');

// show begins a walk at its first table.
function show(way, walk, signal) {
  const all = hops(walk);
  if (all.length === 0) {
    way.replaceChildren(h('p', {}, walk.verdict.text));
    return;
  }
  const edges = ways(all);
  const where = h('span', { class: 'where', role: 'status' }), card = h('article', { class: 'hop' });
  const items = all.map((hop, i) => h('li', {}, h('button', { type: 'button', onclick: () => go(i) }, hop.looked ? hop.table : `back in ${hop.table}`)));
  let at = 0;
  const go = (to) => {
    at = Math.max(0, Math.min(all.length - 1, to));
    where.textContent = `${at + 1} of ${all.length}`;
    back.disabled = at === 0;
    next.disabled = at === all.length - 1;
    items.forEach((item, i) => (i === at ? item.setAttribute('aria-current', 'step') : item.removeAttribute('aria-current')));
    card.replaceChildren(...turn(all[at]), ...(at === all.length - 1 ? [verdict(walk)] : []));
    light(all, edges, at, walk);
    const list = items[at].parentElement;
    if (list) list.scrollTop = items[at].offsetTop - list.offsetTop - list.clientHeight / 2;
  };
  const back = h('button', { type: 'button', onclick: () => go(at - 1) }, '← Back'), next = h('button', { type: 'button', class: 'first', onclick: () => go(at + 1) }, 'Next →');
  way.replaceChildren(h('p', { class: 'packet' }, h('code', {}, parts(walk.packet))), h('p', { class: 'tools steps' }, back, next, where), card, h('ol', { class: 'hops' }, items));
  show.keys?.abort();
  show.keys = new AbortController();
  addEventListener('keydown', (event) => stepKey(event, { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }, go),
    { signal: AbortSignal.any([signal, show.keys.signal]) });
  go(0);
  way.scrollIntoView({ block: 'nearest' });
}

function stepKey(event, places, go) {
  if (!(event.key in places) || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
  event.preventDefault();
  go(places[event.key]);
}

function light(all, edges, at, walk) {
  const end = at === all.length - 1 ? (walk.verdict.reason ? 'drop' : walk.verdict.packetIn && !walk.verdict.outputs ? 'agent' : 'out') : null;
  lit({ tables: all.slice(0, at + 1).map((hop) => hop.id), edges: edges.filter((e) => e.at <= at).map((e) => e.key), focus: all[at].id, end });
}

// turn is what happened in one table.
function turn(hop) {
  const out = [h('h3', {}, hop.looked ? '' : 'back in ', tableLink(hop.table), hop.depth > 1 ? h('span', { class: 'count' }, `asked from another table, depth ${hop.depth}`) : '')];
  if (hop.looked && !hop.entry) out.push(h('p', { class: 'bad' }, 'No entry matches.'));
  if (hop.entry) {
    out.push(h('p', {}, h('code', { class: 'dump' }, h('span', { class: 'priority' }, `priority=${hop.entry.priority}`), hop.entry.match && parts(`,${hop.entry.match}`))));
    if (hop.entry.objects?.length) out.push(h('ul', { class: 'origins' }, hop.entry.objects.map((o) => h('li', {}, origin(o)))));
  }
  if (hop.steps.length > 0) out.push(h('ol', { class: 'happened' }, hop.steps.map((s) => h('li', { class: s.kind }, happened(s)))));
  return out;
}

// happened is one step in words.
function happened(step) {
  switch (step.kind) {
    case 'action':
      return [h('code', {}, parts(step.action)), (step.changes ?? []).map(changed)];
    case 'ct':
      return ['connection tracker: ', h('strong', {}, step.ct.state), ` in zone ${step.ct.zone}`, step.ct.mark ? `, mark 0x${step.ct.mark.toString(16)}` : '', step.ct.commit ? ', committed' : '',
        (step.ct.nat ?? []).map((n) => changed({ field: n.end, before: n.before, after: n.after }))];
    case 'bucket':
      return [`group ${step.bucket.group} chose bucket ${step.bucket.bucket} of ${step.bucket.of}`, step.bucket.object && [', for ', origin(step.bucket.object)]];
    case 'learn':
      return ['learns ', h('code', {}, `table=…, priority=${step.entry?.priority},${step.entry?.match} actions=${step.entry?.actions}`)];
    case 'output':
      return [step.lost ? 'would have left by ' : 'leaves by ', h('strong', {}, step.port.name || String(step.port.ofPort)), step.port.pod ? `, pod ${step.port.pod}` : '', step.tunnel ? `, in a tunnel to ${step.tunnel.dst || 'where the entry says'}` : ''];
    case 'drop':
      return [h('strong', { class: 'bad' }, 'dropped'), `: ${step.sentence || step.reason}`];
    case 'packet-in':
      return ['goes to the agent'];
    case 'wait':
      return ['waits for the rest of its datagram'];
    default:
      return [step.kind];
  }
}

const changed = (c) => h('div', { class: 'change' }, `${c.field}: `, h('del', {}, c.before || '0'), ' → ', h('ins', {}, c.after || '0'));

const verdict = (walk) => h('p', { class: walk.verdict.reason ? 'verdict bad' : 'verdict' }, walk.verdict.text);
