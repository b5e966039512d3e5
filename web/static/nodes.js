// Nodes and their pods, and how they hang together: the underlay above, the Nodes
// below it, pods in their Node. Of this Node, with what its ports do now.

import { counted, h, objectLink, perSecond } from './dom.js';
import { get } from './api.js';
import { onCounters } from './live.js';
import { grid } from './lists.js';
import { here, nodes as shown, viewOf } from './node.js';

/** most is how many pods of a Node are shown. */
const most = 60;

export async function showNodes(panel, _, signal) {
  const picture = h('div', { class: 'cluster' }), ports = h('div', {});
  panel.append(h('h2', {}, 'Nodes'), picture, h('h3', {}, 'Ports of this Node'), ports);
  const [nodes, pods] = await Promise.all([get('/nodes', {}, signal), get('/pods', {}, signal)]).catch((error) => {
    if (signal.aborted) throw error;
    picture.append(h('p', { class: 'empty' }, `${error.message}. Its ports are below.`)); // flow files know no Nodes
    return [[], []];
  });
  const portOf = new Map(pods.map((p) => [p.object.replace(/^Pod\//, ''), p]));
  const rates = new Map(); // elements by port
  if (nodes.length > 0) {
    picture.append(h('p', { class: 'underlay' }, 'underlay'), h('div', { class: 'nodes' }, nodes.map((n) => node(n, portOf, rates))));
  }
  const seen = new Map([...portOf].map(([name, p]) => [p.ofPort, name]));
  signal.addEventListener('abort', onCounters((now) => {
    for (const [no, element] of rates) element.textContent = `in ${perSecond(now.rates?.ports.get(no)?.rx)}, out ${perSecond(now.rates?.ports.get(no)?.tx)}`;
    ports.replaceChildren(grid('Ports', ['port', 'pod', 'from it', 'to it', 'driver', 'link', 'lost'], (now.counters.ports ?? []).map((p) => {
      const r = now.rates?.ports.get(p.ofPort);
      const lost = p.rx.dropped + p.tx.dropped + p.rx.errors + p.tx.errors;
      return [`${p.ofPort} ${p.name}`, seen.get(p.ofPort) ?? '–', perSecond(r?.rx), perSecond(r?.tx), p.driver, `${p.link}, ${p.missing ? 'gone' : p.up ? 'up' : 'down'}`,
        h('span', { class: lost > 0 ? 'bad' : '' }, String(lost))];
    })));
  }));
}

function node(n, portOf, rates) {
  const pods = n.pods.slice(0, most).map((p) => {
    const mine = n.here && portOf.get(p.name);
    const now = h('span', { class: 'past' });
    if (mine?.ofPort) rates.set(mine.ofPort, now);
    return h('li', {}, n.here ? objectLink(`Pod/${p.name}`) : h('span', {}, p.name), h('span', { class: 'past' }, p.ips.join(', ')), now);
  });
  return h('article', { class: n.here ? 'node here' : 'node' }, h('h3', {}, shown.includes(n.name) && n.name !== here ? h('a', { href: viewOf('#/nodes', n.name) }, n.name) : n.name, n.here && h('span', { class: 'count' }, 'this Node'), n.silent && h('span', { class: 'count' }, 'does not answer')),
    h('p', { class: 'about' }, n.addresses.join(', '), h('br'), `pods in ${n.podCIDRs.join(', ')}`), h('ul', {}, pods),
    n.pods.length > most && h('p', { class: 'about' }, `and ${counted(n.pods.length - most, 'more pod')}`));
}
