package control

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
)

// Status is the state of one object on this Node. Reason says why the object is not installed, or why it is
// installed without entries.
type Status struct {
	Object  cluster.Key  `json:"-"`
	Text    string       `json:"object"` // Object as text, in rows
	State   ledger.State `json:"state"`
	Reason  string       `json:"reason,omitempty"`
	Entries int          `json:"entries"` // entries of the switch that it wants
	Groups  int          `json:"groups,omitempty"`
	// EditRefused is the place of a newer state in the source, and the reason of its refusal. It is
	// empty if State is about the source's state.
	EditRefused string `json:"editRefused,omitempty"`
}

// Shown returns the Status that a row embeds.
func (s *Status) Shown() *Status { return s }

// shown returns the Status of a row.
func (r *Reconciler) shown(k cluster.Key) Status {
	s, _ := r.status(k)
	s.Text = k.String()
	return s
}

// Status returns the Status of one object; false if it does not concern the Node.
func (r *Reconciler) Status(k cluster.Key) (Status, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status(k)
}

func (r *Reconciler) status(k cluster.Key) (Status, bool) {
	s := Status{Object: k, State: ledger.Installed, Entries: len(r.ledger.RowsOf(k)), EditRefused: r.RefusedEdits()[k]}
	for _, d := range r.ledger.PartsOf(k) {
		s.Groups += len(d.Groups)
	}
	n, known := r.notes[k]
	if known {
		s.State, s.Reason = n.state, n.reason
	}
	if f, failed := r.failed[k]; failed && s.State != ledger.Refused {
		s.State, s.Reason = f.state, f.reason
		known = true
	}
	return s, known || s.Entries > 0
}

// Statuses returns those of all objects that concern this Node, by key.
func (r *Reconciler) Statuses() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := map[cluster.Key]bool{}
	for k := range r.notes {
		keys[k] = true
	}
	for k := range r.failed {
		keys[k] = true
	}
	for k := range r.ledger.Objects() {
		if k.Kind != kindPeers && k.Kind != kindMulticast {
			keys[k] = true
		}
	}
	var all []Status
	for _, k := range slices.SortedFunc(maps.Keys(keys), cluster.Key.Compare) {
		if s, ok := r.status(k); ok {
			all = append(all, s)
		}
	}
	return all
}

// ServiceRow is a Service as `get services` shows it.
type ServiceRow struct {
	Status
	Type      cluster.ServiceType `json:"type"`
	Addresses []string            `json:"addresses"` // address:port/protocol
	Endpoints int                 `json:"endpoints"` // addresses and ports
	Local     int                 `json:"local"`     // of those, on this Node
	GroupIDs  []uint32            `json:"groupIDs,omitempty"`
	// Backends are its endpoints, if requested; package agent fills them in.
	Backends []EndpointRow `json:"backends,omitempty"`
	Packets  uint64        `json:"packets"` // that requested an endpoint
	Bytes    uint64        `json:"bytes"`
}

// Services returns all Services, by key.
func (r *Reconciler) Services(count policy.Counter) []ServiceRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []ServiceRow{}
	if r.view == nil {
		return rows
	}
	for _, k := range sortedKeys(r.view.Services) {
		row := ServiceRow{Status: r.shown(k), Type: r.view.Services[k].Type, Addresses: serviceAddresses(r.view.Services[k])}
		for _, d := range r.ledger.PartsOf(k) {
			for _, g := range d.Groups {
				row.GroupIDs = append(row.GroupIDs, g.Group.ID)
			}
		}
		row.Endpoints, row.Local = r.view.countEndpoints(r.view.Services[k])
		row.Packets, row.Bytes = r.count(k, count, "ServiceLB")
		rows = append(rows, row)
	}
	return rows
}

// countEndpoints counts the endpoints that serve a Service, and those of them on this Node.
func (v *view) countEndpoints(svc *cluster.Service) (all, local int) {
	for i := range svc.Ports {
		for _, f := range familiesOf(v) {
			for _, e := range *v.chooseEndpoints(svc, i, f, traffic{cluster: true}).cluster {
				all++
				if e.local {
					local++
				}
			}
		}
	}
	return all, local
}

func serviceAddresses(svc *cluster.Service) []string {
	all := []string{}
	for _, p := range svc.Ports {
		for _, list := range [][]netip.Addr{svc.ClusterIPs, svc.ExternalIPs, svc.LoadBalancerIPs} {
			for _, a := range list {
				all = append(all, fmt.Sprintf("%s/%s", netip.AddrPortFrom(a, p.Port), p.Protocol))
			}
		}
		if p.NodePort != 0 {
			all = append(all, fmt.Sprintf("*:%d/%s", p.NodePort, p.Protocol))
		}
	}
	return all
}

// count sums the counters of an object's entries in some tables.
func (r *Reconciler) count(k cluster.Key, count policy.Counter, tables ...string) (packets, bytes uint64) {
	if count == nil {
		return 0, 0
	}
	for row := range r.ledger.RowsOf(k) {
		if e := row.Entry(); slices.Contains(tables, r.view.names.Table(e.Table)) {
			p, b := count(e)
			packets, bytes = packets+p, bytes+b
		}
	}
	return packets, bytes
}

// PodRow is a Pod of this Node as `get pods` shows it.
type PodRow struct {
	Status
	IPs    []netip.Addr `json:"ips"`
	Port   string       `json:"port,omitempty"`
	OFPort uint32       `json:"ofPort,omitempty"`
	// Link is the fault of the Pod's link, such as: link web-a-1 is gone. Package agent gets it
	// from the switch.
	Link     string   `json:"link,omitempty"`
	Isolated []string `json:"isolated,omitempty"` // directions
	Packets  uint64   `json:"packets"`            // that the Pod sent
	Bytes    uint64   `json:"bytes"`
	// MulticastSent and MulticastReceived count the Pod's packets to and from multicast groups.
	// Groups are the groups that it has joined.
	MulticastSent     uint64       `json:"multicastSent,omitzero"`
	MulticastReceived uint64       `json:"multicastReceived,omitzero"`
	Groups            []netip.Addr `json:"multicastGroups,omitempty"`
}

// Pods returns the Pods of this Node, by key.
func (r *Reconciler) Pods(count policy.Counter) []PodRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []PodRow{}
	if r.view == nil {
		return rows
	}
	for _, k := range sortedKeys(r.view.here) {
		port := r.view.ports[cluster.Name{Namespace: k.Namespace, Name: k.Name}]
		row := PodRow{Status: r.shown(k), IPs: r.view.here[k].IPs, Port: port.Name, OFPort: port.OFPort}
		for _, name := range r.ledger.PartNames(k) {
			if direction, ok := cutIsolation(name); ok {
				row.Isolated = append(row.Isolated, direction)
			}
		}
		row.Packets, row.Bytes = r.count(k, count, "SpoofGuard")
		row.MulticastSent, _ = r.count(k, count, "MulticastEgressPodMetric")
		row.MulticastReceived, _ = r.count(k, count, "MulticastIngressPodMetric")
		row.Groups = r.multicast.of(k)
		rows = append(rows, row)
	}
	return rows
}

// EgressRow is an Egress as `get egresses` shows it.
type EgressRow struct {
	Status
	Addr netip.Addr `json:"egressIP"`
	Node string     `json:"node,omitempty"`
	Pods int        `json:"pods"` // Pods of this Node that use the Egress
	// Bandwidth is that of the Egress' spec. Meter is its meter on this Node, and Dropped counts
	// the packets that the meter dropped; package agent fills it in.
	Bandwidth cluster.Bandwidth `json:"bandwidth,omitzero"`
	Meter     uint32            `json:"meter,omitzero"`
	Dropped   uint64            `json:"dropped,omitzero"`
	Packets   uint64            `json:"packets"`
	Bytes     uint64            `json:"bytes"`
}

// Egresses returns all Egresses, by key.
func (r *Reconciler) Egresses(count policy.Counter) []EgressRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []EgressRow{}
	if r.view == nil {
		return rows
	}
	places := placeEgresses(r.view)
	free := r.view.connected()
	for _, k := range sortedKeys(r.view.Egresses) {
		row := EgressRow{Status: r.shown(k), Addr: places[k].addr, Node: places[k].node, Bandwidth: r.view.Egresses[k].Bandwidth}
		var chosen []*cluster.Pod
		chosen, free = r.view.takeChosen(r.view.Egresses[k].AppliedTo, free)
		row.Pods = len(chosen)
		for _, d := range r.ledger.PartsOf(k) {
			for _, m := range d.Meters {
				row.Meter = m.ID
			}
		}
		row.Packets, row.Bytes = r.count(k, count, "EgressMark")
		rows = append(rows, row)
	}
	return rows
}
