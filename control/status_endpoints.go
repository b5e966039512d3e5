package control

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// EndpointRow is an endpoint of a port of a Service, as `get endpoints` shows it.
type EndpointRow struct {
	Service cluster.Key    `json:"-"`
	Port    string         `json:"port"` // of the Service: its name, or its number, and the protocol: http/TCP
	Address netip.AddrPort `json:"address"`
	Node    string         `json:"node,omitempty"`
	Pod     string         `json:"pod,omitempty"` // namespace/name
	Local   bool           `json:"local,omitempty"`
	// GroupIDs are the groups with a bucket for it. Weight is that of the bucket; 0: no bucket.
	GroupIDs []uint32      `json:"groupIDs,omitempty"`
	Weight   uint16        `json:"weight"`
	Hits     uint64        `json:"hits"` // packets for which a group chose it, usually the first of each connection
	Bytes    uint64        `json:"bytes"`
	State    EndpointState `json:"state"`
}

// EndpointState says whether new connections go to an endpoint.
type EndpointState string

// States of an endpoint.
const (
	EndpointServing     EndpointState = "serving"
	EndpointTerminating EndpointState = "serving, terminating" // because no endpoint is ready
	EndpointNotReady    EndpointState = "not ready"
	EndpointUnused      EndpointState = "not used here" // excluded by hints, or no address of the Service is served
)

// BucketCount has the counters of a bucket.
type BucketCount struct {
	Bucket         *flow.Bucket
	Packets, Bytes uint64
}

// BucketCounter returns the buckets of an installed group.
type BucketCounter func(group uint32) []BucketCount

// Endpoints returns those of all Services, ready or not, by the Services' keys, ports and addresses. count must
// return the groups as installed.
func (r *Reconciler) Endpoints(count BucketCounter) []EndpointRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := []EndpointRow{}
	if r.view == nil {
		return rows
	}
	for _, k := range sortedKeys(r.view.Services) {
		svc := r.view.Services[k]
		for i := range svc.Ports {
			for _, f := range familiesOf(r.view) {
				rows = append(rows, r.portEndpoints(svc, &svc.Ports[i], f, count)...)
			}
		}
	}
	return rows
}

// portEndpoints returns those of a port in one family. A bucket and its endpoint have the same actions.
func (r *Reconciler) portEndpoints(svc *cluster.Service, p *cluster.ServicePort, f tables.Family, count BucketCounter) (rows []EndpointRow) {
	all := r.view.endpoints(svc, p, f)
	g := tables.EndpointGroup{Affinity: svc.AffinitySeconds > 0}
	for i := range all {
		e := &all[i]
		row := EndpointRow{Service: svc.Key, Port: portName(p), Address: e.at, Node: e.of.NodeName, Local: e.local}
		if e.of.Pod.Name != "" {
			row.Pod = e.of.Pod.Namespace + "/" + e.of.Pod.Name
		}
		rows = append(rows, row)
		g.Endpoints = append(g.Endpoints, e.value(p.Protocol))
	}
	if len(all) == 0 {
		return nil
	}
	at := map[string]*EndpointRow{}
	for i, b := range r.view.pipeline.EndpointGroup(g).Buckets {
		at[flow.ActionsText(b.Actions, flow.Format{})] = &rows[i]
	}
	for _, kind := range []groupKind{localGroup, clusterGroup} {
		id := r.services.ids.Assigned[groupOwner{svc.Key, p.Name, p.Protocol, f, kind}]
		if id == 0 {
			continue
		}
		for _, c := range count(id) {
			if row := at[flow.ActionsText(c.Bucket.Actions, flow.Format{})]; row != nil {
				row.GroupIDs, row.Weight = append(row.GroupIDs, id), c.Bucket.Weight
				row.Hits, row.Bytes = row.Hits+c.Packets, row.Bytes+c.Bytes
			}
		}
	}
	for i := range rows {
		rows[i].State = endpointState(all[i].of, len(rows[i].GroupIDs) > 0)
	}
	return rows
}

// endpointState is the state of an endpoint; chosen says that it is in a group.
func endpointState(e *cluster.Endpoint, chosen bool) EndpointState {
	switch {
	case chosen && e.Ready:
		return EndpointServing
	case chosen:
		return EndpointTerminating
	case !e.Ready:
		return EndpointNotReady
	}
	return EndpointUnused
}

// portName is a port's name, or its number, with its protocol.
func portName(p *cluster.ServicePort) string {
	if p.Name != "" {
		return fmt.Sprintf("%s/%s", p.Name, p.Protocol)
	}
	return fmt.Sprintf("%d/%s", p.Port, p.Protocol)
}
