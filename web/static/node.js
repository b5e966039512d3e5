// Which Node the page looks at: the one that its address names by ?node=, the first
// of those that are shown when it names none.

/** nodes are the names of those that are shown; one may have none. */
export const nodes = await fetch('/shown').then((answer) => answer.json()).catch(() => ['']);

const named = new URLSearchParams(location.search).get('node');

/** here is the Node's name. */
export const here = named || nodes[0];

/** nodeOf is the Node of a walk, as far as it is one that is shown. */
export const nodeOf = (walk) => (nodes.includes(walk.node) ? walk.node : here);

/** asking completes the address of a question with the Node that it is for. */
export const asking = (path) => (named ? `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams({ node: named })}` : path);

/** viewOf is the address of a view, of a Node that is shown. */
export const viewOf = (hash, node = here) => (node === here || !nodes.includes(node) ? hash : `/?${new URLSearchParams({ node })}${hash}`);

/** choose has the header say which Node this is, and offer the others. */
export function choose(place) {
  if (nodes.length < 2) {
    place.textContent = here;
    return;
  }
  const list = document.createElement('select');
  list.setAttribute('aria-label', 'Node');
  for (const name of nodes) list.append(new Option(name, name, false, name === here));
  list.addEventListener('change', () => { location.href = viewOf(location.hash || '#/', list.value); });
  place.replaceChildren(list);
}
