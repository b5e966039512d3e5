// The page: which view stands behind which address, and the keys.
//
//   dom.js          elements from names and texts
//   api.js          questions to the switch
//   node.js         which Node is looked at
//   live.js         counters as they change, and rates
//   map.js          the map
//   table.js        a table: its entries
//   object.js       an object: its fields, its entries; lists of objects
//   walk.js         a packet's way over the map
//   turn.js         what happened in one table
//   lists.js        drops, connections, benchmark
//   nodes.js        Nodes and pods
//
// A view is a function that gets the panel, the rest of the address and a signal
// that ends with the view. It says whether the map stands beside it.

import { fault } from './dom.js';
import { listen } from './live.js';
import { choose } from './node.js';
import { begin, lit } from './map.js';
import { showTable } from './table.js';
import { showObject, showObjects } from './object.js';
import { showWalk } from './walk.js';
import { showConnections, showDrops, showPlots } from './lists.js';
import { showNodes } from './nodes.js';

const views = {
  table: { beside: true, show: showTable, title: (rest) => rest },
  object: { beside: true, show: showObject, title: (rest) => rest },
  walk: { beside: true, show: showWalk, title: () => 'Walk' },
  drops: { show: showDrops, title: () => 'Drops' },
  connections: { show: showConnections, title: () => 'Connections' },
  objects: { show: showObjects, title: () => 'Objects' },
  nodes: { show: showNodes, title: () => 'Nodes' },
  plots: { show: showPlots, title: () => 'Benchmark' },
};

const panel = document.getElementById('panel');
const help = document.getElementById('help');
let leaving = new AbortController();

async function route() {
  leaving.abort();
  leaving = new AbortController();
  const signal = leaving.signal;
  const [, name, rest = ''] = location.hash.match(/^#\/([^/]*)\/?(.*)$/) ?? [null, ''];
  const view = views[name];
  document.body.dataset.view = !view ? 'map' : view.beside ? 'split' : 'page';
  for (const a of document.querySelectorAll('nav a')) {
    const here = a.getAttribute('href') === `#/${view ? name : ''}`;
    if (here) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  panel.replaceChildren();
  panel.scrollTop = 0;
  lit(null);
  let word = '';
  try {
    word = decodeURIComponent(rest);
    document.title = view ? `${view.title(word)} – antrail` : 'antrail';
    await view?.show(panel, word, signal);
  } catch (error) {
    if (!signal.aborted) panel.append(fault(error));
  }
}

const typing = (target) => target.matches?.('input, textarea, select');

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === 'Escape') {
    if (typing(event.target)) event.target.blur();
    else if (document.body.dataset.view !== 'map') location.hash = '#/';
    return;
  }
  if (typing(event.target)) return;
  const link = /^[a-z]$/.test(event.key) && document.querySelector(`nav a[data-key="${event.key}"]`);
  if (link) location.hash = link.getAttribute('href');
  else if (event.key === '?') help.showModal();
  else if (event.key === '/') panel.querySelector('input, textarea')?.focus();
  else return;
  event.preventDefault();
}

addEventListener('hashchange', route);
addEventListener('keydown', key);
document.getElementById('help-button').addEventListener('click', () => help.showModal());
document.querySelector('.skip').addEventListener('click', (event) => { // an address of its own would leave the view
  event.preventDefault();
  panel.focus();
});
choose(document.getElementById('here'));
begin();
listen();
route();
