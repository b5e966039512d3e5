// Packets to begin with, made from the entries of Antrea's pipeline that know pods
// and Services. Another pipeline has none.

import { get } from './api.js';

/** most is how many there are at most. */
const most = 24;

/** examples are {title, flow}: the first packet from each pod to other pods and to
 *  Services. */
export async function examples(signal) {
  const [guards, services, forward] = await Promise.all(['SpoofGuard', 'ServiceLB', 'L3Forwarding'].map((table) => get('/flows', { table, limit: 500 }, signal)));
  const pods = guards.map(pod).filter(Boolean);
  const gateway = forward.map((f) => f.actions.match(/set_field:([0-9a-f:]{17})->eth_src/)?.[1]).find(Boolean);
  const all = [];
  for (const from of pods) {
    for (const to of services.map(service).filter(Boolean).slice(0, 4)) {
      if (gateway) all.push(packet(from, { ...to, mac: gateway }));
    }
    for (const to of pods) if (to !== from) all.push(packet(from, { proto: 'tcp', ip: to.ip, mac: to.mac, port: 80 }));
  }
  return all.slice(0, most);
}

// pod is whom an entry of SpoofGuard lets in with an IPv4 address.
function pod(f) {
  const m = f.match.match(/^ip,in_port=("[^"]+"|[^,]+),dl_src=([0-9a-f:]{17}),nw_src=([0-9.]+)$/);
  return m && { port: m[1], mac: m[2], ip: m[3] };
}

// service is what an entry of ServiceLB balances.
function service(f) {
  const m = f.match.match(/^(tcp|udp),.*\bnw_dst=([0-9.]+),tp_dst=(\d+)$/);
  return m && { proto: m[1], ip: m[2], port: m[3] };
}

const packet = (from, to) => ({
  title: `${from.port.replaceAll('"', '')} to ${to.ip}:${to.port}`,
  flow: `in_port=${from.port},${to.proto},dl_src=${from.mac},dl_dst=${to.mac},nw_src=${from.ip},nw_dst=${to.ip},tp_dst=${to.port}`,
});
