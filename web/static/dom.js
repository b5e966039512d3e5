// Elements, made of names and texts. There is no other way on this page from a
// text of the switch to the screen: a text becomes a text node, whatever is in it.

import { viewOf } from './node.js';

/** h makes an element. Props are attributes, or on… listeners; children are
 *  nodes or texts, in any depth of lists; null and false are left out. */
export function h(name, props, ...children) {
  return fill(document.createElement(name), props, children);
}

/** s makes an element of a picture. */
export function s(name, props, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((c) => c != null && c !== false));
  return element;
}

/** number writes 1234567 as 1,234,567. */
export const number = (n) => Math.round(n).toLocaleString('en');

/** short writes 0, 7, 950, 1.2k, 34k, 5.6M; parts of one as 0.3. */
export function short(v) {
  if (v > 0 && v < 0.95) return v.toFixed(1);
  let suffix = '';
  for (const next of ['k', 'M', 'G', 'T']) {
    if (v < 999.5) break;
    v /= 1000;
    suffix = next;
  }
  return (suffix && v < 9.95 ? v.toFixed(1) : v.toFixed(0)) + suffix;
}

/** perSecond writes a rate; null is one that is not known yet. */
export const perSecond = (v) => (v == null ? '–' : `${short(v)}/s`);

/** bytes writes 1500 as 1.5 kB. */
export const bytes = (n) => `${short(n).replace(/([kMGT]?)$/, ' $1')}B`;

/** counted writes 1 entry, 2 entries. */
export const counted = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** seconds writes nanoseconds as 3 s, 5 min, 2 h or 4 d. */
export function seconds(ns) {
  let v = ns / 1e9;
  for (const [size, unit] of [[60, 's'], [60, 'min'], [24, 'h']]) {
    if (v < size * 2) return `${v.toFixed(0)} ${unit}`;
    v /= size;
  }
  return `${v.toFixed(0)} d`;
}

/** objectLink goes from an object's name, Kind/namespace/name, to its view, at a
 *  Node. */
export const objectLink = (name, node = undefined) => h('a', { href: viewOf(`#/object/${encodeURIComponent(name)}`, node), class: 'object' }, name);

/** tableLink goes from a table's name to its entries, at a Node. */
export const tableLink = (name, node = undefined) => h('a', { href: viewOf(`#/table/${encodeURIComponent(name)}`, node), class: 'table-link' }, name);

/** fault is a sentence about what did not work. */
export const fault = (error) => h('p', { class: 'fault', role: 'alert' }, error.message ?? String(error));
