// Questions to the switch: the paths of the agent's socket, below /api.

import { asking } from './node.js';

/** get asks for a path's answer as values. */
export async function get(path, params = {}, signal = undefined) {
  const query = new URLSearchParams({ format: 'json', ...params });
  return values(await fetch(asking(`/api${path}?${query}`), { signal }));
}

/** post sends values, and returns the answer's. */
export async function post(path, body, signal) {
  return values(await send(`${path}?format=json`, body, signal));
}

const send = (path, body, signal) =>
  fetch(asking(`/api${path}`), { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal });

async function values(response) {
  await refused(response);
  return response.json();
}

async function refused(response) {
  if (response.ok) return;
  const text = (await response.text()).trim();
  throw new Error(text || `${response.status} ${response.statusText}`);
}

/** lines sends values, and yields the values of each line of the answer as it
 *  comes. */
export async function* lines(path, body, signal) {
  const response = await send(path, body, signal);
  await refused(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const all = (rest + value).split('\n');
    rest = all.pop();
    for (const line of all) if (line) yield JSON.parse(line);
  }
}
