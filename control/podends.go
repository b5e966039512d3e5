package control

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
)

// Places to watch the packets of a Pod.

// PodEnds is the place where packets from a Pod enter this Node's switch, and the addresses of packets
// to the Pod when they enter.
type PodEnds struct {
	Port uint32 // of a Pod of this Node; 0 for another Node's
	IPs  []netip.Addr
	// Services are the cluster, external and load balancer addresses of Services that have the Pod as
	// an endpoint.
	Services []netip.Addr
}

// PodEnds returns the ends of a Pod. It returns an error if there is no such Pod with an address.
func (r *Reconciler) PodEnds(n cluster.Name) (ends PodEnds, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return ends, errNoView
	}
	pod := r.view.Pods[cluster.Key{Kind: cluster.KindPod, Namespace: n.Namespace, Name: n.Name}]
	if pod == nil || len(pod.IPs) == 0 {
		return ends, r.view.noPod(n)
	}
	ends.IPs = pod.IPs
	r.seen.mu.RLock()
	ends.Port = r.seen.ports[n].OFPort
	r.seen.mu.RUnlock()
	for _, s := range r.view.EndpointSlices {
		service := r.view.Services[cluster.Key{Kind: cluster.KindService, Namespace: s.Service.Namespace, Name: s.Service.Name}]
		if service != nil && slices.ContainsFunc(s.Endpoints, func(e cluster.Endpoint) bool { return shareAddress(e.Addresses, pod.IPs) }) {
			ends.Services = slices.Concat(ends.Services, service.ClusterIPs, service.ExternalIPs, service.LoadBalancerIPs)
		}
	}
	slices.SortFunc(ends.Services, netip.Addr.Compare)
	ends.Services = slices.Compact(ends.Services)
	return ends, nil
}

// PodAddresses maps addresses to the Pods of the cluster. It leaves out addresses that several Pods
// share, as Pods in their Node's network do.
func (r *Reconciler) PodAddresses() map[netip.Addr]cluster.Name {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, shared := map[netip.Addr]cluster.Name{}, map[netip.Addr]bool{}
	if r.view == nil {
		return all
	}
	for key, pod := range r.view.Pods {
		for _, ip := range pod.IPs {
			_, taken := all[ip]
			shared[ip] = shared[ip] || taken
			all[ip] = cluster.Name{Namespace: key.Namespace, Name: key.Name}
		}
	}
	maps.DeleteFunc(all, func(ip netip.Addr, _ cluster.Name) bool { return shared[ip] })
	return all
}

// ServicesAt returns the Services with an address: a cluster IP, external IP or load balancer IP.
func (r *Reconciler) ServicesAt(a netip.Addr) (all []cluster.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return nil
	}
	for k, s := range r.view.Services {
		if slices.Contains(slices.Concat(s.ClusterIPs, s.ExternalIPs, s.LoadBalancerIPs), a) {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, cluster.Key.Compare)
	return all
}

// shareAddress reports whether two lists share an address.
func shareAddress(all, some []netip.Addr) bool {
	return slices.ContainsFunc(some, func(a netip.Addr) bool { return slices.Contains(all, a) })
}

// OriginsOf returns the origins of an entry of the switch. An entry of flow files, or one that is gone,
// has none.
func (r *Reconciler) OriginsOf(e *flow.Entry) []ledger.Origin {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view == nil {
		return nil
	}
	ex := r.explain(e)
	if ex == nil {
		ex = r.explainLearned(e)
	}
	if ex == nil {
		return nil
	}
	return ex.Origins
}
