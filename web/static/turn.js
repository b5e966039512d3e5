// What happened to a packet in one table, in words.

import { h, tableLink } from './dom.js';
import { here, nodeOf } from './node.js';
import { marked, origin, parts } from './table.js';

/** hops groups a walk's steps by turns of tables. A table that asked others and
 *  goes on has another turn, without an entry. */
export function hops(walk) {
  const all = [];
  for (const step of walk.steps ?? []) {
    const last = all.at(-1);
    if (step.kind === 'entry') all.push({ walk, table: step.table, id: step.tableID, depth: step.depth, entry: step.entry ?? null, looked: true, steps: [] });
    else if (!last || last.id !== step.tableID || last.depth !== step.depth) all.push({ walk, table: step.table, id: step.tableID, depth: step.depth, looked: false, steps: [step] });
    else last.steps.push(step);
  }
  return all;
}

/** turn is what happened in one table. */
export function turn(hop) {
  const node = nodeOf(hop.walk);
  const out = [h('h3', {}, hop.looked ? '' : 'back in ', tableLink(hop.table, node), hop.depth > 1 ? h('span', { class: 'count' }, `asked from another table, depth ${hop.depth}`) : '')];
  if (node !== here) out.push(h('p', { class: 'about' }, `On ${node}. What the map counts is ${here}'s.`));
  if (hop.looked && !hop.entry) out.push(h('p', { class: 'bad' }, 'No entry matches.'));
  if (hop.entry) {
    out.push(h('p', {}, h('code', { class: 'dump' }, h('span', { class: 'priority' }, `priority=${hop.entry.priority}`), hop.entry.match && parts(`,${hop.entry.match}`)), marked(hop.entry.marks)));
    if (hop.entry.objects?.length) out.push(h('ul', { class: 'origins' }, hop.entry.objects.map((o) => h('li', {}, origin(o, node)))));
  }
  if (hop.steps.length > 0) out.push(h('ol', { class: 'happened' }, hop.steps.map((s) => h('li', { class: s.kind }, happened(s, node)))));
  return out;
}

// happened is one step in words.
function happened(step, node) {
  switch (step.kind) {
    case 'action':
      return [h('code', {}, parts(step.action)), (step.changes ?? []).map(changed)];
    case 'ct':
      return ['connection tracker: ', h('strong', {}, step.ct.state), ` in zone ${step.ct.zone}`, step.ct.mark ? `, mark 0x${step.ct.mark.toString(16)}` : '', step.ct.commit ? ', committed' : '', marked(step.ct.marks),
        (step.ct.nat ?? []).map((n) => changed({ field: n.end, before: n.before, after: n.after }))];
    case 'bucket':
      return [`group ${step.bucket.group} chose bucket ${step.bucket.bucket} of ${step.bucket.of}`, step.bucket.object && [', for ', origin(step.bucket.object, node)]];
    case 'learn':
      return ['learns ', h('code', {}, `table=…, priority=${step.entry?.priority},${step.entry?.match} actions=${step.entry?.actions}`)];
    case 'output':
      return [step.dropped ? 'would have left by ' : 'leaves by ', h('strong', {}, step.port.name || String(step.port.ofPort)), step.port.pod ? `, pod ${step.port.pod}` : '', step.tunnel ? `, in a tunnel to ${step.tunnel.dst || 'where the entry says'}` : ''];
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

const changed = (c) => h('div', { class: 'change' }, `${c.field}: `, h('del', {}, c.before || '0'), ' → ', h('ins', {}, c.after || '0'), marked(c.marks));

/** verdict is how a walk ended, and where its packet is when that is another Node
 *  of which nothing is known here. */
export function verdict(walk, next, nodes) {
  const bad = walk.verdict.reason ? 'verdict bad' : 'verdict';
  const tunnel = (walk.steps ?? []).find((s) => s.kind === 'output' && s.tunnel && !s.dropped)?.tunnel;
  const out = [h('p', { class: bad }, walk.verdict.text)];
  if (next) out.push(h('p', { class: 'about' }, `It goes on at ${next.node}.`));
  else if (tunnel) out.push(elsewhere('It goes on at ', tunnel.dst, nodes));
  return out;
}

/** elsewhere says at which Node the rest of a way is to be seen. */
export function elsewhere(says, address, nodes) {
  const node = nodes.find((n) => n.addresses.includes(address))?.name;
  return h('p', { class: 'elsewhere about' }, says, h('strong', {}, node ?? (address || 'another Node')), node && ` (${address})`,
    '. This is the part of ', h('strong', {}, here || 'this Node'), '; the other Node has a page of its own, and ', h('code', {}, 'antrail page --serve'), ' with --socket or --node for both shows live packets on their whole way.');
}
