// The map. The picture is package diagram's; this puts the rates of now on it,
// and lights what a view is about.

import { counted, h, number, perSecond, s, short } from './dom.js';
import { edgeKey, onCounters } from './live.js';
import { asking } from './node.js';

const place = document.getElementById('map');
const figures = document.getElementById('figures');
let generation = null;
let picture = null;
let light = null; // what is lit: kept while the picture is drawn anew

/** mostScale is how many times its own size the map may be. */
const mostScale = 1.4;

// Sizes of package diagram, which a busy drop's mark needs.
const boxWidth = 128, boxHeight = 44;

/** begin keeps the map as the switch is. */
export function begin() {
  onCounters(async (now) => {
    if (generation !== now.counters.generation) {
      generation = now.counters.generation;
      await draw(now.counters);
    }
    update(now);
  });
}

// draw fetches the picture. It comes as a document of its own, in which nothing
// runs, and has no styles, which this page's policy would refuse.
function draw(counters) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open('GET', asking('/map.svg'));
    request.responseType = 'document';
    request.overrideMimeType('image/svg+xml');
    request.addEventListener('load', () => {
      const root = request.responseXML?.documentElement;
      if (root?.localName === 'svg') show(root, counters);
      else generation = null; // again with the next counters
      done();
    });
    request.addEventListener('error', () => { generation = null; done(); });
    request.send();
  });
}

function show(root, counters) {
  picture = document.importNode(root, true);
  picture.removeAttribute('role'); // its tables are links
  const { width, height } = picture.viewBox.baseVal; // a small map fills the window no more than a large one
  picture.style.maxWidth = `${width * mostScale}px`;
  picture.style.maxHeight = `${height * mostScale}px`;
  for (const t of counters.pipeline.tables) {
    const box = picture.querySelector(`#table-${t.id}`);
    box.setAttribute('tabindex', '0');
    box.setAttribute('role', 'link');
    box.setAttribute('aria-label', `Table ${t.name}`);
    const open = () => { location.hash = `#/table/${encodeURIComponent(t.name)}`; };
    box.addEventListener('click', open);
    box.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      open();
    });
  }
  place.replaceChildren(picture);
  lighten();
}

function update({ counters, rates }) {
  tell(counters, rates);
  if (!picture) return;
  for (const t of counters.pipeline.tables) {
    const box = picture.querySelector(`#table-${t.id}`);
    if (!box) continue;
    note(box, t, rates?.tables.get(t.id));
    drops(t, box, rates?.drops.get(t.id) ?? 0);
  }
  if (!rates) return;
  const most = Math.max(1, ...rates.edges.values());
  for (const e of counters.pipeline.edges) way(e, rates.edges.get(edgeKey(e)), most);
}

// note says what a table has, and what it takes now, which is what a glance is for.
function note(box, t, rate) {
  const line = [...box.querySelectorAll('.note')].at(-1);
  line.replaceChildren(`${t.id} · ${counted(t.entries, 'entry', 'entries')}`, ...(rate == null ? [] : [' · ', s('tspan', { class: 'rate' }, perSecond(rate))]));
  box.classList.toggle('taken', rate > 0);
}

// way makes a busy edge thick: four times the packets are twice the thickness.
function way(e, rate, most) {
  const group = picture.querySelector(`#edge-${edgeKey(e)}`);
  if (!group) return;
  if (rate > 0 && !group.classList.contains('busy')) picture.querySelector('[id^="table-"]').before(group); // above idle ones
  group.classList.toggle('busy', rate > 0);
  group.classList.toggle('idle', rate === 0);
  group.dataset.rate = rate.toFixed(1);
  const width = rate > 0 ? 1.6 + 4.4 * Math.sqrt(rate / most) : 1.3;
  group.querySelector('.line').style.strokeWidth = width.toFixed(1);
  group.querySelector('.head').style.strokeWidth = Math.max(0, width * 1.2 - 3).toFixed(1);
  const title = group.querySelector('title');
  title.dataset.text ??= title.textContent;
  title.textContent = `${title.dataset.text}, ${perSecond(rate)} packets`;
}

// drops shows what a table loses now. One that no entry of it asks for has no mark
// on the picture before.
function drops(t, box, rate) {
  let mark = picture.querySelector(`#drop-${t.id}`);
  if (!mark && rate === 0) return;
  if (!mark) {
    mark = s('g', { id: `drop-${t.id}`, class: 'drop made' }, s('title', {}, 'lost without an entry'), s('rect', { class: 'pill', height: 12, rx: 6 }), s('text', { class: 'mark' }));
    box.after(mark);
  }
  if (rate === 0 && mark.classList.contains('made')) {
    mark.remove();
    return;
  }
  const rect = box.querySelector('.box');
  const busy = rate > 0;
  const x = Number(rect.getAttribute('x')) + (busy ? boxWidth / 2 + 8 : boxWidth - 30), y = Number(rect.getAttribute('y')) + boxHeight + 3;
  const width = busy ? boxWidth / 2 - 10 : 28;
  mark.classList.toggle('busy', busy);
  const pill = mark.querySelector('.pill'), text = mark.querySelector('text');
  for (const [name, value] of Object.entries({ x, y, width })) pill.setAttribute(name, value);
  text.setAttribute('x', x + width / 2);
  text.setAttribute('y', y + 9);
  text.textContent = busy ? `drop ${perSecond(rate)}` : 'drop';
}

const sum = (map) => [...map.values()].reduce((a, b) => a + b, 0);

// tell writes the figures above the map.
function tell(counters, rates) {
  const ports = rates ? [...rates.ports.values()] : null;
  const in_ = ports && ports.reduce((a, p) => a + p.rx, 0), out = ports && ports.reduce((a, p) => a + p.tx, 0);
  const lost = rates && sum(rates.drops);
  const c = counters.connections;
  const all = [
    ['received', perSecond(in_), ''], ['sent', perSecond(out), ''], ['dropped', perSecond(lost), lost > 0 ? 'bad' : ''],
    ['connections', `${short(c.now)} of ${short(c.max)}`, ''], ['entries', number(counters.pipeline.tables.reduce((a, t) => a + t.entries, 0)), ''],
    ['ports up', `${(counters.ports ?? []).filter((p) => p.up).length} of ${(counters.ports ?? []).length}`, ''],
  ];
  figures.replaceChildren(...all.map(([name, value, state]) => h('div', { class: state, 'data-figure': name }, h('dt', {}, name), h('dd', {}, value))));
}

/** lit lights a walk or some tables: {tables: ids that are on, edges: keys that
 *  are on, focus: an id, end: "drop" or "out" at the focus}; null lights all. */
export function lit(what) {
  light = what;
  lighten();
}

function lighten() {
  if (!picture) return;
  const on = new Set(light?.tables), edges = new Set(light?.edges);
  for (const g of picture.querySelectorAll('[id^="table-"], [id^="edge-"], [id^="drop-"], [id^="out-"], [id^="agent-"]')) {
    const [kind, ...rest] = g.id.split('-');
    const id = Number(rest[0]);
    let lights = on.has(id);
    if (kind === 'edge') lights = edges.has(rest.join('-'));
    else if (kind !== 'table') lights = id === light?.focus && kind === light?.end;
    g.classList.toggle('on', Boolean(light) && lights);
    g.classList.toggle('off', Boolean(light) && !lights && !(kind === 'table' && id === light.focus));
    g.classList.toggle('focus', kind === 'table' && id === light?.focus);
  }
  if (light?.focus != null) reveal(light.focus);
}

// reveal brings a table into the part of the map that is seen.
function reveal(id) {
  const box = picture.querySelector(`#table-${id}`)?.getBoundingClientRect();
  if (!box) return;
  const seen = place.getBoundingClientRect();
  const smooth = matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth';
  place.scrollTo({
    left: place.scrollLeft + box.left + box.width / 2 - seen.left - seen.width / 2,
    top: place.scrollTop + box.top + box.height / 2 - seen.top - seen.height / 2, behavior: smooth,
  });
}

/** tableID is the number of a table by its name; undefined when there is none. */
export const tableID = (counters, name) => counters?.pipeline.tables.find((t) => t.name === name)?.id;

/** hasEdge says whether the map has an edge. */
export const hasEdge = (counters, from, to) => counters.pipeline.edges.some((e) => e.from === from && e.to === to);
