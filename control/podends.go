package control

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
)

// Where packets of a Pod are met by whoever watches them.

// PodEnds is where packets from a Pod enter this Node's switch, and what packets
// to it are addressed to when they enter.
type PodEnds struct {
	Port uint32 // of a Pod of this Node; 0 for one of another Node
	IPs  []netip.Addr
	// Services are the addresses of Services that the Pod is an endpoint of: those
	// of the cluster, external ones, and those of load balancers.
	Services []netip.Addr
}

// PodEnds are those of a Pod. The error says that there is no such Pod, or that it
// has no address.
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
		if service != nil && slices.ContainsFunc(s.Endpoints, func(e cluster.Endpoint) bool { return meet(e.Addresses, pod.IPs) }) {
			ends.Services = slices.Concat(ends.Services, service.ClusterIPs, service.ExternalIPs, service.LoadBalancerIPs)
		}
	}
	slices.SortFunc(ends.Services, netip.Addr.Compare)
	ends.Services = slices.Compact(ends.Services)
	return ends, nil
}

// PodAddresses are the Pods of the cluster by their addresses, but for those that
// share theirs with others, as Pods of a Node's own network do.
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

// ServicesAt are the Services with an address: of the cluster, external, or of a
// load balancer.
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

// meet says whether one list of addresses has one of another.
func meet(all, some []netip.Addr) bool {
	return slices.ContainsFunc(some, func(a netip.Addr) bool { return slices.Contains(all, a) })
}

// OriginsOf is what wants an entry of the switch; none for one of flow files, or
// one that is gone.
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
