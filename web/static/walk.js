// A packet's way over the map, table by table: a packet that somebody describes,
// or one that passes now.

import { fault, h } from './dom.js';
import { get, lines, post } from './api.js';
import { now } from './live.js';
import { hasEdge, lit } from './map.js';
import { parts } from './table.js';
import { elsewhere, hops, turn, verdict } from './turn.js';
import { nodes } from './node.js';
import { examples } from './examples.js';

/** How many packets a watch catches, and how long it lasts. */
const mostCaught = 20, watchFor = 30e9;

// turns are the hops of a way, with the edge of the map by which each table was
// reached: from the last one on that Node that has an edge to it.
function turns(walks) {
  return walks.flatMap((walk) => {
    const all = hops(walk);
    all.forEach((hop, i) => {
      for (let k = i - 1; hop.looked && !hop.edge && k >= 0; k--) if (hasEdge(now.counters, all[k].id, hop.id)) hop.edge = `${all[k].id}-${hop.id}`;
    });
    return all;
  });
}

export async function showWalk(panel, _, signal) {
  const flow = h('textarea', { rows: 4, 'aria-label': 'Packet in flow syntax', spellcheck: 'false', placeholder: 'in_port="client-a",tcp,nw_src=…,nw_dst=…,tp_dst=80' });
  const choose = h('select', { 'aria-label': 'Examples', hidden: true, onchange: () => { flow.value = choose.value; } });
  const way = h('div', { id: 'way' });
  const walk = async (event) => {
    event?.preventDefault();
    try {
      show(way, [(await post('/trace', { flow: flow.value.trim() }, signal)).walk], signal);
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
      says.textContent = stop.signal.aborted || signal.aborted ? 'stopped' : error.message.startsWith('404') ? 'Nothing passes here: this page is of files. Type a packet above.' : error.message;
    }
    stop = null;
    button.textContent = 'Watch';
  };
  const view = signal; // a way stays when the watch ends
  const take = async (request, signal) => {
    for await (const { armed, walk, way: walks, counts, fault } of lines('/trace/live', request, signal)) {
      if (fault) throw new Error(fault);
      if (armed) says.textContent = nodes.length > 1 ? `watching ${nodes.join(', ')}` : 'watching';
      if (walk ?? walks) list.append(h('li', {}, caught(walks ?? [walk], way, view)));
      if (counts) says.textContent = `${nodes.length > 1 ? list.children.length : counts.matched ?? 0} passed`; // each Node counts its own
    }
    says.textContent = list.children.length > 0 ? `${says.textContent}, done` : `nothing passed in ${watchFor / 1e9} s that fits`;
  };
  return h('details', {}, h('summary', {}, 'or pick one of those that pass now'),
    h('form', { id: 'live', class: 'tools', onsubmit: watch }, filter, h('label', {}, dropped, ' lost ones only'), button, says), list);
}

function caught(walks, way, signal) {
  const last = walks.at(-1);
  const on = [...new Set(walks.map((w) => w.node))].filter(Boolean);
  return h('button', { type: 'button', class: last.verdict.reason ? 'bad' : '', onclick: () => show(way, walks, signal) },
    `${new Date(walks[0].time).toLocaleTimeString()} ${brief(walks[0].packet)}: ${on.length > 1 ? `${on.join(' → ')}: ` : ''}${last.verdict.text}`);
}

// brief is a packet's flow without what says little at a glance.
const brief = (packet) => packet.split(',').filter((p) => !/^(dl_|eth_|reg|nw_ttl|metadata|nw_tos|nw_ecn)/.test(p)).join(',');

// show begins a way at its first table.
function show(way, walks, signal) {
  const all = turns(walks);
  if (all.length === 0) {
    way.replaceChildren(h('p', {}, walks[0].verdict.text));
    return;
  }
  let cluster = []; // the Nodes, once they are known
  const where = h('span', { class: 'where', role: 'status' }), card = h('article', { class: 'hop' });
  const items = all.map((hop, i) => h('li', {}, h('button', { type: 'button', onclick: () => go(i) }, hop.looked ? hop.table : `back in ${hop.table}`)));
  let at = 0;
  const go = (to) => {
    at = Math.max(0, Math.min(all.length - 1, to));
    const { walk } = all[at], last = all[at + 1]?.walk !== walk;
    where.textContent = `${at + 1} of ${all.length}${walks.length > 1 ? `, on ${walk.node}` : ''}`;
    back.disabled = at === 0;
    next.disabled = at === all.length - 1;
    items.forEach((item, i) => (i === at ? item.setAttribute('aria-current', 'step') : item.removeAttribute('aria-current')));
    card.replaceChildren(...turn(all[at]), ...(last ? verdict(walk, walks[walks.indexOf(walk) + 1], cluster) : []));
    light(all, at, last);
    const list = items[at].parentElement;
    if (list) list.scrollTop = items[at].offsetTop - list.offsetTop - list.clientHeight / 2;
  };
  const back = h('button', { type: 'button', onclick: () => go(at - 1) }, '← Back'), next = h('button', { type: 'button', class: 'first', onclick: () => go(at + 1) }, 'Next →');
  const from = h('div', {});
  const source = walks[0].tunnel?.src;
  const tell = () => { if (walks.length === 1 && source) from.replaceChildren(elsewhere('It came in a tunnel from ', source, cluster)); };
  way.replaceChildren(h('p', { class: 'packet' }, h('code', {}, parts(walks[0].packet))), from, h('p', { class: 'tools steps' }, back, next, where), card,
    h('ol', { class: 'hops' }, listed(walks, all, items)));
  show.keys?.abort();
  show.keys = new AbortController();
  addEventListener('keydown', (event) => stepKey(event, { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }, go),
    { signal: AbortSignal.any([signal, show.keys.signal]) });
  tell();
  go(0);
  if (walks.length === 1) get('/nodes', {}, signal).then((all) => { cluster = all; tell(); go(at); }).catch(() => {}); // flow files know no Nodes
  way.scrollIntoView({ block: 'nearest' });
}

// listed are the turns, those of each Node behind its name.
const listed = (walks, all, items) => walks.map((walk) => [
  walks.length > 1 && h('li', { class: 'on-node' }, walk.node),
  items.filter((_, i) => all[i].walk === walk)]);

function stepKey(event, places, go) {
  if (!(event.key in places) || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
  event.preventDefault();
  go(places[event.key]);
}

function light(all, at, last) {
  const { walk, id } = all[at];
  const so = all.slice(0, at + 1).filter((hop) => hop.walk === walk);
  const end = last ? (walk.verdict.reason ? 'drop' : walk.verdict.packetIn && !walk.verdict.outputs ? 'agent' : 'out') : null;
  lit({ tables: so.map((hop) => hop.id), edges: so.map((hop) => hop.edge).filter(Boolean), focus: id, end });
}
