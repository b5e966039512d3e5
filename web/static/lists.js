// What is lost, what is connected, and what the last benchmark drew.

import { counted, fault, h, number, perSecond, seconds, short, tableLink } from './dom.js';
import { dumped, marked, origin } from './table.js';
import { get } from './api.js';
import { now } from './live.js';

const period = 2000;

// again calls a function now and then until the view ends; the first call's error
// is the caller's.
async function again(load, signal) {
  await load();
  if (signal.aborted) return;
  const timer = setInterval(() => load().catch(() => {}), period); // a lost connection is told above
  signal.addEventListener('abort', () => clearInterval(timer));
}

/** grid is a table of rows, each a list of cells; on a narrow screen each cell
 *  says its column. */
export const grid = (label, columns, rows) => h('table', { class: 'grid', 'aria-label': label },
  h('thead', {}, h('tr', {}, columns.map((c) => h('th', { scope: 'col' }, c)))),
  h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((c, i) => h('td', { 'data-column': columns[i] }, c))))));

/** lastDrops is how many single packets are shown. */
const lastDrops = 20;

export async function showDrops(panel, _, signal) {
  const body = h('div', {}), last = h('ol', { class: 'entries plain' });
  panel.append(h('h2', {}, 'Drops'), h('p', { class: 'about' }, 'Packets that were lost, by the table where their walk ended and the reason.'), body,
    h('h3', {}, 'The last ones'), last);
  let before = null;
  await again(async () => {
    const at = performance.now();
    const [drops, { packets }] = await Promise.all([get('/drops', {}, signal), get('/drops/last', { n: lastDrops }, signal)]);
    last.replaceChildren(...alike(packets.toReversed()).map(lostPackets));
    const rate = (d) => {
      const was = before?.drops.find((b) => b.table === d.table && b.reason === d.reason);
      return before ? Math.max(0, d.packets - (was?.packets ?? 0)) / ((at - before.at) / 1000) : null;
    };
    const rows = drops.toSorted((a, b) => (rate(b) ?? 0) - (rate(a) ?? 0) || b.packets - a.packets);
    body.replaceChildren(rows.length === 0 ? h('p', { class: 'empty' }, 'Nothing was lost so far. When a packet is, it is here within two seconds; a packet that you think is lost can be tried under ', h('a', { href: '#/walk' }, 'Walk'), '.') : grid('Drops', ['packets', 'now', 'table', 'reason', 'meaning'],
      rows.map((d) => [number(d.packets), h('span', { class: rate(d) > 0 ? 'bad' : '' }, perSecond(rate(d))), tableLink(d.table), d.reason, d.meaning])));
    before = { at, drops };
  }, signal);
}

// alike groups packets that followed one another and were lost in the same way.
function alike(packets) {
  const groups = [];
  const of = (p) => JSON.stringify([p.packet, p.port, p.length, p.reason, p.table, p.entry]);
  for (const p of packets) {
    if (groups.length > 0 && of(groups.at(-1)[0]) === of(p)) groups.at(-1).push(p);
    else groups.push([p]);
  }
  return groups;
}

// lostPackets are who lost what, and by which entry: the newest of those alike.
const lostPackets = ([p, ...more]) => h('li', {},
  h('strong', {}, `${new Date(p.time).toLocaleTimeString()} ${p.packet || 'a packet that nobody read'}`), more.length > 0 && h('span', { class: 'count' }, `and ${number(more.length)} alike before`),
  h('span', { class: 'past' }, `${p.leaving ? 'to' : 'from'} ${p.port.pod || p.port.name || `port ${p.port.ofPort}`}${p.length > 0 ? `, ${p.length} bytes` : ''}`),
  h('div', {}, h('span', { class: 'bad' }, p.reason), p.table && [' in ', tableLink(p.table)], `: ${p.meaning}`),
  p.entry && h('div', {}, dumped(p.entry), marked(p.entry.marks)),
  p.entry?.objects?.length > 0 && h('ul', { class: 'origins' }, p.entry.objects.map((o) => h('li', {}, origin(o)))));

/** most is how many connections are asked for. */
const most = 200;
const protocols = { 1: 'icmp', 6: 'tcp', 17: 'udp', 58: 'icmpv6', 132: 'sctp' };

export async function showConnections(panel, _, signal) {
  const address = h('input', { type: 'search', placeholder: 'address or range', 'aria-label': 'Address' });
  const port = h('input', { type: 'search', placeholder: 'port', 'aria-label': 'Port', inputmode: 'numeric', size: 6 });
  const body = h('div', {}), about = h('p', { class: 'about' });
  panel.append(h('h2', {}, 'Connections'), h('form', { class: 'tools', onsubmit: (event) => { event.preventDefault(); load().catch((e) => body.replaceChildren(fault(e))); } },
    address, port, h('button', {}, 'Show')), about, body);
  const load = async () => {
    const params = { limit: most };
    if (address.value) params.address = address.value.trim();
    if (port.value) params.port = port.value.trim();
    const all = await get('/conntrack', params, signal);
    const use = now.counters?.connections;
    about.textContent = `${use ? `${counted(use.now, 'connection')}; there is room for ${short(use.max)}. ` : ''}${all.length === most ? `The first ${most} of those asked for:` : `${number(all.length)} shown:`}`;
    body.replaceChildren(all.length === 0 ? h('p', { class: 'empty' }, address.value || port.value ? 'No connection has such an end. Fewer words in the fields above show more.'
      : 'No connection is tracked now. One is here when its first packet has passed.') : grid('Connections', ['protocol', 'from', 'to', 'answers come from', 'state', 'zone', 'mark', 'ends in'], all.map((c) => [
      protocols[c.proto] ?? c.proto, end(c.orig.src, c.orig.srcPort), end(c.orig.dst, c.orig.dstPort), end(c.reply.src, c.reply.srcPort),
      c.state ?? '–', c.zone, c.mark ? [`0x${c.mark.toString(16)}`, marked(c.marks)] : '–', seconds(c.timeoutNS)])));
  };
  await again(load, signal);
}

const end = (address, port) => (port ? (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`) : address);

export async function showPlots(panel, _, signal) {
  panel.append(h('h2', {}, 'Benchmark'));
  const answer = await fetch('/plots', { signal });
  if (!answer.ok) {
    panel.append(h('p', {}, 'There is no benchmark where the page is told to look. ', h('code', {}, 'antrail bench --save DIR'), ' puts one there.'), fault(new Error((await answer.text()).trim())));
    return;
  }
  const { began, names } = await answer.json();
  if (names.length === 0) {
    panel.append(h('p', { class: 'empty' }, 'There is none to show. ', h('code', {}, 'antrail bench --save DIR'), ' draws one; the setting ', h('code', {}, 'page.plots'), ', or ', h('code', {}, 'antrail page --serve … --plots DIR'), ', says where it lies.'));
    return;
  }
  panel.append(h('p', { class: 'about' }, `Begun ${new Date(began).toLocaleString()}.`),
    h('div', { class: 'plots' }, names.map((n) => h('figure', {}, h('img', { src: `/plots/${encodeURIComponent(n)}`, alt: `Plot of the profile ${n}` }), h('figcaption', {}, n)))));
}
